"""Results are stored whole, as JSON; only the columns that queries need stay."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_OLD = (
    sa.Column("reason", sa.Text()),
    sa.Column("probability", sa.Float()),
    sa.Column("calibrated_probability", sa.Float()),
    sa.Column("probabilities", sa.JSON()),
    sa.Column("member_probabilities", sa.JSON()),
    sa.Column("quality_reasons", sa.JSON()),
    sa.Column("seconds", sa.Float()),
)


def upgrade() -> None:
    """Move the columns of each result into one JSON document."""
    with op.batch_alter_table("results") as table:
        table.add_column(sa.Column("document", sa.JSON(), nullable=True))
    names = ("id", "recording_id", "model_sha256", "label", "decision", "uncertainty", "quality")
    results = sa.table("results", *map(sa.column, names), *_OLD, sa.column("document", sa.JSON()))
    connection = op.get_bind()
    for row in connection.execute(sa.select(results)).mappings().all():
        change = sa.update(results).where(results.c.id == row["id"]).values(document=_document(row))
        connection.execute(change)
    with op.batch_alter_table("results") as table:
        table.alter_column("document", existing_type=sa.JSON(), nullable=False)
        for column in _OLD:
            table.drop_column(column.name)


def _document(row: sa.RowMapping) -> dict[str, object]:
    """The result as `Result.to_json` writes it; of the calibrated probabilities only the label's was stored."""
    findings = [reason.partition(": ") for reason in row["quality_reasons"]]
    calibrated = {} if row["calibrated_probability"] is None else {row["label"]: row["calibrated_probability"]}
    return {
        "id": row["recording_id"],
        "source": "",
        "label": row["label"],
        "probabilities": calibrated,
        "raw_probabilities": row["probabilities"],
        "raw_member_probabilities": row["member_probabilities"],
        "entropy": None,
        "mutual_information": None,
        "uncertainty": row["uncertainty"],
        "risk": None,
        "windows": [],
        "quality": row["quality"],
        "findings": [{"name": f[0], "severity": row["quality"], "detail": f[2], "lead": ""} for f in findings],
        "decision": row["decision"],
        "reason": row["reason"],
        "notices": [],
        "seconds": row["seconds"],
        "patient": None,
        "acquired": None,
        "sha256": "",
        "model_sha256": row["model_sha256"],
    }
