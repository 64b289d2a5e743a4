"""The error class of this package."""

from ringhaul.errors import UsageError


class QueryError(UsageError):
    """A WHERE or SELECT that cannot be parsed, or needs what is not supported."""
