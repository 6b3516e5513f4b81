"""Exceptions."""


class ChartIndexError(Exception):
    """A request failed: the index refused it, is unreachable, or its response is not that of a chart index."""

    def __init__(
        self, message: str, status: int | None, type: str, detail: str, retry_after: float | None
    ) -> None:
        # All of them, so that it can be pickled.
        super().__init__(message, status, type, detail, retry_after)
        self.message = message
        self.status = status
        """The status of the response; None without a response of an index."""
        self.type = type
        """What kind of problem it is, such as /problems/rate-limited."""
        self.detail = detail
        """What is wrong with this request."""
        self.retry_after = retry_after
        """The pause in seconds that the index asked for, if it was too long."""

    def __str__(self) -> str:
        return self.message
