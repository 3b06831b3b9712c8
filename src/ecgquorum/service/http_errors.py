"""What the desk refuses, each with the status that HTTP has for it."""

from ecgquorum.errors import DeskError


class Refusal(DeskError):  # noqa: N818 (it is a refusal, not a mistake)
    """Something that was asked for and cannot be done; `status` is HTTP's."""

    status = 400


class Missing(Refusal):
    """There is no such thing, or not for this person."""

    status = 404


class Conflict(Refusal):
    """It cannot be done now, or not by this person."""

    status = 409


class TooLarge(Refusal):
    """More bytes than are taken."""

    status = 413


class Unsupported(Refusal):
    """A file that is no recording in any known format."""

    status = 415


class Unprocessable(Refusal):
    """It is understood, and makes no sense."""

    status = 422


class Full(Refusal):
    """The disk is."""

    status = 507
