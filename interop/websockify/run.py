"""Runs websockify with the arguments of its own command."""

from websockify.websocketproxy import websockify_init

websockify_init()
