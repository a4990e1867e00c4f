"""The enums and data types of the public API."""

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
    """The delivery guarantee of a message. The values are RakNet's."""

    UNRELIABLE = 0
    """Sent once: may be lost or reordered, but never delivered twice."""
    UNRELIABLE_SEQUENCED = 1
    """Sent once; dropped if a newer message on its channel has already arrived."""
    RELIABLE = 2
    """Resent until acknowledged; delivered exactly once, in any order."""
    RELIABLE_ORDERED = 3
    """Resent until acknowledged; delivered exactly once, in the sending order of its channel."""
    RELIABLE_SEQUENCED = 4
    """Resent until acknowledged; dropped on arrival if a newer message on its channel has already arrived."""
    UNRELIABLE_WITH_RECEIPT = 5
    """Like UNRELIABLE; ``recv_receipt`` returns the outcome."""
    RELIABLE_WITH_RECEIPT = 6
    """Like RELIABLE; ``recv_receipt`` returns the outcome."""
    RELIABLE_ORDERED_WITH_RECEIPT = 7
    """Like RELIABLE_ORDERED; ``recv_receipt`` returns the outcome."""


class Priority(enum.IntEnum):
    """The priority of a queued message while congestion control or flow control limits sending."""

    IMMEDIATE = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3


class ConnectFailure(enum.Enum):
    """The reason why a connection could not be opened."""

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
    """The reason why a connection closed."""

    LOCAL = "local"
    """This side disconnected."""
    REMOTE = "remote"
    """The peer disconnected."""
    LOST = "lost"
    """The peer did not respond within the timeout."""
    MESSAGE_TOO_LARGE = "message-too-large"
    """The peer sent a message that exceeds the memory of a connection."""
    SENT_TOO_LARGE = "sent-too-large"
    """This side sent a message that exceeds the memory of the peer."""
    PATH_TOO_NARROW = "path-too-narrow"
    """The path MTU fell below the part size of a split message."""
    RECEIVE_MEMORY = "receive-memory"
    """Out-of-order messages from the peer exceed the memory of a connection."""
    OTHER = "other"


class RefuseReason(enum.Enum):
    """The reason why a server refused a client."""

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
    """The reason why a ping was not answered."""

    NO_ANSWER = "no-answer"
    UNREACHABLE = "unreachable"
    TOO_MANY = "too-many"
    ADDRESS_FAMILY = "address-family"
    OTHER = "other"


class Address(NamedTuple):
    """Host and port in the format of Python's ``socket`` module. ``str`` joins them with a colon."""

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
    """The round-trip time in seconds."""
    data: bytes
    """The advertisement of the server, at most 399 bytes."""


@dataclass(frozen=True)
class UnconnectedMessage:
    """A message from a peer without a connection. Its sender and content can be forged."""

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
    """True if the client has proved that it receives datagrams at ``address``. Otherwise the address may be forged."""


@dataclass(frozen=True)
class Ban:
    """A ban of addresses."""

    pattern: str
    seconds: Optional[float]
    """The remaining time, or None if permanent."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a message sent with a receipt."""

    receipt: int
    """The receipt number that ``send`` returned."""
    is_acknowledged: bool
    """True if the peer has received the whole message. False if an unreliable message was not acknowledged."""


@dataclass(frozen=True)
class Progress:
    """The progress of a split message."""

    is_outgoing: bool
    message: int
    """An id of the message, unique among the incomplete split messages of its direction."""
    done: int
    """The number of parts that were received (incoming) or acknowledged (outgoing)."""
    parts: int


@dataclass(frozen=True)
class SecurePeer:
    """The authenticated peer of a secure connection."""

    key: Optional[bytes]
    """The public key of the peer, or None if a client is anonymous."""
    next_key_hash: Optional[bytes]
    """The hash of the server's next key, if it announces one."""
    identity_data: bytes
    """The data that a client sent with its identity."""
    token_user_id: Optional[int]
    """The user id in the client's connect token, or None without a token."""
    token_expires: Optional[int]
    """The expiry of the token, in seconds since the Unix epoch."""
    token_data: bytes


@dataclass(frozen=True)
class EndpointStats:
    """The cumulative counters of an endpoint."""

    connections: int
    """The current number of connections, including those that are opening."""
    datagrams_received: int
    bytes_received: int
    datagrams_sent: int
    bytes_sent: int
    drops: Dict[str, int]
    """The number of dropped datagrams and messages by reason."""
    too_long: int
    """Datagrams dropped because they exceed 2,048 bytes."""
    arrival_queue_full: int
    """Datagrams dropped because the queue for received datagrams was full."""
    receive_queue_full: int
    """Datagrams with messages that were dropped because the receive queue of their connection was full."""
    backlog_full: int
    """Connections or requests that were dropped because the application did not accept them fast enough."""
    unconnected_queue_full: int
    """Messages without a connection that were dropped because 256 of them were unread."""
    refused_clients: int
    """Clients refused because of their password, identity or connect token."""
    send_failures: int
    """Datagrams that the operating system could not send."""
    receive_failures: int
    """Receive calls that failed."""
    proxy_headers_refused: int
    """Datagrams from trusted proxies that were dropped because of their PROXY header."""


@dataclass(frozen=True)
class ConnectionStats:
    """The cumulative counters and the measurements of a connection. Times are in seconds, 0 if unknown."""

    messages_sent: int
    messages_received: int
    datagrams_sent: int
    datagrams_received: int
    datagrams_lost: int
    datagrams_late: int
    """Datagrams that were declared lost but acknowledged later."""
    datagrams_acknowledged: int
    bytes_pushed: int
    """Message bytes that ``send`` accepted."""
    bytes_sent: int
    """Message bytes that were sent for the first time."""
    bytes_resent: int
    """Message bytes that were retransmitted."""
    bytes_processed: int
    """Message bytes that were delivered."""
    bytes_ignored: int
    """Message bytes that were dropped as duplicates, or as older than a delivered sequenced message."""
    actual_bytes_sent: int
    """Bytes of datagrams, without IP and UDP headers."""
    actual_bytes_received: int
    waiting_messages: int
    """Messages in the send queue that were never sent."""
    waiting_bytes: int
    """The bytes of the messages counted by ``waiting_messages``."""
    waiting_resends: int
    """Lost messages that await retransmission."""
    round_trip: float
    """The smoothed round-trip time."""
    last_ping: float
    """The round-trip time of the last connected ping."""
    average_ping: float
    """The mean round-trip time of the last five connected pings."""
    lowest_ping: float
    """The lowest round-trip time of a connected ping."""
    clock_difference: Optional[int]
    """The clock of the peer minus the local clock in milliseconds."""
    congestion_window: int
    """The congestion window in bytes."""
    in_flight: int
    """Bytes that were sent, and neither acknowledged nor declared lost."""
    mtu: int
    """The MTU in bytes, including 28 bytes of IP and UDP headers."""
    loss: float
    """The fraction of sent message bytes that were retransmissions, 0 to 1."""
    loss_last_second: float
    """The fraction of retransmissions in the last full second, 0 to 1."""
