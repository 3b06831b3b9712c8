"""Several readers, models and senders: rounds of verdicts, answers beyond one class, expiry of tokens and sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns with values for what is stored already, and two tables.

    Columns are added one by one: SQLite would otherwise drop a table that others refer to.
    """
    op.add_column("recordings", sa.Column("urgent", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("recordings", sa.Column("assigned_to", sa.String(length=100), nullable=True))
    op.add_column("recordings", sa.Column("n_readers", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("recordings", sa.Column("round", sa.Integer(), nullable=False, server_default="1"))
    op.create_index("ix_recordings_reader_until", "recordings", ["reader_until"], unique=False)
    with op.batch_alter_table("verdicts") as table:
        table.add_column(sa.Column("round", sa.Integer(), nullable=False, server_default="1"))
        table.add_column(sa.Column("kind", sa.String(length=8), nullable=False, server_default="class"))
        table.add_column(sa.Column("labels", sa.JSON(), nullable=True))
        table.add_column(sa.Column("comment", sa.Text(), nullable=False, server_default=""))
        table.drop_constraint("one_verdict", type_="unique")
        table.create_unique_constraint("one_verdict", ["recording_id", "reader", "stage", "round"])
    verdicts = sa.table("verdicts", sa.column("id"), sa.column("label"), sa.column("labels", sa.JSON()))
    connection = op.get_bind()
    for row in connection.execute(sa.select(verdicts.c.id, verdicts.c.label)).all():
        connection.execute(sa.update(verdicts).where(verdicts.c.id == row.id).values(labels=[row.label]))
    with op.batch_alter_table("verdicts") as table:
        table.alter_column("labels", existing_type=sa.JSON(), nullable=False)
    op.add_column("results", sa.Column("risk", sa.Float(), nullable=True))
    op.add_column("results", sa.Column("probability", sa.Float(), nullable=True))
    results = sa.table("results", *map(sa.column, ("id", "risk", "probability")), sa.column("document", sa.JSON()))
    for row in connection.execute(sa.select(results.c.id, results.c.document)).all():
        probability = max((row.document.get("probabilities") or {}).values(), default=None)
        values = {"risk": row.document.get("risk"), "probability": probability}
        connection.execute(sa.update(results).where(results.c.id == row.id).values(values))
    op.add_column("tokens", sa.Column("expires_at", sa.String(length=27), nullable=True))
    op.add_column("sessions", sa.Column("seen_at", sa.String(length=27), nullable=False, server_default=""))
    op.execute("UPDATE sessions SET seen_at = until")
    op.create_table(
        "models",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("classes", sa.JSON(), nullable=False),
        sa.Column("class_names", sa.JSON(), nullable=False),
        sa.Column("used_at", sa.String(length=27), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "senders",
        sa.Column("recording_id", sa.String(length=32), nullable=False),
        sa.Column("uploader", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(["recording_id"], ["recordings.id"]),
        sa.PrimaryKeyConstraint("recording_id", "uploader"),
    )
