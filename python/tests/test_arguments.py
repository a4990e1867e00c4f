"""Tests that arguments of wrong types and values raise exceptions and have no other effect."""

from __future__ import annotations

from typing import Any, Dict

import pytest

import rakwire
from rakwire import Options, Simulation
from support import LOOPBACK, connected


@pytest.mark.parametrize(
    "keywords",
    [
        {"max_incoming": -1},
        {"max_incoming": 65536},
        {"mtu": 575},
        {"mtu": 1493},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"close_timeout": float("inf")},
        {"handshake_timeout": 1e10},
        {"progress_interval": 2**32},
        {"max_message_length": 0},
        {"protocol_version": 256},
        {"accepted_versions": [256]},
        {"outgoing_limit": 0},
    ],
)
def test_options_outside_their_range_are_refused(keywords: Dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(keywords)).split("_versions")[0].replace("accepted", "version")):
        Options(**keywords)


@pytest.mark.parametrize(
    "keywords",
    [
        {"max_incoming": "8"},
        {"max_incoming": 8.0},
        {"max_incoming": True},
        {"timeout": "1"},
        {"accepted_versions": "6"},
        {"trusted_proxies": "10.0.0.0/8"},
        {"security": object()},
        {"advertisement": 5},
    ],
)
def test_options_of_wrong_types_are_refused(keywords: Dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Options(**keywords)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Options(password=b"x" * 256), "255 bytes"),
        (Options(advertisement=b"x" * 400), "399 bytes"),
        (Options(accepted_versions=list(range(9))), "at most 8"),
        (Options(trusted_proxies=["everywhere"]), "everywhere"),
        (Options(simulate="rain=5%"), "rain"),
        (Options(cookies="chocolate"), "automatic"),  # type: ignore[arg-type]
    ],
)
async def test_binding_with_invalid_options_fails(options: Options, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        await rakwire.Endpoint.bind(LOOPBACK, options)


async def test_bind_refuses_objects_that_are_not_options() -> None:
    wrong: Any
    for wrong in (object(), {"max_incoming": 1}):
        with pytest.raises((TypeError, AttributeError)):
            await rakwire.Endpoint.bind(LOOPBACK, wrong)
    with pytest.raises(TypeError, match="encode"):
        Options(password="friends")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "address", ["", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:-1", ":5", "a:b"]
)
async def test_invalid_address_strings_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        await rakwire.Endpoint.bind(address)


@pytest.mark.parametrize("address", [None, 5, b"127.0.0.1:5", ("127.0.0.1",), (1, 2), ("127.0.0.1", "5"), ["a", 1]])
async def test_addresses_of_wrong_types_are_refused(address: Any) -> None:
    with pytest.raises(TypeError):
        await rakwire.Endpoint.bind(address)


async def test_ports_of_tuples_must_be_in_range() -> None:
    with pytest.raises(ValueError, match="0 to 65535"):
        await rakwire.Endpoint.bind(("127.0.0.1", 65536))


async def test_unresolvable_host_names_are_reported() -> None:
    with pytest.raises(rakwire.BindError, match="cannot resolve"):
        await rakwire.Endpoint.bind("no-such-host.invalid:0")
    async with await rakwire.Endpoint.bind(LOOPBACK) as client:
        with pytest.raises(rakwire.ConnectError) as error:
            await client.connect("no-such-host.invalid:19132")
        assert error.value.reason is rakwire.ConnectFailure.UNRESOLVED


@pytest.mark.parametrize("data", [None, 5, 5.0, [1, 2], "text", object()])
async def test_messages_of_wrong_types_are_refused(data: Any) -> None:
    async with connected() as (here, there):
        with pytest.raises(TypeError):
            await here.send(data)
        with pytest.raises(TypeError):
            here.try_send(data)
        await here.send(b"\x86still open")
        assert (await there.recv()).data == b"\x86still open"


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"reliability": 8}, ValueError),
        ({"reliability": -1}, OverflowError),
        ({"reliability": 256}, OverflowError),
        ({"reliability": "reliable"}, TypeError),
        ({"reliability": None}, TypeError),
        ({"channel": 32}, ValueError),
        ({"channel": -1}, OverflowError),
        ({"channel": 1.5}, TypeError),
        ({"priority": 4}, ValueError),
        ({"priority": 10**30}, OverflowError),
    ],
)
async def test_invalid_deliveries_are_refused(keywords: Dict[str, Any], error: type) -> None:
    async with connected() as (here, _):
        with pytest.raises(error):
            await here.send(b"\x86", **keywords)


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"password": "friends"}, TypeError),
        ({"password": b"x" * 256}, ValueError),
        ({"timeout": -1}, ValueError),
        ({"protocol_version": 1000}, ValueError),
        ({"trust": "some"}, ValueError),
        ({"trust": b"short"}, ValueError),
        ({"trust": "any"}, ValueError),
        ({"trust": 5}, TypeError),
        ({"identity": b"key"}, TypeError),
        ({"token": "rakwire-connect-token-1:nonsense", "identity": rakwire.SecretKey.generate()}, ValueError),
        ({"token": 5}, TypeError),
    ],
)
async def test_connecting_with_invalid_arguments_is_refused(keywords: Dict[str, Any], error: type) -> None:
    async with await rakwire.Endpoint.bind(LOOPBACK) as client:
        with pytest.raises(error):
            await client.connect("127.0.0.1:9", **keywords)
        with pytest.raises(TypeError, match="address is needed"):
            await client.connect()


@pytest.mark.parametrize(
    "keywords", [{"loss": 1.1}, {"loss": -0.1}, {"latency": 61}, {"jitter": float("nan")}, {"seed": -1}]
)
def test_simulation_values_outside_their_range_are_refused(keywords: Dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Simulation(**keywords)


def test_a_simulation_is_formatted_without_loss_of_precision() -> None:
    text = str(Simulation(loss=0.000001, latency=0.05, jitter=1e-6, seed=2**64 - 1))
    assert text.startswith("loss=0.000001000,") and text.endswith(
        f"latency=0.050000s,jitter=0.000001s,seed={2**64 - 1}"
    )


def test_native_classes_cannot_be_constructed() -> None:
    for hidden in (rakwire.Message, rakwire.SecretKey, rakwire.TokenKey):
        with pytest.raises(TypeError):
            hidden()


async def test_polling_an_operation_without_a_running_loop_fails() -> None:
    async with await rakwire.Endpoint.bind(LOOPBACK) as endpoint:
        operation = endpoint._native.flush()
    import threading

    errors = []

    def call() -> None:
        try:
            next(operation)
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert errors == ["no running event loop"]
