"""How a call of the client can fail."""


class RefusedError(ValueError):
    """The service has refused a call, and will again; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class OlderLogError(RefusedError):
    """The service lacks an event that it had answered with: an older backup was restored, for example."""


class UnreachableError(ConnectionError):
    """The service did not answer. The same call, made again, is the same: it is not done twice."""
