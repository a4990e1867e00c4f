"""The options of endpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Optional, Sequence, Tuple, Union

from rakwire._native import SecretKey, TokenKey

__all__ = ["AddressLike", "KnownServer", "Options", "Security", "Simulation"]

AddressLike = Union[str, Tuple[str, int]]
"""``"host:port"``, or a tuple of host and port. The host is a name or an IP address."""

_Bytes = Union[bytes, bytearray, memoryview]


def target(address: object) -> str:
    """Return an address as ``host:port``."""
    if isinstance(address, str):
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError(f'{address!r} is not an address: write "host:port", such as "127.0.0.1:19132"')
        return address
    if isinstance(address, tuple) and len(address) == 2 and isinstance(address[0], str):
        host = address[0]
        whole("port", address[1], 0, 65535)
        return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
    raise TypeError(f'an address must be "host:port" or a tuple of host and port, not {address!r}')


def whole(name: str, value: object, low: int, high: int) -> None:
    """Raise an exception unless a value is a whole number from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be {low} to {high}, not {value}")


def octets(name: str, value: object) -> None:
    """Raise an exception unless a value is bytes. The message omits the value, which may be secret."""
    if isinstance(value, str):
        raise TypeError(f'{name} must be bytes, not a str: write b"...", or call encode()')
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")


def seconds(name: str, value: object) -> None:
    """Raise an exception unless a value is a time in seconds, 0 to 1,000,000,000."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not (math.isfinite(value) and 0 <= value <= 1e9):
        raise ValueError(f"{name} must be 0 to 1e9 seconds, not {value!r}")


@dataclass(frozen=True)
class Simulation:
    """Simulated network conditions for tests, applied in each direction between an endpoint and its socket."""

    loss: float = 0.0
    """The fraction of datagrams that are lost, 0 to 1."""
    duplicate: float = 0.0
    """The fraction of datagrams that are duplicated, 0 to 1."""
    reorder: float = 0.0
    """The fraction of datagrams that are delayed further, by up to twice the latency, 0 to 1."""
    latency: float = 0.0
    """The delay of every datagram in seconds, at most 60."""
    jitter: float = 0.0
    """The maximum random additional delay in seconds, at most 60."""
    seed: int = 0
    """The seed of the random number generator."""

    def __post_init__(self) -> None:
        for name, limit in [("loss", 1), ("duplicate", 1), ("reorder", 1), ("latency", 60), ("jitter", 60)]:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name} must be a number, not {value!r}")
            if not 0 <= value <= limit:
                raise ValueError(f"{name} must be 0 to {limit}, not {value!r}")
        whole("seed", self.seed, 0, 2**64 - 1)

    def __str__(self) -> str:
        shares = f"loss={self.loss:.9f},duplicate={self.duplicate:.9f},reorder={self.reorder:.9f}"
        return f"{shares},latency={self.latency:.6f}s,jitter={self.jitter:.6f}s,seed={self.seed}"


@dataclass(frozen=True)
class Security:
    """The keys of an endpoint for secure connections, and its requirements for clients."""

    server_key: Optional[SecretKey] = None
    """The private key of this endpoint as a server. Without it, only outgoing connections can be secure."""
    identity: Optional[SecretKey] = None
    """The private key that identifies this endpoint in all outgoing connections."""
    requires_security: bool = False
    """Whether to refuse clients without a secure connection."""
    requires_identity: bool = False
    """Whether to refuse clients without an identity."""
    token_keys: Sequence[TokenKey] = ()
    """The connect token keys shared with a backend, at most 4. If set, every client needs a connect token."""


@dataclass(frozen=True)
class KnownServer:
    """The key of a known server, for ``trust``."""

    key: bytes
    """The public key, 32 bytes."""
    next_key_hash: Optional[bytes] = None
    """The hash of the next key that the server has announced, 24 bytes."""


@dataclass(frozen=True)
class Options:
    """The options of an endpoint. The value None selects the library's default."""

    max_incoming: int = 0
    """The maximum number of incoming connections, 0 to 65535; 0 for a client."""
    password: _Bytes = b""
    """The password that clients must send, at most 255 bytes. Clients send it unencrypted."""
    advertisement: _Bytes = b""
    """The data that this endpoint sends in its pongs, at most 399 bytes."""
    out_of_band: bool = False
    """Whether to receive messages from peers without a connection. The sender address can be forged."""
    defer_incoming: bool = False
    """Whether each new client waits for a decision through ``incoming``."""
    timeout: Optional[float] = None
    """The time in seconds without a datagram from the peer after which a connection with unacknowledged data is lost.
    Default: 10."""
    close_timeout: Optional[float] = None
    """The maximum time for which ``disconnect`` waits for acknowledgements, in seconds. Default: 5."""
    handshake_timeout: Optional[float] = None
    """The maximum duration of the handshake after the server's first reply, in seconds. Default: 10."""
    mtu: Optional[int] = None
    """The maximum MTU in bytes including IP and UDP headers, 576 to 1492. Default: 1492."""
    max_message_length: Optional[int] = None
    """The maximum length of a sent message in bytes. Default: 4,000,000."""
    progress_interval: int = 0
    """The number of parts of a split message between reports of ``recv_progress``. Default: 0, no reports."""
    protocol_version: Optional[int] = None
    """The protocol version of the first request of ``connect``. Default: 6."""
    accepted_versions: Optional[Sequence[int]] = None
    """The protocol versions that a server accepts, at most 8. Default: 6, 10 and 11."""
    outgoing_limit: Optional[int] = None
    """The maximum sending rate per connection in bits per second. Default: unlimited."""
    cookies: Literal["automatic", "required", "off"] = "automatic"
    """When clients must return a cookie to validate their address: "automatic" means only under load."""
    max_per_address: Optional[int] = None
    """The maximum number of incoming connections per address. Default: 3/4 of max_incoming, or no limit if max_incoming
    is below 16."""
    max_per_network: Optional[int] = None
    """The maximum number of incoming connections per network. Default: 7/8 of max_incoming, or no limit if max_incoming
    is below 16."""
    trusted_proxies: Sequence[str] = field(default=())
    """The networks of proxies, such as "10.0.0.0/8", whose PROXY headers contain the client's address."""
    simulate: Union[Simulation, str, None] = None
    """Simulated network conditions: a Simulation, or a text such as "loss=5%,latency=50ms"."""
    security: Optional[Security] = None
    """Keys and requirements for secure connections. Default: none."""

    def __post_init__(self) -> None:
        octets("password", self.password)
        octets("advertisement", self.advertisement)
        whole("max_incoming", self.max_incoming, 0, 65535)
        whole("progress_interval", self.progress_interval, 0, 2**32 - 1)
        bounds = [
            ("mtu", 576, 1492),
            ("max_message_length", 1, 2**32 - 1),
            ("protocol_version", 0, 255),
            ("outgoing_limit", 1, 2**64 - 1),
            ("max_per_address", 0, 65535),
            ("max_per_network", 0, 65535),
        ]
        for name, low, high in bounds:
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), low, high)
        for name in ("timeout", "close_timeout", "handshake_timeout"):
            if getattr(self, name) is not None:
                seconds(name, getattr(self, name))
        for version in self.accepted_versions or ():
            whole("a version", version, 0, 255)
        if isinstance(self.trusted_proxies, str):
            raise TypeError("trusted_proxies must be a list of networks, not a str")
        if not isinstance(self.security, (Security, type(None))):
            raise TypeError("security must be a rakwire.Security")
        if self.simulate is not None:
            object.__setattr__(self, "simulate", str(self.simulate))
