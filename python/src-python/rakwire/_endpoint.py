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
    """A client that waits for a decision. Requires ``Options.defer_incoming``.

    Call one of its methods once. If the object is dropped without a decision, the client is refused.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Incoming) -> None:
        """Wrap a native client. Applications get clients from ``Endpoint.incoming`` instead."""
        self._native = native

    @property
    def remote_address(self) -> Address:
        """The address of the client."""
        return Address(*self._native.remote_address)

    @property
    def guid(self) -> int:
        """The GUID that the client chose. It is not authenticated."""
        return self._native.guid

    def accept(self) -> None:
        """Accept the client. ``Endpoint.accept`` returns its connection once it is open."""
        self._native.accept()

    def refuse(self) -> None:
        """Refuse the client with the reply "server full". It may retry."""
        self._native.refuse()

    def ignore(self) -> None:
        """Ignore the client without a reply. If it retries, it is reported again."""
        self._native.ignore()


class Endpoint:
    """A UDP socket that opens and accepts connections, and pings servers.

    ``Endpoint.bind`` creates endpoints. ``async for`` accepts connections, and ``async with`` closes the endpoint at
    the end of its block. When the last reference is dropped, the endpoint accepts no new connections, but existing ones
    stay open.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.Endpoint) -> None:
        """Wrap a native endpoint. Applications call ``Endpoint.bind`` instead."""
        self._native = native

    @classmethod
    async def bind(cls, address: AddressLike = "0.0.0.0:0", options: Optional[Options] = None) -> Endpoint:
        """Bind a socket.

        :param address: the local address. Port 0 selects a free port; the host "[::]" supports both IPv4 and IPv6.
        :raises BindError: if the operating system refuses, for example because the port is in use.
        """
        return cls(await _native.Endpoint.bind(target(address), options or Options()))

    @property
    def local_address(self) -> Address:
        """The local address of the socket, with the actual port."""
        return Address(*self._native.local_address)

    @property
    def guid(self) -> int:
        """The GUID of this endpoint, a random number."""
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
        """Open a connection, and wait until it is open. Cancelling the task cancels the attempt.

        :param address: the address of the server. All addresses of a host name are tried in order. Optional with a
            token, which lists the servers.
        :param timeout: the time limit of the attempt in seconds. By default, the server must answer within 6.5 seconds.
        :param protocol_version: the only protocol version to use. By default, the version of the server is detected.
        :param trust: the server to trust, which makes the connection secure: a public key of 32 bytes, a KnownServer,
            or "any", which protects only against eavesdropping. Requires ``Options.security``.
        :param identity: the key that identifies this client in a secure connection.
        :param identity_data: data sent to the server with the identity, at most 95 bytes.
        :param token: a connect token that a backend created for the public key of ``identity``.
        :raises ConnectError: if the server refuses or does not answer.
        """
        if timeout is not None:
            seconds("timeout", timeout)
        if protocol_version is not None:
            whole("protocol_version", protocol_version, 0, 255)
        if address is None and token is None:
            raise TypeError("an address is needed, unless a token lists the servers")
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
        """Wait for the next incoming connection. If the task is cancelled, no connection is lost.

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
        """Wait for the next client that requests a connection. Requires ``Options.defer_incoming``.

        :raises EndpointClosed: once the endpoint is closed.
        """
        return Incoming(await self._native.incoming())

    async def refused_client(self) -> RefusedClient:
        """Wait for the next client that was refused because of its password, identity or token.

        :raises EndpointClosed: once the endpoint is closed.
        """
        host, port, guid, reason, is_validated = await self._native.refused_client()
        return RefusedClient(Address(host, port), guid, RefuseReason(reason), is_validated)

    async def ping(self, address: AddressLike, *, timeout: float = 2.0) -> Pong:
        """Ping a server, and wait at most ``timeout`` seconds for its pong.

        :raises PingError: if there is no pong.
        """
        seconds("timeout", timeout)
        return _pong(await self._native.ping(target(address), timeout))

    async def discover(
        self, address: AddressLike = "255.255.255.255:19132", *, only_open: bool = False, duration: float = 1.0
    ) -> List[Pong]:
        """Ping all servers of the local network by broadcast, and collect their pongs for ``duration`` seconds.

        :param address: the broadcast address, with the port of the servers.
        :param only_open: True to find only servers that have capacity for another client.
        """
        seconds("duration", duration)
        return [_pong(found) for found in await self._native.discover(target(address), only_open, duration)]

    def set_advertisement(self, data: _Bytes) -> None:
        """Set the data that this endpoint sends in its pongs, at most 399 bytes."""
        self._native.set_advertisement(data)

    def set_password(self, password: _Bytes) -> None:
        """Set the password that new clients must send, at most 255 bytes; empty for none."""
        self._native.set_password(password)

    def ban(self, pattern: str, *, duration: Optional[float] = None) -> None:
        """Ban addresses. Existing connections stay open.

        :param pattern: an address, a wildcard such as "192.0.2.*", or a network such as "192.0.2.0/24".
        :param duration: the duration of the ban in seconds. By default, the ban is permanent.
        :raises RakwireError: if there are already 64 bans.
        """
        if duration is not None:
            seconds("duration", duration)
        self._native.ban(pattern, duration)

    def unban(self, pattern: str) -> bool:
        """Remove the ban of exactly this pattern. Return False if there is no such ban."""
        return self._native.unban(pattern)

    def bans(self) -> List[Ban]:
        """Return the current bans."""
        return [Ban(*ban) for ban in self._native.bans()]

    async def send_out_of_band(self, address: AddressLike, data: _Bytes) -> None:
        """Send 1 to 399 bytes, unreliably, to a peer without a connection."""
        await self._native.send_unconnected(target(address), data, False)

    async def advertise(self, address: AddressLike, data: _Bytes) -> None:
        """Send an advertisement of at most 398 bytes to a peer without a connection, or to a broadcast address."""
        await self._native.send_unconnected(target(address), data, True)

    async def recv_unconnected(self) -> UnconnectedMessage:
        """Wait for a message from a peer without a connection. Requires ``Options.out_of_band``.

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
        """Queue a message for all connections except ``but``. Return the number of connections that accepted it.

        Connections whose send memory is full are skipped.
        """
        native = None if but is None else but._native
        sent, _ = self._native.broadcast(data, (reliability, channel, priority), native)
        return sent

    def stats(self) -> EndpointStats:
        """Return the counters of the endpoint."""
        return EndpointStats(**self._native.stats())

    async def flush(self) -> None:
        """Wait until the socket has taken all datagrams that congestion control allows now."""
        await self._native.flush()

    async def close(self) -> None:
        """Disconnect all connections, close the endpoint, and wait until its address can be bound again."""
        await self._native.close()

    async def wait_closed(self) -> None:
        """Wait until ``close`` has completed."""
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
    """Return the security arguments of an attempt. An invalid value must not result in an unencrypted connection."""
    if isinstance(trust, (bytes, bytearray, memoryview)):
        trust = KnownServer(bytes(trust))
    known = trust if isinstance(trust, KnownServer) else None
    if known is None and trust is not None and trust != "any":
        kind = ValueError if isinstance(trust, str) else TypeError
        raise kind('trust must be "any", a public key of 32 bytes, or a KnownServer')
    if identity is not None and not isinstance(identity, SecretKey):
        raise TypeError("identity must be a rakwire.SecretKey")
    if token is not None and not isinstance(token, str):
        raise TypeError("token must be a str")
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
    """Ping a server from a new socket, and wait at most ``timeout`` seconds for its pong.

    :raises PingError: if there is no pong.
    """
    try:
        endpoint = await Endpoint.bind("[::]:0")
    except BindError:  # The system has no IPv6.
        endpoint = await Endpoint.bind()
    async with endpoint:
        return await endpoint.ping(address, timeout=timeout)
