"""The first tables of the desk."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables, and the head of an empty audit log."""
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(length=27), nullable=False),
        sa.Column("actor", sa.String(length=100), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.Column("previous_sha256", sa.String(length=64), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "recordings",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("identity", sa.String(length=64), nullable=True),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("uploader", sa.String(length=100), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("merged_into", sa.String(length=32), nullable=True),
        sa.Column("uploaded_at", sa.String(length=27), nullable=False),
        sa.Column("completed_at", sa.String(length=27), nullable=True),
        sa.Column("classified_at", sa.String(length=27), nullable=True),
        sa.Column("closed_at", sa.String(length=27), nullable=True),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("worker_until", sa.String(length=27), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reader", sa.String(length=100), nullable=True),
        sa.Column("reader_until", sa.String(length=27), nullable=True),
        sa.Column("audited", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Float(), nullable=False),
        sa.Column("rate_hz", sa.Float(), nullable=True),
        sa.Column("leads", sa.JSON(), nullable=True),
        sa.Column("n_samples", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["merged_into"],
            ["recordings.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("identity"),
    )
    op.create_index("ix_recordings_state", "recordings", ["state", "audited"], unique=False)
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("value", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=27), nullable=False),
        sa.Column("revoked_at", sa.String(length=27), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
        sa.UniqueConstraint("sha256"),
    )
    op.create_table(
        "files",
        sa.Column("recording_id", sa.String(length=32), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("ending", sa.String(length=8), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("n_bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recording_id"],
            ["recordings.id"],
        ),
        sa.PrimaryKeyConstraint("recording_id", "place"),
    )
    op.create_index("ix_files_sha256", "files", ["sha256"], unique=False)
    op.create_table(
        "results",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("recording_id", sa.String(length=32), nullable=False),
        sa.Column("model_sha256", sa.String(length=64), nullable=False),
        sa.Column("at", sa.String(length=27), nullable=False),
        sa.Column("label", sa.String(length=100), nullable=False),
        sa.Column("decision", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("uncertainty", sa.Float(), nullable=True),
        sa.Column("probability", sa.Float(), nullable=True),
        sa.Column("calibrated_probability", sa.Float(), nullable=True),
        sa.Column("probabilities", sa.JSON(), nullable=False),
        sa.Column("member_probabilities", sa.JSON(), nullable=False),
        sa.Column("quality", sa.String(length=16), nullable=False),
        sa.Column("quality_reasons", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recording_id"],
            ["recordings.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("recording_id", "model_sha256", name="one_result"),
    )
    op.create_table(
        "sessions",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("token_id", sa.String(length=32), nullable=False),
        sa.Column("until", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["token_id"],
            ["tokens.id"],
        ),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "verdicts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("recording_id", sa.String(length=32), nullable=False),
        sa.Column("reader", sa.String(length=100), nullable=False),
        sa.Column("stage", sa.String(length=8), nullable=False),
        sa.Column("label", sa.String(length=100), nullable=False),
        sa.Column("was_blind", sa.Boolean(), nullable=False),
        sa.Column("at", sa.String(length=27), nullable=False),
        sa.ForeignKeyConstraint(
            ["recording_id"],
            ["recordings.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("recording_id", "reader", "stage", name="one_verdict"),
    )
    head = sa.table("audit_head", sa.column("id"), sa.column("number"), sa.column("sha256"))
    op.bulk_insert(head, [{"id": 1, "number": 0, "sha256": "0" * 64}])
