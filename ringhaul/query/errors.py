"""The one error of this package."""

from ringhaul.errors import UsageError


class QueryError(UsageError):
    """A WHERE or SELECT that cannot be read, or asks for what cannot be answered."""
