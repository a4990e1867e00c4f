"""The options of endpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, Optional, Sequence, Tuple, Union

from rakwire._native import SecretKey, TokenKey

__all__ = ["AddressLike", "KnownServer", "Options", "Security", "Simulation"]

AddressLike = Union[str, Tuple[str, int]]
"""``"host:port"``, or host and port. The host is a name or an address."""

_Bytes = Union[bytes, bytearray, memoryview]


def target(address: object) -> str:
    """Return an address as ``host:port``."""
    if isinstance(address, str):
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError(f'{address!r} is no address: write "host:port", such as "127.0.0.1:19132"')
        return address
    if isinstance(address, tuple) and len(address) == 2 and isinstance(address[0], str):
        host = address[0]
        whole("port", address[1], 0, 65535)
        return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
    raise TypeError(f'an address is "host:port" or a tuple of host and port, not {address!r}')


def whole(name: str, value: object, low: int, high: int) -> None:
    """Check that a value is a whole number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} is {low} to {high}, not {value}")


def octets(name: str, value: object) -> None:
    """Check that a value is bytes. The text does not show it, since it may be secret."""
    if isinstance(value, str):
        raise TypeError(f'{name} is bytes, not a str: write b"...", or use its encode()')
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is bytes, not {type(value).__name__}")


def seconds(name: str, value: object) -> None:
    """Check that a value is a time in seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if not (math.isfinite(value) and 0 <= value <= 1e9):
        raise ValueError(f"{name} is 0 or more seconds, not {value!r}")


@dataclass(frozen=True)
class Simulation:
    """A bad network between an endpoint and its socket, for tests. It applies in each direction."""

    loss: float = 0.0
    """The share of datagrams that are lost, 0 to 1."""
    duplicate: float = 0.0
    """The share of datagrams that arrive twice, 0 to 1."""
    reorder: float = 0.0
    """The share of datagrams that are late by up to twice the latency, 0 to 1."""
    latency: float = 0.0
    """The delay of every datagram in seconds, at most 60."""
    jitter: float = 0.0
    """The largest further delay in seconds, at most 60."""
    seed: int = 0
    """The seed of the random numbers."""

    def __post_init__(self) -> None:
        for name, limit in [("loss", 1), ("duplicate", 1), ("reorder", 1), ("latency", 60), ("jitter", 60)]:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name} is a number, not {value!r}")
            if not 0 <= value <= limit:
                raise ValueError(f"{name} is 0 to {limit}, not {value!r}")
        whole("seed", self.seed, 0, 2**64 - 1)

    def __str__(self) -> str:
        shares = f"loss={self.loss:.9f},duplicate={self.duplicate:.9f},reorder={self.reorder:.9f}"
        return f"{shares},latency={self.latency:.6f}s,jitter={self.jitter:.6f}s,seed={self.seed}"


@dataclass(frozen=True)
class Security:
    """Keys of an endpoint for secure connections, and its requirements for clients."""

    server_key: Optional[SecretKey] = None
    """The key of this endpoint as a server. Without it only connections that it opens can be secure."""
    identity: Optional[SecretKey] = None
    """The key that identifies this endpoint in all connections that it opens."""
    requires_security: bool = False
    """True to refuse clients without a secure connection."""
    requires_identity: bool = False
    """True to refuse clients without an identity."""
    token_keys: Sequence[TokenKey] = ()
    """The keys of a backend, at most 4. With them every client needs a connect token."""


@dataclass(frozen=True)
class KnownServer:
    """The key of a server that was met before, for ``trust``."""

    key: bytes
    """The public key, 32 bytes."""
    next_key_hash: Optional[bytes] = None
    """The hash of the key that the server has announced as its next one, 24 bytes."""


@dataclass(frozen=True)
class Options:
    """The options of an endpoint. None leaves a value to the library."""

    max_incoming: int = 0
    """The most incoming connections, 0 to 65535. 0 is a pure client."""
    password: _Bytes = b""
    """The password that clients need, at most 255 bytes. It is not encrypted."""
    advertisement: _Bytes = b""
    """The data of pongs, at most 399 bytes."""
    out_of_band: bool = False
    """True to receive messages of peers without a connection, which can be forged."""
    defer_incoming: bool = False
    """True if ``incoming`` decides about each client."""
    timeout: Optional[float] = None
    """How long a peer may be silent while it owes an acknowledgement, in seconds. Default: 10."""
    close_timeout: Optional[float] = None
    """How long ``disconnect`` waits for the delivery of earlier messages, in seconds. Default: 5."""
    handshake_timeout: Optional[float] = None
    """How long the handshake inside a connection may take, in seconds. Default: 10."""
    mtu: Optional[int] = None
    """The largest MTU, 576 to 1492 bytes with headers. Default: 1492."""
    max_message_length: Optional[int] = None
    """The longest message that can be sent, in bytes. Default: 4,000,000."""
    progress_interval: int = 0
    """The number of parts after which ``recv_progress`` reports a large message. 0 is never."""
    protocol_version: Optional[int] = None
    """The version that ``connect`` announces first. Default: 6."""
    accepted_versions: Optional[Sequence[int]] = None
    """The versions that a server accepts, at most 8. Default: 6, 10 and 11."""
    outgoing_limit: Optional[int] = None
    """The most bits per second of each connection. Default: none."""
    cookies: Literal["automatic", "required", "off"] = "automatic"
    """When clients must prove their address: while many arrive at once, always, or never."""
    max_per_address: Optional[int] = None
    """The most connections of one address. Default: three quarters of max_incoming, none below 16."""
    max_per_network: Optional[int] = None
    """The most connections of one network. Default: seven eighths of max_incoming, none below 16."""
    trusted_proxies: Sequence[str] = field(default=())
    """Networks of relays that announce the addresses of their clients, such as "10.0.0.0/8"."""
    simulate: Union[Simulation, str, None] = None
    """A bad network: a Simulation, or a text such as "loss=5%,latency=50ms"."""
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
            raise TypeError("trusted_proxies is a list of networks, not one text")
        if not isinstance(self.security, (Security, type(None))):
            raise TypeError("security is a rakwire.Security")
        if self.simulate is not None:
            object.__setattr__(self, "simulate", str(self.simulate))
