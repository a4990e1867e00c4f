"""Endpoints: sockets that open and accept connections."""

from __future__ import annotations

from types import TracebackType
from typing import AsyncIterator, Dict, List, Literal, Optional, Tuple, Type, Union

from rakwire import _native
from rakwire._connection import Connection
from rakwire._errors import BindError, EndpointClosed
from rakwire._native import SecretKey
from rakwire._options import AddressLike, KnownServer, Options, octets, seconds, target, whole
from rakwire._types import (
    Address,
    Ban,
    EndpointStats,
    Pong,
    Priority,
    RefusedClient,
    RefuseReason,
    Reliability,
    UnconnectedMessage,
)

__all__ = ["Endpoint", "Incoming", "ping"]

_Bytes = Union[bytes, bytearray, memoryview]
Trust = Union[Literal["any"], bytes, KnownServer, None]
_PongFields = Tuple[str, int, int, float, bytes]


class Incoming:
    """A client that waits for a decision, if ``Options.defer_incoming`` is set.

    It is refused if the object is dropped without one. It can be decided about once.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Incoming) -> None:
        """Wrap a client of the driver. Programs get clients from ``Endpoint.incoming``."""
        self._native = native

    @property
    def remote_address(self) -> Address:
        """The address of the client."""
        return Address(*self._native.remote_address)

    @property
    def guid(self) -> int:
        """The GUID of the client, which it chose itself."""
        return self._native.guid

    def accept(self) -> None:
        """Admit the client. ``Endpoint.accept`` returns its connection once it is open."""
        self._native.accept()

    def refuse(self) -> None:
        """Refuse the client, as a full server does. It may try again."""
        self._native.refuse()

    def ignore(self) -> None:
        """Send no answer. If the client repeats its request, it is reported again."""
        self._native.ignore()


class Endpoint:
    """A UDP socket that opens and accepts connections, and pings servers.

    ``Endpoint.bind`` makes it. ``async for`` accepts connections, and ``async with`` closes it. Dropping the last
    reference keeps its connections open, and accepts no new ones.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.Endpoint) -> None:
        """Wrap an endpoint of the driver. Programs call ``Endpoint.bind``."""
        self._native = native

    @classmethod
    async def bind(cls, address: AddressLike = "0.0.0.0:0", options: Optional[Options] = None) -> Endpoint:
        """Bind a socket. Port 0 picks a free one; "[::]:0" reaches IPv4 and IPv6.

        :raises BindError: if the system refuses, for example because the port is in use.
        """
        return cls(await _native.Endpoint.bind(target(address), options or Options()))

    @property
    def local_address(self) -> Address:
        """The address of the socket."""
        return Address(*self._native.local_address)

    @property
    def guid(self) -> int:
        """The GUID of this endpoint, which is random."""
        return self._native.guid

    async def connect(
        self,
        address: Optional[AddressLike] = None,
        *,
        password: _Bytes = b"",
        timeout: Optional[float] = None,
        protocol_version: Optional[int] = None,
        trust: Trust = None,
        identity: Optional[SecretKey] = None,
        identity_data: _Bytes = b"",
        token: Optional[str] = None,
    ) -> Connection:
        """Open a connection, and wait until it is open. If the task is cancelled, the attempt ends.

        :param address: all addresses of a name are tried in turn. It can be left out with a token, which names servers.
        :param timeout: the limit of the attempt in seconds. By default a server has 6.5 seconds to answer.
        :param protocol_version: the only version to announce. By default that of the server is found out.
        :param trust: the key of the server to trust, which makes the connection secure: 32 bytes, a KnownServer, or
            "any" for encryption without knowing the server. It needs ``Options.security``.
        :param identity: the key that identifies this client in a secure connection.
        :param identity_data: at most 95 bytes that the server receives with the identity.
        :param token: a connect token of a backend, made for the public key of ``identity``.
        :raises ConnectError: if the server refuses or does not answer; ``reason`` says why.
        """
        if timeout is not None:
            seconds("timeout", timeout)
        if protocol_version is not None:
            whole("protocol_version", protocol_version, 0, 255)
        if address is None and token is None:
            raise TypeError("an address is needed, unless a token names the servers")
        octets("password", password)
        octets("identity_data", identity_data)
        arguments: Dict[str, object] = {
            "password": password,
            "timeout": timeout,
            "protocol_version": protocol_version,
            "credentials": _credentials(trust, identity, identity_data, token),
        }
        to = None if address is None else target(address)
        return Connection(await self._native.connect(to, arguments))

    async def accept(self) -> Connection:
        """Wait for the next incoming connection. A cancelled task loses none.

        :raises EndpointClosed: once the endpoint is closed.
        """
        return Connection(await self._native.accept())

    def __aiter__(self) -> AsyncIterator[Connection]:
        return self

    async def __anext__(self) -> Connection:
        try:
            return await self.accept()
        except EndpointClosed:
            raise StopAsyncIteration from None

    async def incoming(self) -> Incoming:
        """Wait for the next client that requests a connection. It needs ``Options.defer_incoming``.

        :raises EndpointClosed: once the endpoint is closed.
        """
        return Incoming(await self._native.incoming())

    async def refused_client(self) -> RefusedClient:
        """Wait for the next client that was refused for its password, identity or token.

        :raises EndpointClosed: once the endpoint is closed.
        """
        host, port, guid, reason, is_validated = await self._native.refused_client()
        return RefusedClient(Address(host, port), guid, RefuseReason(reason), is_validated)

    async def ping(self, address: AddressLike, *, timeout: float = 2.0) -> Pong:
        """Ping a server, and wait for its answer for at most ``timeout`` seconds.

        :raises PingError: if there is none.
        """
        seconds("timeout", timeout)
        return _pong(await self._native.ping(target(address), timeout))

    async def discover(
        self, address: AddressLike = "255.255.255.255:19132", *, only_open: bool = False, duration: float = 1.0
    ) -> List[Pong]:
        """Find the servers of a network by a broadcast, for ``duration`` seconds.

        :param address: the broadcast address with the port of the servers.
        :param only_open: True to find only servers that take further players.
        """
        seconds("duration", duration)
        return [_pong(found) for found in await self._native.discover(target(address), only_open, duration)]

    def set_advertisement(self, data: _Bytes) -> None:
        """Set the data of pongs, at most 399 bytes."""
        self._native.set_advertisement(data)

    def set_password(self, password: _Bytes) -> None:
        """Set the password that new clients need, at most 255 bytes. An empty one means none."""
        self._native.set_password(password)

    def ban(self, pattern: str, *, duration: Optional[float] = None) -> None:
        """Ban addresses. Connections that are open remain open.

        :param pattern: an address, one with a star such as "192.0.2.*", or a network such as "192.0.2.0/24".
        :param duration: in seconds. By default for ever.
        :raises RakwireError: if there are 64 bans already.
        """
        if duration is not None:
            seconds("duration", duration)
        self._native.ban(pattern, duration)

    def unban(self, pattern: str) -> bool:
        """Lift a ban. Return False if there is none of exactly this pattern."""
        return self._native.unban(pattern)

    def bans(self) -> List[Ban]:
        """Return the bans."""
        return [Ban(*ban) for ban in self._native.bans()]

    async def send_out_of_band(self, address: AddressLike, data: _Bytes) -> None:
        """Send 1 to 399 bytes to a peer without a connection. They may be lost."""
        await self._native.send_unconnected(target(address), data, False)

    async def advertise(self, address: AddressLike, data: _Bytes) -> None:
        """Send an advertisement of at most 398 bytes to a peer without a connection, or to a broadcast address."""
        await self._native.send_unconnected(target(address), data, True)

    async def recv_unconnected(self) -> UnconnectedMessage:
        """Wait for a message of a peer without a connection. It needs ``Options.out_of_band``.

        :raises EndpointClosed: once the endpoint is closed.
        """
        host, port, guid, is_advertisement, data = await self._native.recv_unconnected()
        return UnconnectedMessage(Address(host, port), guid, is_advertisement, data)

    def broadcast(
        self,
        data: _Bytes,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
        priority: Priority = Priority.MEDIUM,
        but: Optional[Connection] = None,
    ) -> int:
        """Send a message to all connections, or to all but one, and return how many have taken it.

        Those without room are skipped.
        """
        native = None if but is None else but._native
        sent, _ = self._native.broadcast(data, (reliability, channel, priority), native)
        return sent

    def stats(self) -> EndpointStats:
        """Return the counters of the endpoint."""
        return EndpointStats(**self._native.stats())

    async def flush(self) -> None:
        """Wait until everything that can be sent now was passed to the socket."""
        await self._native.flush()

    async def close(self) -> None:
        """Disconnect all connections, close the endpoint, and wait until its address is free again."""
        await self._native.close()

    async def wait_closed(self) -> None:
        """Wait until the endpoint has ended, after ``close``."""
        await self._native.wait_closed()

    async def __aenter__(self) -> Endpoint:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self._native.close()

    def __repr__(self) -> str:
        return f"<rakwire.Endpoint at {self.local_address}>"


def _credentials(
    trust: object, identity: Optional[SecretKey], identity_data: _Bytes, token: Optional[str]
) -> Dict[str, object]:
    """Return the security of an attempt to connect. A wrong value must not end as a plain connection."""
    if isinstance(trust, (bytes, bytearray, memoryview)):
        trust = KnownServer(bytes(trust))
    known = trust if isinstance(trust, KnownServer) else None
    if known is None and trust is not None and trust != "any":
        kind = ValueError if isinstance(trust, str) else TypeError
        raise kind('trust is "any", a public key of 32 bytes, or a KnownServer')
    if identity is not None and not isinstance(identity, SecretKey):
        raise TypeError("identity is a rakwire.SecretKey")
    if token is not None and not isinstance(token, str):
        raise TypeError("a token is a str")
    return {
        "trust_any": trust is not None and known is None,
        "server_key": known.key if known else None,
        "next_key_hash": known.next_key_hash if known else None,
        "identity": identity,
        "identity_data": identity_data,
        "token": token,
    }


def _pong(fields: _PongFields) -> Pong:
    host, port, guid, latency, data = fields
    return Pong(Address(host, port), guid, latency, data)


async def ping(address: AddressLike, *, timeout: float = 2.0) -> Pong:
    """Ping a server from a socket of its own, and wait for its answer for at most ``timeout`` seconds.

    :raises PingError: if there is none.
    """
    try:
        endpoint = await Endpoint.bind("[::]:0")
    except BindError:  # The system has no IPv6.
        endpoint = await Endpoint.bind()
    async with endpoint:
        return await endpoint.ping(address, timeout=timeout)
