"""Lets the kernel find out about peers that are gone without a word."""

import asyncio
import socket


def keep_alive(transport: asyncio.Transport) -> None:
    """Turn on TCP keep-alive, as Kafka's brokers and clients do."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
