"""The bridge between an event loop and the native threads."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import Any, Tuple

from rakwire import _native

# The bridge of each loop. The references are weak, because a bridge references futures of waiting tasks, and these
# futures reference the loop. Only the loop holds a strong reference to its bridge.
_bridges: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[_native.Bridge]]"
_bridges = weakref.WeakKeyDictionary()

# The interval in seconds at which a listening thread checks whether its loop still exists.
_LONGEST_WAIT = 5.0

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.after_fork_in_child)


def enter() -> Tuple[_native.Bridge, "asyncio.Future[Any]"]:
    """Return the bridge of the running loop, and a new future of the loop."""
    loop = asyncio.get_running_loop()
    reference = _bridges.get(loop)
    bridge = None if reference is None else reference()
    if bridge is None:
        bridge = _open(loop)
        _bridges[loop] = weakref.ref(bridge)
    return bridge, loop.create_future()


def _open(loop: asyncio.AbstractEventLoop) -> _native.Bridge:
    bridge = _native.Bridge()
    try:
        loop.add_reader(bridge.fileno(), bridge.wake)
    except NotImplementedError:
        # The default loop of Windows cannot watch sockets. Without a reader callback, the loop needs another strong
        # reference to the bridge.
        vars(loop)["_rakwire_bridge"] = bridge
        arguments = (bridge.watch(), weakref.ref(bridge), weakref.ref(loop))
        threading.Thread(target=_watch, args=arguments, name="rakwire-loop", daemon=True).start()
    return bridge


def _watch(
    watch: _native.Watch,
    bridge_ref: "weakref.ref[_native.Bridge]",
    loop_ref: "weakref.ref[asyncio.AbstractEventLoop]",
) -> None:
    is_listening = True
    while is_listening:
        error = None
        try:
            is_listening = watch.wait(_LONGEST_WAIT)
        except OSError as failure:
            error, is_listening = failure, False
        bridge, loop = bridge_ref(), loop_ref()
        if bridge is None or loop is None or loop.is_closed():
            return
        try:
            if error is not None:
                loop.call_soon_threadsafe(_fail, loop, bridge, error)
            elif is_listening:
                loop.call_soon_threadsafe(bridge.wake_waiting)
        except RuntimeError:  # The loop was closed just now.
            return
        del bridge, loop


def _fail(loop: asyncio.AbstractEventLoop, bridge: _native.Bridge, error: OSError) -> None:
    """Fail the pending calls of a loop whose thread can no longer listen. Later calls open another bridge."""
    if vars(loop).get("_rakwire_bridge") is bridge:
        del vars(loop)["_rakwire_bridge"]
        _bridges.pop(loop, None)
    bridge.fail(error)
