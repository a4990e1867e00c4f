"""Fixtures: an event loop for each test, without a plugin of pytest."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any, Callable, Coroutine

import pytest

# No operation of these tests takes so long, unless it hangs.
LIMIT = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run a test that is a coroutine function in a loop of its own, with a limit."""
    function = pyfuncitem.obj
    if inspect.iscoroutinefunction(function):
        pyfuncitem.obj = _in_loop(function)


def _in_loop(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*arguments: object, **keywords: object) -> None:
        asyncio.run(asyncio.wait_for(function(*arguments, **keywords), LIMIT))

    return run
