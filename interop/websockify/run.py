"""Runs websockify with the arguments of its own command."""

from websockify import websocketproxy

# Version 0.13.0 reads this attribute, which its server class lacks with `--libserver`.
websocketproxy.LibProxyServer.unix_listen = None

websocketproxy.websockify_init()
