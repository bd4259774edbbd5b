import asyncio
import logging
import struct
from collections.abc import Awaitable

import pytest

from support.listening import FrameClient, connected, echo, eventually, framed, listening
from twinlog.model.errors import WireError
from twinlog.network.connection import QUEUED_FRAMES_MAX, Limits
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer


async def test_a_request_is_answered() -> None:
    async with listening(echo) as listener, connected(listener.port) as client:
        await client.send(b"request one")
        assert await client.receive() == b"request one"


async def test_the_handler_is_told_who_asks() -> None:
    peers: list[Peer] = []

    def note(frame: Buffer, peer: Peer) -> Parts:
        peers.append(peer)
        peer.state["asked"] = peer.state.get("asked", 0) + 1
        return echo(frame, peer)

    async with listening(note) as listener, connected(listener.port) as client:
        await client.send(b"request one", b"request two")
        await client.receive()
        await client.receive()
        assert peers[0] is peers[1]
        assert (peers[0].host, peers[0].listener, peers[0].principal) == (
            "127.0.0.1",
            "PLAINTEXT",
            "ANONYMOUS",
        )
        assert peers[0].state == {"asked": 2}
        assert str(peers[0]) == f"127.0.0.1:{client.own_port}"


async def test_pipelined_requests_are_answered_in_order_whether_they_wait_or_not() -> None:
    async def later(frame: Buffer) -> Parts:
        await asyncio.sleep(0)
        return [framed(b"later " + frame)]

    def mixed(frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts] | None:
        number = int(bytes(frame[-3:]))
        if number % 3 == 0:
            return later(frame)
        return None if number % 3 == 1 else echo(frame, peer)

    async with listening(mixed) as listener, connected(listener.port) as client:
        await client.send(*[b"frame %03d" % number for number in range(500)])
        for number in range(500):
            if number % 3 == 0:
                assert await client.receive() == b"later frame %03d" % number
            elif number % 3 == 2:
                assert await client.receive() == b"frame %03d" % number


async def test_requests_are_understood_byte_by_byte() -> None:
    async with listening(echo) as listener, connected(listener.port) as client:
        for byte in framed(b"a request in bytes") * 2:
            await client.send_raw(bytes([byte]))
            await asyncio.sleep(0)
        assert await client.receive() == b"a request in bytes"
        assert await client.receive() == b"a request in bytes"


async def test_big_requests_arrive_whole_from_several_clients_at_once() -> None:
    def sizes(frame: Buffer, peer: Peer) -> Parts:
        assert bytes(frame[:8]) == bytes(frame[-8:])
        return [framed(struct.pack(">qq", len(frame), frame[0]))]

    async def send_all(client: FrameClient, mark: int) -> None:
        for size in (10, 70_000, 300_000, 3_000_000, 11):
            await client.send(bytes([mark]) * size)
            assert await client.receive() == struct.pack(">qq", size, mark)

    async with (
        listening(sizes) as listener,
        connected(listener.port) as one,
        connected(listener.port) as two,
    ):
        await asyncio.gather(send_all(one, 1), send_all(two, 2))
        assert listener.held_bytes == 0


async def test_one_request_of_a_connection_is_answered_at_a_time() -> None:
    waits: list[asyncio.Future[Parts | None]] = []

    def park(frame: Buffer, peer: Peer) -> Awaitable[Parts | None]:
        waits.append(asyncio.get_running_loop().create_future())
        return waits[-1]

    async with listening(park) as listener, connected(listener.port) as client:
        await client.send(b"request one", b"request two")
        await eventually(lambda: len(waits) == 1)
        waits[0].set_result([framed(b"answer one")])
        assert await client.receive() == b"answer one"
        await eventually(lambda: len(waits) == 2)
        waits[1].set_result(None)
        await client.send(b"request three")
        await eventually(lambda: len(waits) == 3)
        waits[2].set_result([framed(b"answer three")])
        assert await client.receive() == b"answer three"


@pytest.mark.parametrize(
    ("garbage", "why"),
    [
        (struct.pack(">i", -5) + b"x" * 100, "negative"),
        (struct.pack(">i", 3) + b"x" * 100, "shorter than any header"),
        (struct.pack(">i", 2000) + b"x" * 100, "frame of 2000 bytes is over socket.request.max"),
        (b"\x16\x03\x01\x00\xf1\x01\x00\x00\xed\x03\x03", "these are TLS bytes"),
        (b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", "this is HTTP"),
        (b"\xde\xad\xbe\xef" * 50, "negative"),
    ],
)
async def test_garbage_is_answered_by_closing_and_one_log_line(
    garbage: bytes, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(echo, Limits(frame_bytes_max=1000)) as listener:
        async with connected(listener.port) as client, connected(listener.port) as other:
            await client.send(b"a good request")
            assert await client.receive() == b"a good request"
            await client.send_raw(garbage)
            assert await client.receive_rest() == b""
            await other.send(b"others go on")
            assert await other.receive() == b"others go on"
        assert listener.broken_count == 1
    (line,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert line.startswith("closing connection from 127.0.0.1:")
    assert why in line


async def test_a_request_that_breaks_the_protocol_closes_its_connection_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(frame: Buffer, peer: Peer) -> Parts:
        if frame[:3] == b"bad":
            raise WireError("client id of -7 bytes")
        return echo(frame, peer)

    async with listening(refuse) as listener, connected(listener.port) as client:
        await client.send(b"good frame", b"bad frame", b"good but late")
        assert await client.receive() == b"good frame"
        assert await client.receive_rest() == b""
    (line,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert "client id of -7 bytes" in line


@pytest.mark.parametrize("when", ["at once", "later"])
async def test_a_handler_that_fails_closes_the_connection_and_leaves_its_stack(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail_later() -> Parts:
        raise AssertionError("offset 5 is behind 7")

    def fail(frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts]:
        if frame[:3] != b"bad":
            return echo(frame, peer)
        if when == "later":
            return fail_later()
        raise AssertionError("offset 5 is behind 7")

    async with listening(fail) as listener:
        async with connected(listener.port) as client:
            await client.send(b"bad frame")
            assert await client.receive_rest() == b""
        async with connected(listener.port) as client:
            await client.send(b"good frame")
            assert await client.receive() == b"good frame"
    (record,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert record.exc_info is not None
    assert "offset 5 is behind 7" in str(record.exc_info[1])


async def test_what_a_client_waits_for_is_cancelled_when_it_leaves() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait_for_ever() -> Parts:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()
        raise AssertionError("nothing was waited for")

    async with listening(lambda frame, peer: wait_for_ever(), Limits(grace_ms_max=20)) as listener:
        async with connected(listener.port) as client:
            await client.send(b"a long poll")
            await started.wait()
            client.writer.transport.abort()
            async with asyncio.timeout(60):
                await cancelled.wait()
        await eventually(lambda: listener.connection_count == 0)


async def test_requests_sent_right_before_the_end_are_still_handled() -> None:
    seen: list[bytes] = []

    async def note(frame: Buffer) -> None:
        await asyncio.sleep(0)
        seen.append(bytes(frame))

    async with (
        listening(lambda frame, peer: note(frame)) as listener,
        connected(listener.port) as client,
    ):
        await client.send(*[b"without answer %d" % number for number in range(10)])
        client.writer.write_eof()
        assert await client.receive_rest() == b""
    assert seen == [b"without answer %d" % number for number in range(10)]


async def test_a_client_that_reads_nothing_gets_no_more_than_a_bounded_number_of_answers() -> None:
    answered = 0

    def big_answer(frame: Buffer, peer: Peer) -> Parts:
        nonlocal answered
        answered += 1
        return [framed(bytes(100_000))]

    async with listening(big_answer) as listener, connected(listener.port) as client:
        client.pause_reading()
        client.writer.write(framed(b"a request") * 20_000)
        answered_before = -1
        while answered_before != answered or not answered:
            answered_before = answered
            for _ in range(200):
                await asyncio.sleep(0)
        # What fits: the kernel's buffers on both sides, and ours.
        assert 0 < answered < 400
        client.resume_reading()
        for _ in range(answered + 100):
            assert len(await client.receive()) == 100_000


async def test_requests_behind_one_that_waits_are_taken_up_to_a_bound() -> None:
    wait: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()

    def park(frame: Buffer, peer: Peer) -> Parts | Awaitable[Parts]:
        return wait if frame == b"the first" else [framed(b"%d" % len(frame) * 8)]

    async with listening(park) as listener, connected(listener.port) as client:
        client.writer.write(framed(b"the first"))
        client.writer.write(framed(bytes(500_000)) * (QUEUED_FRAMES_MAX // 2))
        held_before = -1
        while held_before != listener.held_bytes or not held_before:
            held_before = listener.held_bytes
            for _ in range(200):
                await asyncio.sleep(0)
        assert listener.held_bytes < 3_000_000
        wait.set_result([framed(b"the first answer")])
        assert await client.receive() == b"the first answer"
        for _ in range(QUEUED_FRAMES_MAX // 2):
            assert await client.receive() == b"500000" * 8
        await eventually(lambda: listener.held_bytes == 0)


async def test_big_requests_of_all_clients_together_are_bounded() -> None:
    most_held = 0

    async with listening(echo, Limits(queued_bytes_max=1_000_000)) as listener:

        def note(frame: Buffer, peer: Peer) -> Parts:
            nonlocal most_held
            most_held = max(most_held, listener.held_bytes)
            return [framed(bytes(frame[:16]))]

        async def send_many(mark: bytes) -> None:
            async with connected(bounded.port) as client:
                for _ in range(5):
                    await client.send(mark * 400_000)
                    assert await client.receive() == mark * 16

        async with listening(note, Limits(queued_bytes_max=1_000_000)) as bounded:
            listener = bounded
            await asyncio.gather(*[send_many(b"%d" % number) for number in range(8)])
            await eventually(lambda: bounded.held_bytes == 0)
    assert 400_000 <= most_held <= 1_000_000


async def test_an_idle_connection_is_closed() -> None:
    limits = Limits(idle_ms_max=40)
    async with listening(echo, limits) as listener, connected(listener.port) as client:
        assert await client.receive_rest() == b""
        assert listener.connection_count == 0


async def test_an_idle_bound_of_minus_one_is_none() -> None:
    limits = Limits(idle_ms_max=-1, stalled_ms_max=8)
    async with listening(echo, limits) as listener, connected(listener.port) as client:
        await asyncio.sleep(0.05)
        await client.send(b"still here")
        assert await client.receive() == b"still here"


async def test_a_client_that_said_its_last_word_waits_no_longer_than_the_grace() -> None:
    async def never() -> Parts:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing was waited for")

    async with (
        listening(lambda frame, peer: never(), Limits(grace_ms_max=10)) as listener,
        connected(listener.port) as client,
    ):
        await client.send(b"a long poll")
        client.writer.write_eof()
        assert await client.receive_rest() == b""
        assert listener.connection_count == 0


async def test_a_frame_that_stops_half_way_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(stalled_ms_max=40)
    async with listening(echo, limits) as listener, connected(listener.port) as client:
        await client.send_raw(framed(bytes(100))[:50])
        assert await client.receive_rest() == b""
    assert "a frame stopped half way" in caplog.text


async def test_a_client_that_does_not_read_its_answer_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def huge(frame: Buffer, peer: Peer) -> Parts:
        return [framed(bytes(30_000_000))]

    async with (
        listening(huge, Limits(stalled_ms_max=40)) as listener,
        connected(listener.port) as client,
    ):
        client.pause_reading()
        await client.send(b"a request")
        await eventually(lambda: listener.connection_count == 1)
        await eventually(lambda: listener.connection_count == 0)
    assert "has read nothing of" in caplog.text


async def test_a_request_under_way_keeps_its_connection_from_being_idle() -> None:
    async def slow(frame: Buffer) -> Parts:
        await asyncio.sleep(0.15)
        return [framed(b"slow answer")]

    async with (
        listening(lambda frame, peer: slow(frame), Limits(idle_ms_max=30)) as listener,
        connected(listener.port) as client,
    ):
        await client.send(b"a request")
        assert await client.receive() == b"slow answer"
