"""Runs coroutine tests in an event loop, without a pytest plugin."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any, Callable, Coroutine

import pytest

# The timeout of each test in seconds.
LIMIT = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run a coroutine test in its own loop, with a timeout."""
    function = pyfuncitem.obj
    if inspect.iscoroutinefunction(function):
        pyfuncitem.obj = _in_loop(function)


def _in_loop(function: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(function)
    def run(*arguments: object, **keywords: object) -> None:
        asyncio.run(asyncio.wait_for(function(*arguments, **keywords), LIMIT))

    return run
