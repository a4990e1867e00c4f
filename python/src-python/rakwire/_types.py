"""The enums and values that the package takes and returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Dict, NamedTuple, Optional

__all__ = [
    "Address",
    "Ban",
    "ConnectFailure",
    "ConnectionStats",
    "DisconnectReason",
    "EndpointStats",
    "Outcome",
    "PingFailure",
    "Pong",
    "Priority",
    "Progress",
    "RefuseReason",
    "RefusedClient",
    "Reliability",
    "SecurePeer",
    "UnconnectedMessage",
]


class Reliability(enum.IntEnum):
    """How a message is delivered. The numbers are those of RakNet."""

    UNRELIABLE = 0
    """It may be lost, arrive twice, or arrive late."""
    UNRELIABLE_SEQUENCED = 1
    """It may be lost. What is older than the newest on its channel is dropped."""
    RELIABLE = 2
    """It arrives once, in any order."""
    RELIABLE_ORDERED = 3
    """It arrives once, in the order of its channel."""
    RELIABLE_SEQUENCED = 4
    """It arrives, unless a newer one on its channel has arrived before."""
    UNRELIABLE_WITH_RECEIPT = 5
    """Like UNRELIABLE, and ``recv_receipt`` returns the outcome."""
    RELIABLE_WITH_RECEIPT = 6
    """Like RELIABLE, and ``recv_receipt`` returns the outcome."""
    RELIABLE_ORDERED_WITH_RECEIPT = 7
    """Like RELIABLE_ORDERED, and ``recv_receipt`` returns the outcome."""


class Priority(enum.IntEnum):
    """Which messages go first while there is more to send than the path carries."""

    IMMEDIATE = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3


class ConnectFailure(enum.Enum):
    """Why a connection could not be opened."""

    NO_ANSWER = "no-answer"
    UNREACHABLE = "unreachable"
    HANDSHAKE_TIMEOUT = "handshake-timeout"
    ATTEMPT_FAILED = "attempt-failed"
    CONNECTED_ALREADY = "connected-already"
    SERVER_FULL = "server-full"
    BANNED = "banned"
    RECENTLY_CONNECTED = "recently-connected"
    PROTOCOL_VERSION = "protocol-version"
    SECURITY_REQUIRED = "security-required"
    SERVER_WITHOUT_SECURITY = "server-without-security"
    IDENTITY_REQUIRED = "identity-required"
    INVALID_IDENTITY = "invalid-identity"
    PUBLIC_KEY_MISMATCH = "public-key-mismatch"
    INVALID_PASSWORD = "invalid-password"
    CLOSED = "closed"
    CANCELLED = "cancelled"
    ENDPOINT_FULL = "endpoint-full"
    ADDRESS_FAMILY = "address-family"
    UNRESOLVED = "unresolved"
    OTHER = "other"


class DisconnectReason(enum.Enum):
    """Why a connection ended."""

    LOCAL = "local"
    """This side disconnected."""
    REMOTE = "remote"
    """The peer disconnected."""
    LOST = "lost"
    """The peer fell silent."""
    MESSAGE_TOO_LARGE = "message-too-large"
    """A message of the peer is larger than a connection may hold."""
    SENT_TOO_LARGE = "sent-too-large"
    """The peer cannot hold a message of this side."""
    PATH_TOO_NARROW = "path-too-narrow"
    """The path no longer carries the parts of a message that was sent."""
    RECEIVE_MEMORY = "receive-memory"
    """The gaps in the messages of the peer hold too much memory."""
    OTHER = "other"


class RefuseReason(enum.Enum):
    """Why a server refused a client."""

    WRONG_PASSWORD = "wrong-password"
    NO_IDENTITY = "no-identity"
    INVALID_IDENTITY = "invalid-identity"
    NO_TOKEN = "no-token"
    TOKEN_EXPIRED = "token-expired"
    TOKEN_FOR_OTHER_SERVER = "token-for-other-server"
    TOKEN_OF_OTHER_CLIENT = "token-of-other-client"
    TOKEN_USED = "token-used"
    TOKEN_STORE_FULL = "token-store-full"
    OTHER = "other"


class PingFailure(enum.Enum):
    """Why there is no answer to a ping."""

    NO_ANSWER = "no-answer"
    UNREACHABLE = "unreachable"
    TOO_MANY = "too-many"
    ADDRESS_FAMILY = "address-family"
    OTHER = "other"


class Address(NamedTuple):
    """Host and port, as the sockets of Python write them. ``str`` joins them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Pong:
    """The answer of a server to a ping."""

    address: Address
    guid: int
    latency: float
    """The time between ping and pong, in seconds."""
    data: bytes
    """The advertisement of the server, at most 399 bytes."""


@dataclass(frozen=True)
class UnconnectedMessage:
    """A message of a peer without a connection. Its sender and its content can be forged."""

    address: Address
    guid: int
    is_advertisement: bool
    data: bytes


@dataclass(frozen=True)
class RefusedClient:
    """A client that the server refused."""

    address: Address
    guid: int
    reason: RefuseReason
    is_validated: bool
    """True if the client has shown that it receives datagrams at its address, which may be forged otherwise."""


@dataclass(frozen=True)
class Ban:
    """A ban of addresses."""

    pattern: str
    seconds: Optional[float]
    """The time that is left, or None for ever."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a message that was sent with a receipt."""

    receipt: int
    """The number that ``send`` returned."""
    is_acknowledged: bool
    """True if the peer has all of it. Otherwise it was sent unreliably and may be lost."""


@dataclass(frozen=True)
class Progress:
    """The progress of a large message."""

    is_outgoing: bool
    message: int
    """Distinguishes messages in progress in the same direction."""
    done: int
    """Parts that were received or acknowledged."""
    parts: int


@dataclass(frozen=True)
class SecurePeer:
    """What a secure connection shows of its peer."""

    key: Optional[bytes]
    """The public key of the peer, or None for a client without an identity."""
    next_key_hash: Optional[bytes]
    """The hash of the next key of a server that announces one."""
    identity_data: bytes
    """The data that a client sent with its identity."""
    token_user_id: Optional[int]
    """The user of the client's connect token, or None without a token."""
    token_expires: Optional[int]
    """The end of the token, in seconds since 1970."""
    token_data: bytes


@dataclass(frozen=True)
class EndpointStats:
    """The counters of an endpoint since it was bound."""

    connections: int
    """Open connections, those that are opening included."""
    datagrams_received: int
    bytes_received: int
    datagrams_sent: int
    bytes_sent: int
    drops: Dict[str, int]
    """Received data that was dropped, by the name of the reason."""
    too_long: int
    arrival_queue_full: int
    receive_queue_full: int
    """Data datagrams that were not accepted because the application does not receive its messages."""
    backlog_full: int
    """Connections that were closed because the application does not accept them."""
    unconnected_queue_full: int
    refused_clients: int
    send_failures: int
    receive_failures: int
    proxy_headers_refused: int


@dataclass(frozen=True)
class ConnectionStats:
    """The counters and measurements of a connection. Bytes are totals, and times are seconds, 0 if unknown."""

    messages_sent: int
    messages_received: int
    datagrams_sent: int
    datagrams_received: int
    datagrams_lost: int
    datagrams_late: int
    """Datagrams that were declared lost and arrived after all."""
    datagrams_acknowledged: int
    bytes_pushed: int
    """Bytes of messages that ``send`` took."""
    bytes_sent: int
    """Bytes of messages that were sent for the first time."""
    bytes_resent: int
    bytes_processed: int
    """Bytes of messages that were delivered."""
    bytes_ignored: int
    """Bytes of messages that arrived twice or too late."""
    actual_bytes_sent: int
    """Bytes of datagrams, without headers of IP and UDP."""
    actual_bytes_received: int
    waiting_messages: int
    waiting_bytes: int
    waiting_resends: int
    round_trip: float
    last_ping: float
    average_ping: float
    lowest_ping: float
    clock_difference: Optional[int]
    """The clock of the peer minus the own one, in milliseconds."""
    congestion_window: int
    in_flight: int
    mtu: int
    loss: float
    """The share of bytes that had to be sent again, 0 to 1."""
    loss_last_second: float
