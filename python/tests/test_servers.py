"""Tests of servers: admission, passwords, bans, pings, and messages without a connection."""

from __future__ import annotations

import asyncio

import pytest

import rakwire
from rakwire import ConnectFailure, Options, PingFailure, RefuseReason
from support import LOOPBACK, endpoints


async def _failure(client: rakwire.Endpoint, address: rakwire.AddressLike) -> rakwire.ConnectError:
    with pytest.raises(rakwire.ConnectError) as error:
        await client.connect(address)
    return error.value


async def test_a_full_server_refuses_clients() -> None:
    async with endpoints(Options(max_incoming=1)) as (server, client):
        here = await client.connect(server.local_address)
        async with await rakwire.Endpoint.bind(LOOPBACK) as other:
            error = await _failure(other, server.local_address)
            assert error.reason is ConnectFailure.SERVER_FULL
            assert str(error).endswith("the server is full; try again later")
            await here.disconnect()
            await other.connect(server.local_address)


async def test_a_second_connection_to_the_same_server_is_refused() -> None:
    async with endpoints() as (server, client):
        here = await client.connect(server.local_address)
        assert (await _failure(client, server.local_address)).reason is ConnectFailure.CONNECTED_ALREADY
        assert not here.is_closed


async def test_a_client_with_a_wrong_password_is_refused_and_reported() -> None:
    async with endpoints(Options(max_incoming=8, password=b"friends")) as (server, client):
        error = await _failure(client, server.local_address)
        assert error.reason is ConnectFailure.INVALID_PASSWORD and "ask the operator" in str(error)
        refused = await server.refused_client()
        assert (refused.address, refused.reason) == (client.local_address, RefuseReason.WRONG_PASSWORD)
        assert refused.guid == client.guid and server.stats().refused_clients == 1
        await client.connect(server.local_address, password=bytearray(b"friends"))
        server.set_password(b"")
        with pytest.raises(ValueError, match="255 bytes"):
            server.set_password(b"x" * 256)


async def test_banned_clients_are_refused_until_the_ban_is_removed() -> None:
    async with endpoints() as (server, client):
        server.ban("127.*", duration=3600)
        server.ban("192.0.2.0/24")
        first, second = sorted(server.bans(), key=lambda ban: ban.seconds is None)
        assert first.seconds is not None and 3590 < first.seconds <= 3600
        assert second == rakwire.Ban("192.0.2.0/24", None)
        assert (await _failure(client, server.local_address)).reason is ConnectFailure.BANNED
        assert server.unban("127.*") and not server.unban("127.*")
        await client.connect(server.local_address)
        with pytest.raises(ValueError, match="no such network"):
            server.ban("no such network")
        for number in range(63):
            server.ban(f"198.51.100.{number}")
        with pytest.raises(rakwire.RakwireError, match="remove a ban"):
            server.ban("203.0.113.1")


async def test_the_application_can_refuse_and_accept_clients() -> None:
    async with endpoints(Options(max_incoming=8, defer_incoming=True)) as (server, client):
        attempt = asyncio.create_task(client.connect(server.local_address))
        incoming = await server.incoming()
        assert (incoming.remote_address, incoming.guid) == (client.local_address, client.guid)
        incoming.refuse()
        with pytest.raises(RuntimeError, match="already accepted"):
            incoming.accept()
        with pytest.raises(rakwire.ConnectError) as error:
            await attempt
        assert error.value.reason is ConnectFailure.SERVER_FULL
        attempt = asyncio.create_task(client.connect(server.local_address))
        (await server.incoming()).accept()
        here, there = await asyncio.gather(attempt, server.accept())
        assert there.remote_address == client.local_address and here.remote_address == server.local_address


async def test_a_closed_port_is_reported_as_unreachable() -> None:
    async with await rakwire.Endpoint.bind(LOOPBACK) as gone:
        address = gone.local_address
    async with await rakwire.Endpoint.bind(LOOPBACK) as client:
        error = await _failure(client, address)
        assert error.reason is ConnectFailure.UNREACHABLE and "check the port" in str(error)
        with pytest.raises(rakwire.PingError) as ping:
            await client.ping(address, timeout=0.5)
        assert ping.value.reason is PingFailure.UNREACHABLE


async def test_servers_answer_pings_with_their_advertisement() -> None:
    async with endpoints(Options(max_incoming=8, advertisement=b"a game")) as (server, client):
        pong = await rakwire.ping(server.local_address)
        assert (pong.data, pong.guid, pong.address) == (b"a game", server.guid, server.local_address)
        assert 0 <= pong.latency < 2
        server.set_advertisement(b"")
        assert (await client.ping(str(server.local_address))).data == b""
        with pytest.raises(ValueError, match="399 bytes"):
            server.set_advertisement(b"x" * 400)


async def test_discover_returns_the_pongs_of_servers() -> None:
    async with endpoints(Options(max_incoming=8, advertisement=b"found")) as (server, client):
        found = await client.discover(server.local_address, duration=0.2)
        assert [(pong.address, pong.data) for pong in found] == [(server.local_address, b"found")]


async def test_peers_without_a_connection_exchange_messages() -> None:
    async with endpoints(Options(out_of_band=True)) as (server, client):
        await client.send_out_of_band(server.local_address, b"hello")
        await client.advertise(server.local_address, b"a game")
        messages = [await server.recv_unconnected() for _ in range(2)]
        assert sorted((message.is_advertisement, message.data) for message in messages) == [
            (False, b"hello"),
            (True, b"a game"),
        ]
        assert all(message.address == client.local_address and message.guid == client.guid for message in messages)
        with pytest.raises(rakwire.MessageError, match="1 to 399 bytes"):
            await client.send_out_of_band(server.local_address, b"")


async def test_a_port_in_use_is_reported() -> None:
    async with await rakwire.Endpoint.bind(LOOPBACK) as first:
        with pytest.raises(rakwire.BindError, match=f"cannot listen on {first.local_address}") as error:
            await rakwire.Endpoint.bind(first.local_address)
        assert isinstance(error.value, OSError) and error.value.errno is not None


async def test_statistics_and_properties_report_the_state_of_a_connection() -> None:
    async with endpoints() as (server, client):
        here = await client.connect(server.local_address)
        there = await server.accept()
        await here.send(b"\x86hello")
        await there.recv()
        await server.flush()
        stats = server.stats()
        assert stats.connections == 1 and stats.datagrams_received > 0 and stats.bytes_sent > 0
        assert here.mtu == 1492 and here.internal_addresses == [server.local_address]
        assert repr(here) == f"<rakwire.Connection to {server.local_address}, open>"
        assert repr(server) == f"<rakwire.Endpoint at {server.local_address}>"
        here.set_timeout(3)
        await here.disconnect()
        await here.disconnect()
        assert repr(here).endswith("closed: local>")
        with pytest.raises(rakwire.ConnectionClosed):
            here.set_timeout(3)


async def test_connecting_to_a_server_that_does_not_answer_times_out() -> None:
    async with endpoints(client=Options(simulate="loss=100%")) as (server, client):
        with pytest.raises(rakwire.ConnectError, match="check the address") as error:
            await client.connect(server.local_address, timeout=0.3)
        assert error.value.reason is ConnectFailure.NO_ANSWER


async def test_an_incompatible_protocol_version_is_refused_with_the_version_of_the_server() -> None:
    async with endpoints(Options(max_incoming=1, accepted_versions=[11])) as (server, client):
        with pytest.raises(rakwire.ConnectError, match="version 11; leave out protocol_version") as error:
            await client.connect(server.local_address, protocol_version=6)
        assert error.value.reason is ConnectFailure.PROTOCOL_VERSION
        await client.connect(server.local_address)
