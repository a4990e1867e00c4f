"""Connections."""

from __future__ import annotations

from types import TracebackType
from typing import AsyncIterator, List, Optional, Type, Union

from rakwire import _native
from rakwire._errors import ConnectionClosed
from rakwire._native import Message, Operation
from rakwire._options import seconds
from rakwire._types import (
    Address,
    ConnectionStats,
    DisconnectReason,
    Outcome,
    Priority,
    Progress,
    Reliability,
    SecurePeer,
)

__all__ = ["Connection"]

_Bytes = Union[bytes, bytearray, memoryview]


class Connection:
    """An open connection to a peer.

    ``Endpoint.connect`` and ``Endpoint.accept`` return it. ``async for`` receives its messages until it ends, and
    ``async with`` disconnects it. It also disconnects, without waiting, when the last reference to it is gone.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.Connection) -> None:
        """Wrap a connection of the driver. Programs get connections from an endpoint."""
        self._native = native

    async def send(
        self,
        data: _Bytes,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
        priority: Priority = Priority.MEDIUM,
    ) -> Optional[int]:
        """Send a message, and wait while there is no room for it.

        The first byte is its message id; those of applications begin at 0x86. When this returns, the message is queued
        and not yet delivered. If the task is cancelled, nothing is sent.

        :param channel: 0 to 31: ordered and sequenced messages keep an order for each channel.
        :returns: the number of the receipt, if the reliability has one.
        :raises MessageError: if the message is empty, too long, or begins with a byte below 0x1B.
        :raises ConnectionClosed: if the connection has ended.
        """
        sent = self._native.send(data, reliability, channel, priority)
        if isinstance(sent, Operation):
            return await sent
        return sent

    def try_send(
        self,
        data: _Bytes,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
        priority: Priority = Priority.MEDIUM,
    ) -> Optional[int]:
        """Send a message like ``send``, without waiting.

        :raises NoRoom: if there is no room until earlier messages are acknowledged.
        """
        return self._native.try_send(data, reliability, channel, priority)

    async def recv(self) -> Message:
        """Wait for the next message. A cancelled task loses none.

        :raises ConnectionClosed: once the connection has ended and all messages were received.
        """
        message = self._native.recv()
        if isinstance(message, Operation):
            return await message
        return message

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        try:
            message = self._native.recv()
            if isinstance(message, Operation):
                return await message
            return message
        except ConnectionClosed:
            raise StopAsyncIteration from None

    async def recv_receipt(self) -> Outcome:
        """Wait for the next outcome of a message that was sent with a receipt.

        :raises ConnectionClosed: once the connection has ended and all outcomes were received.
        """
        return Outcome(*await self._native.recv_receipt())

    async def recv_progress(self) -> Progress:
        """Wait for the progress of a large message. It needs ``Options.progress_interval``.

        :raises ConnectionClosed: once the connection has ended.
        """
        return Progress(*await self._native.recv_progress())

    async def mtu_changed(self) -> int:
        """Wait until the MTU has changed, because the path carries less, and return it.

        :raises ConnectionClosed: once the connection has ended.
        """
        return await self._native.mtu_changed()

    async def disconnect(
        self,
        message: Optional[_Bytes] = None,
        *,
        reliability: Reliability = Reliability.RELIABLE_ORDERED,
        channel: int = 0,
    ) -> None:
        """Close the connection, and wait until it has ended.

        Reliable messages that were sent before are delivered first, within ``Options.close_timeout``. ``message`` is a
        last message, such as the reason. A connection that has ended already is no error, unless there is a message.
        """
        await self._native.disconnect(message, reliability, channel)

    async def wait_closed(self) -> DisconnectReason:
        """Wait until the connection has ended, and return the reason."""
        return DisconnectReason(await self._native.wait_closed())

    @property
    def is_closed(self) -> bool:
        """True once the connection has ended. Messages that arrived before can still be received."""
        return self._native.closed_reason is not None

    @property
    def closed_reason(self) -> Optional[DisconnectReason]:
        """The reason why the connection ended, or None while it is open."""
        reason = self._native.closed_reason
        return None if reason is None else DisconnectReason(reason)

    @property
    def remote_address(self) -> Address:
        """The address of the peer."""
        return Address(*self._native.remote_address)

    @property
    def internal_addresses(self) -> List[Address]:
        """The addresses that the peer announced as its own, which can be wrong."""
        return [Address(*address) for address in self._native.internal_addresses]

    @property
    def guid(self) -> int:
        """The GUID of the peer, which it chose itself."""
        return self._native.guid

    @property
    def max_message_length(self) -> Optional[int]:
        """The longest message in bytes, or None once the connection has ended."""
        return self._native.max_message_length

    @property
    def mtu(self) -> Optional[int]:
        """The MTU in bytes with 28 bytes of headers, or None once the connection has ended."""
        return self._native.mtu

    @property
    def round_trip(self) -> Optional[float]:
        """The smoothed round-trip time in seconds, or None before the first measurement and after the end."""
        return self._native.round_trip

    def set_timeout(self, timeout: float) -> None:
        """Set how many seconds the peer may be silent while it owes an acknowledgement.

        :raises ConnectionClosed: if the connection has ended.
        """
        seconds("timeout", timeout)
        self._native.set_timeout(timeout)

    def stats(self) -> Optional[ConnectionStats]:
        """Return the counters and measurements, or None once the connection has ended."""
        stats = self._native.stats()
        return None if stats is None else ConnectionStats(**stats)

    def secure_peer(self) -> Optional[SecurePeer]:
        """Return the key, identity and token of the peer, or None if the connection is not secure."""
        peer = self._native.secure_peer()
        return None if peer is None else SecurePeer(**peer)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self._native.disconnect(None, Reliability.RELIABLE_ORDERED, 0)

    def __repr__(self) -> str:
        reason = self._native.closed_reason
        state = "open" if reason is None else f"closed: {reason}"
        return f"<rakwire.Connection to {self.remote_address}, {state}>"
