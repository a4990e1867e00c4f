"""Tests of secure connections, keys and connect tokens."""

from __future__ import annotations

import pathlib
import time

import pytest

import rakwire
from rakwire import ConnectFailure, KnownServer, Options, SecretKey, Security, TokenKey
from support import endpoints


async def test_a_secure_connection_identifies_both_sides() -> None:
    key, identity = SecretKey.generate(), SecretKey.generate()
    server_options = Options(max_incoming=8, security=Security(server_key=key, requires_identity=True))
    async with endpoints(server_options, Options(security=Security())) as (server, client):
        here = await client.connect(
            server.local_address, trust=key.public_key, identity=identity, identity_data=b"player 7"
        )
        there = await server.accept()
        await here.send(b"\x86secret")
        assert (await there.recv()).data == b"\x86secret"
        known, player = here.secure_peer(), there.secure_peer()
        assert known is not None and known.key == key.public_key
        assert player is not None and (player.key, player.identity_data) == (identity.public_key, b"player 7")
        assert player.token_user_id is None
        await here.disconnect()
        await client.connect(server.local_address, trust=KnownServer(key.public_key), identity=identity)


async def test_clients_that_trust_another_key_or_are_unencrypted_are_refused() -> None:
    key = SecretKey.generate()
    server_options = Options(max_incoming=8, security=Security(server_key=key, requires_security=True))
    async with endpoints(server_options, Options(security=Security())) as (server, client):
        with pytest.raises(rakwire.ConnectError) as error:
            await client.connect(server.local_address, trust=SecretKey.generate().public_key)
        assert error.value.reason is ConnectFailure.PUBLIC_KEY_MISMATCH
        with pytest.raises(rakwire.ConnectError, match="pass trust") as error:
            await client.connect(server.local_address)
        assert error.value.reason is ConnectFailure.SECURITY_REQUIRED
        assert (await client.connect(server.local_address, trust="any")).secure_peer() is not None


async def test_a_connect_token_can_be_used_only_once() -> None:
    key, token_key, player = SecretKey.generate(), TokenKey.generate(), SecretKey.generate()
    security = Security(server_key=key, token_keys=[token_key])
    async with endpoints(Options(max_incoming=8, security=security), Options(security=Security())) as (server, client):
        expires = int(time.time()) + 60
        token = rakwire.create_token(
            token_key,
            user_id=42,
            expires=expires,
            client_key=player.public_key,
            servers=[(key.public_key, str(server.local_address))],
            user_data=b"red team",
        )
        here = await client.connect(token=token, identity=player)
        peer = (await server.accept()).secure_peer()
        assert peer is not None
        assert (peer.token_user_id, peer.token_expires, peer.token_data) == (42, expires, b"red team")
        await here.disconnect()
        with pytest.raises(rakwire.ConnectError) as error:
            await client.connect(token=token, identity=player)
        assert error.value.reason is ConnectFailure.INVALID_PASSWORD
        assert (await server.refused_client()).reason is rakwire.RefuseReason.TOKEN_USED
        with pytest.raises(ValueError, match="needs the identity"):
            await client.connect(token=token)


def test_keys_can_be_written_to_files_and_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "server.key"
    key = SecretKey.create_file(path)
    assert SecretKey.read_file(str(path)).public_key == key.public_key
    assert path.stat().st_mode & 0o077 == 0
    assert key.public_key.hex() in repr(key)
    with pytest.raises(FileExistsError):
        SecretKey.create_file(path)
    with pytest.raises(FileNotFoundError):
        SecretKey.read_file(tmp_path / "nothing")
    with pytest.raises(ValueError, match="another prefix"):
        TokenKey.read_file(path)
    TokenKey.create_file(tmp_path / "token.key")
    assert repr(TokenKey.read_file(tmp_path / "token.key")) == "<TokenKey>"
    assert SecretKey.from_bytes(bytes(32)).public_key != SecretKey.from_bytes(b"\x01" * 32).public_key


def test_malformed_tokens_and_keys_are_refused() -> None:
    key = TokenKey.from_bytes(bytes(32))
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        SecretKey.from_bytes(bytes(31))
    with pytest.raises(ValueError, match="1 to 4 servers"):
        rakwire.create_token(key, user_id=1, expires=1, client_key=bytes(32), servers=[])
    with pytest.raises(ValueError, match="32 bytes"):
        rakwire.create_token(key, user_id=1, expires=1, client_key=b"short", servers=[(bytes(32), "a:1")])
    with pytest.raises(ValueError):
        rakwire.create_token(
            key, user_id=1, expires=1, client_key=bytes(32), servers=[(bytes(32), "a:1")], user_data=bytes(129)
        )


async def test_security_requirements_need_a_server_key() -> None:
    for security in (Security(requires_security=True), Security(token_keys=[TokenKey.generate()])):
        with pytest.raises(ValueError, match="need a server_key"):
            await rakwire.Endpoint.bind("127.0.0.1:0", Options(security=security))
    keys = [TokenKey.generate() for _ in range(5)]
    with pytest.raises(ValueError, match="at most 4"):
        security = Security(server_key=SecretKey.generate(), token_keys=keys)
        await rakwire.Endpoint.bind("127.0.0.1:0", Options(security=security))
