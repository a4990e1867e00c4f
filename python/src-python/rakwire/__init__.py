"""RakNet over UDP for Python, with asyncio.

An :class:`Endpoint` is a socket that opens and accepts connections. A :class:`Connection` sends and receives messages::

    endpoint = await rakwire.Endpoint.bind()
    connection = await endpoint.connect("127.0.0.1:19132")
    await connection.send(b"\\x86hello")
    print((await connection.recv()).data)

Objects may be used from any thread and any event loop. A process forked after the first endpoint was bound cannot use
the package; start processes with the multiprocessing method "spawn" instead.
"""

from rakwire._connection import Connection
from rakwire._endpoint import Endpoint, Incoming, ping
from rakwire._errors import (
    BindError,
    ConnectError,
    ConnectionClosed,
    EndpointClosed,
    ForkError,
    MessageError,
    NoRoom,
    PingError,
    RakwireError,
)
from rakwire._native import VERSION as __version__
from rakwire._native import Message, SecretKey, TokenKey, create_token
from rakwire._options import AddressLike, KnownServer, Options, Security, Simulation
from rakwire._types import (
    Address,
    Ban,
    ConnectFailure,
    ConnectionStats,
    DisconnectReason,
    EndpointStats,
    Outcome,
    PingFailure,
    Pong,
    Priority,
    Progress,
    RefusedClient,
    RefuseReason,
    Reliability,
    SecurePeer,
    UnconnectedMessage,
)

__all__ = [
    "Address",
    "AddressLike",
    "Ban",
    "BindError",
    "ConnectError",
    "ConnectFailure",
    "Connection",
    "ConnectionClosed",
    "ConnectionStats",
    "DisconnectReason",
    "Endpoint",
    "EndpointClosed",
    "EndpointStats",
    "ForkError",
    "Incoming",
    "KnownServer",
    "Message",
    "MessageError",
    "NoRoom",
    "Options",
    "Outcome",
    "PingError",
    "PingFailure",
    "Pong",
    "Priority",
    "Progress",
    "RakwireError",
    "RefuseReason",
    "RefusedClient",
    "Reliability",
    "SecretKey",
    "SecurePeer",
    "Security",
    "Simulation",
    "TokenKey",
    "UnconnectedMessage",
    "__version__",
    "create_token",
    "ping",
]
