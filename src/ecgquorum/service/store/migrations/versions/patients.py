"""Whose recording it is and when it was made, the random sample of all recordings, and the input of models."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns; of older recordings those drawn among the certain ones are known to be in the sample."""
    op.add_column("recordings", sa.Column("patient", sa.String(length=64), nullable=True))
    op.add_column("recordings", sa.Column("recorded_at", sa.String(length=40), nullable=True))
    op.add_column("recordings", sa.Column("drawn", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_recordings_patient", "recordings", ["patient"], unique=False)
    recordings = sa.table("recordings", sa.column("audited", sa.Boolean()), sa.column("drawn", sa.Boolean()))
    op.get_bind().execute(sa.update(recordings).values(drawn=recordings.c.audited))
    op.add_column("models", sa.Column("leads", sa.JSON(), nullable=True))
    op.add_column("models", sa.Column("rate_hz", sa.Float(), nullable=True))
