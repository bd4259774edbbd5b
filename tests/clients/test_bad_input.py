"""Bytes that are no request, or none we know, end one connection at most; nobody else notices."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.twinlog_process import TwinlogProcess, answers_api_versions

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

API_VERSIONS = 18
METADATA = 3
UNSUPPORTED_VERSION = 35

TLS_CLIENT_HELLO = bytes.fromhex("160301020001 0001fc0303") + bytes(range(200))
HTTP_REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

NO_REQUESTS = {
    "TLS bytes": TLS_CLIENT_HELLO,
    "an HTTP request": HTTP_REQUEST,
    "a negative size": struct.pack(">i", -1) + bytes(20),
    "the largest size": struct.pack(">i", 2**31 - 1) + bytes(20),
    "a size above socket.request.max.bytes": struct.pack(">i", 100 * 1024 * 1024 + 1) + bytes(20),
    "an empty frame": struct.pack(">i", 0),
    "a frame shorter than a header": struct.pack(">ih", 2, API_VERSIONS),
    "a frame of noise": struct.pack(">i", 64) + bytes(range(190, 254)),
    "an unknown API": struct.pack(">ihhih", 10, 9999, 0, 1, -1),
    "an unknown version of Metadata": struct.pack(">ihhih", 10, METADATA, 999, 1, -1),
    "a client id that reaches past the frame": struct.pack(">ihhih", 10, METADATA, 1, 1, 3000),
    "a client id of negative size": struct.pack(">ihhih", 10, METADATA, 1, 1, -7),
    "an array larger than its frame": struct.pack(">ihhihi", 14, METADATA, 1, 1, -1, 2_000_000_000),
    "a request cut short": struct.pack(">ihhih", 10, 19, 2, 1, -1),
}


@contextmanager
def connected(broker: TwinlogProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", broker.port), timeout=60) as connection:
        yield connection


def header(api_key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    """A whole frame with request header v1 and no client id."""
    frame = struct.pack(">hhih", api_key, version, correlation_id, -1) + body
    return struct.pack(">i", len(frame)) + frame


def receive_frame(connection: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", receive(connection, 4))
    return receive(connection, size)


def receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        assert piece, f"the broker closed after {len(received)} of {size} bytes"
        received += piece
    return received


def is_closed_by_peer(connection: socket.socket) -> bool:
    """True once the other side has hung up, politely or by a reset, without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", NO_REQUESTS.values(), ids=NO_REQUESTS.keys())
def test_what_is_no_request_ends_its_connection_and_no_other(
    broker: TwinlogProcess, sent: bytes
) -> None:
    with connected(broker) as bystander, connected(broker) as connection:
        connection.sendall(sent)
        assert is_closed_by_peer(connection)
        bystander.sendall(header(API_VERSIONS, 0, 5))
        assert receive_frame(bystander)[:6] == struct.pack(">ih", 5, 0)
    assert answers_api_versions(broker.port)


@pytest.mark.parametrize("version", [5 + 95, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_form(
    broker: TwinlogProcess, version: int
) -> None:
    with connected(broker) as connection:
        connection.sendall(header(API_VERSIONS, version, 42, b"\0\x02a\x02b\0"))
        answer = receive_frame(connection)
        correlation_id, error_code, count = struct.unpack_from(">ihi", answer)
        assert (correlation_id, error_code) == (42, UNSUPPORTED_VERSION)
        # v0 without throttle time: so many ranges of three int16, and nothing behind them.
        assert len(answer) == 10 + 6 * count
        ranges = list(struct.iter_unpack(">hhh", answer[10:]))
        assert API_VERSIONS in {api_key for api_key, _, _ in ranges}
        # The client asks again, on the same connection, for what it was told.
        connection.sendall(header(API_VERSIONS, 0, 43))
        assert receive_frame(connection)[:6] == struct.pack(">ih", 43, 0)


def test_a_frame_that_comes_byte_by_byte_is_a_request(broker: TwinlogProcess) -> None:
    with connected(broker) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in header(API_VERSIONS, 0, 9):
            connection.sendall(bytes([byte]))
        assert receive_frame(connection)[:6] == struct.pack(">ih", 9, 0)


def test_pipelined_requests_are_answered_in_order(broker: TwinlogProcess) -> None:
    with connected(broker) as connection:
        connection.sendall(b"".join(header(API_VERSIONS, n % 3, n) for n in range(200)))
        for number in range(200):
            assert receive_frame(connection)[:6] == struct.pack(">ih", number, 0)


def test_a_client_that_goes_away_in_the_middle_of_a_frame_is_forgotten(
    broker: TwinlogProcess,
) -> None:
    for _ in range(50):
        with connected(broker) as connection:
            connection.sendall(struct.pack(">i", 1000) + bytes(10))
    assert answers_api_versions(broker.port)
