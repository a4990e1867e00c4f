"""The exceptions of the package. Each message describes the problem and a remedy."""

from __future__ import annotations

from typing import Optional

from rakwire._types import ConnectFailure, DisconnectReason, PingFailure

__all__ = [
    "BindError",
    "ConnectError",
    "ConnectionClosed",
    "EndpointClosed",
    "ForkError",
    "MessageError",
    "NoRoom",
    "PingError",
    "RakwireError",
]


class RakwireError(Exception):
    """The base class of this package's exceptions. Invalid arguments raise ValueError or TypeError."""


class BindError(RakwireError, OSError):
    """A socket cannot be bound, usually because another program uses the port.

    ``errno`` is the error number of the operating system, or None.
    """

    def __init__(self, number: Optional[int], text: str) -> None:
        super().__init__(number, text)

    def __str__(self) -> str:
        return str(self.args[1])


_ADVICE = {
    ConnectFailure.NO_ANSWER: "check the address, that the server runs, and that its firewall allows UDP",
    ConnectFailure.UNREACHABLE: "check the port, and that the server runs",
    ConnectFailure.SERVER_FULL: "try again later",
    ConnectFailure.BANNED: "only the operator of the server can lift the ban",
    ConnectFailure.CONNECTED_ALREADY: "disconnect the other connection first, or bind another endpoint",
    ConnectFailure.ENDPOINT_FULL: "disconnect a connection first, or bind another endpoint",
    ConnectFailure.ADDRESS_FAMILY: 'bind the endpoint to "[::]:0", which reaches IPv4 and IPv6',
    ConnectFailure.PROTOCOL_VERSION: "leave out protocol_version, or pass the version of the server",
    ConnectFailure.SECURITY_REQUIRED: "pass trust, and Options(security=Security())",
    ConnectFailure.SERVER_WITHOUT_SECURITY: "leave out trust for a plain connection",
    ConnectFailure.IDENTITY_REQUIRED: "pass identity",
    ConnectFailure.PUBLIC_KEY_MISMATCH: "ask the operator for the current key; another server may be impersonating it",
    ConnectFailure.INVALID_PASSWORD: "ask the operator for the password, or the backend for another token",
}


class ConnectError(RakwireError, ConnectionError):
    """A connection could not be opened, for the reason in ``reason``."""

    reason: ConnectFailure

    def __init__(self, text: str, reason: str) -> None:
        self.reason = ConnectFailure(reason)
        advice = _ADVICE.get(self.reason)
        super().__init__(f"{text}; {advice}" if advice else text)


class ConnectionClosed(RakwireError, ConnectionError):
    """The connection is closed. ``reason`` is None while it is closing."""

    reason: Optional[DisconnectReason]

    def __init__(self, text: str, reason: Optional[str]) -> None:
        self.reason = None if reason is None else DisconnectReason(reason)
        super().__init__(f"{text}; connect again to continue")


class EndpointClosed(RakwireError):
    """The endpoint is closed."""


class MessageError(RakwireError, ValueError):
    """The message is empty, too long, or begins with a message id reserved by RakNet."""


class NoRoom(RakwireError):
    """The send memory is full until earlier messages are acknowledged. ``send`` waits instead of raising this."""


class PingError(RakwireError, ConnectionError):
    """A ping was not answered, for the reason in ``reason``."""

    reason: PingFailure

    def __init__(self, text: str, reason: str) -> None:
        self.reason = PingFailure(reason)
        super().__init__(text)


class ForkError(RakwireError):
    """The process was forked after the package had started its threads."""
