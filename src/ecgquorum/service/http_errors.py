"""Errors of requests, each with its HTTP status."""

from ecgquorum.errors import DeskError


class HttpError(DeskError):
    """A request that cannot be fulfilled."""

    status = 400


class ForbiddenError(HttpError):
    """This person may not do it."""

    status = 403


class NotFoundError(HttpError):
    """It does not exist, or this person may not see it."""

    status = 404


class ConflictError(HttpError):
    """It cannot be done now, or not by this person."""

    status = 409


class TooLargeError(HttpError):
    """The body is larger than the limit."""

    status = 413


class UnsupportedFormatError(HttpError):
    """The file is not a recording in a known format."""

    status = 415


class UnprocessableError(HttpError):
    """The content is not valid."""

    status = 422


class DiskFullError(HttpError):
    """The file could not be written to disk."""

    status = 507
