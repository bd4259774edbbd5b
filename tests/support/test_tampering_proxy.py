"""The proxy does to answers what it says, proved against a small echo of frames."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from support.tampering_proxy import TamperingProxy


def _frame(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


@pytest.fixture
def proxy() -> Iterator[TamperingProxy]:
    with socket.create_server(("127.0.0.1", 0)) as echo:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=_echo, args=(echo.accept()[0],), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        made = TamperingProxy(echo.getsockname()[1])
        made.start()
        yield made
        made.stop()


def _echo(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        while some := connection.recv(4096):
            connection.sendall(some)


def _talk(proxy: TamperingProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=60)


def _ask(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(_frame(text))
    received = b""
    while len(received) < 4 + len(text):
        some = connection.recv(4096)
        if not some:
            break
        received += some
    return received[4:]


def test_frames_pass_unchanged_until_one_holds_the_marker(proxy: TamperingProxy) -> None:
    proxy.spoil(b"mark")
    with _talk(proxy) as connection:
        assert _ask(connection, b"plain") == b"plain"
        assert _ask(connection, b"a markA") == b"a markQ"
    assert proxy.spoilt_count == 1


def test_a_cut_closes_and_refuses_until_it_is_healed(proxy: TamperingProxy) -> None:
    with _talk(proxy) as connection:
        assert _ask(connection, b"1") == b"1"
        proxy.cut()
        with suppress(ConnectionError):
            assert _ask(connection, b"2") == b""
    with pytest.raises(OSError, match="refused"):
        _talk(proxy)
    proxy.heal()
    with _talk(proxy) as connection:
        assert _ask(connection, b"3") == b"3"


def test_a_silent_connection_stays_open_and_silent_while_new_ones_heal(
    proxy: TamperingProxy,
) -> None:
    with _talk(proxy) as old:
        assert _ask(old, b"1") == b"1"
        proxy.fall_silent()
        old.settimeout(0.2)
        with pytest.raises(TimeoutError):
            _ask(old, b"2")
        proxy.heal()
        with _talk(proxy) as new:
            assert _ask(new, b"3") == b"3"
        with pytest.raises(TimeoutError):
            _ask(old, b"4")


def test_a_slow_line_takes_its_time_and_one_that_breaks_ends_inside_an_answer(
    proxy: TamperingProxy,
) -> None:
    text = b"x" * 4_000
    proxy.limp(bytes_per_s=20_000, delay_s=0.05)
    with _talk(proxy) as slow:
        begun_s = time.monotonic()
        assert _ask(slow, text) == text
        assert time.monotonic() - begun_s > 0.2
    proxy.limp(bytes_per_s=0, delay_s=0, cut_at_bytes=6_000)
    with _talk(proxy) as broken:
        assert _ask(broken, b"y" * 5_000) == b"y" * 5_000
        assert len(_ask(broken, b"z" * 70_000)) < 70_000
    proxy.run_well()
    with _talk(proxy) as good:
        assert _ask(good, b"w" * 70_000) == b"w" * 70_000
