import asyncio
import hashlib
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from support.listening import connected, eventually, framed, listening
from twinlog.model.regions import FileRegion
from twinlog.network.output import SMALL_REGION_BYTES
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer

FILE_BYTES = 8 * 1024 * 1024
CONTENT = random.Random(7).randbytes(FILE_BYTES)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IO[bytes]]:
    path = tmp_path / "segment.log"
    path.write_bytes(CONTENT)
    with path.open("rb") as opened:
        yield opened


def asked(frame: Buffer) -> tuple[int, int]:
    position, length = struct.unpack(">qq", frame)
    return position, length


def ask(position: int, length: int) -> bytes:
    return struct.pack(">qq", position, length)


async def test_regions_arrive_equal_between_small_answers(file: IO[bytes]) -> None:
    def answer(frame: Buffer, peer: Peer) -> Parts:
        position, length = asked(frame)
        if length == 0:
            return [framed(b"small answer")]
        return [
            struct.pack(">i", length + 9) + b"head ",
            FileRegion(file, position, length),
            b"tail",
        ]

    choose = random.Random(3)
    questions = []
    for _ in range(120):
        length = choose.choice((0, 1, 500, SMALL_REGION_BYTES + 1, 70_000, 1_500_000))
        questions.append((choose.randrange(FILE_BYTES - length), length))
    async with listening(answer) as listener, connected(listener.port) as client:
        client.writer.write(b"".join(framed(ask(*question)) for question in questions))
        for position, length in questions:
            got = await client.receive()
            if length == 0:
                assert got == b"small answer"
            else:
                assert got == b"head " + CONTENT[position : position + length] + b"tail"


async def test_many_regions_in_one_answer_arrive_in_order(file: IO[bytes]) -> None:
    spans = [(number * 20_000, 100 + number * 300) for number in range(100)]

    def answer(frame: Buffer, peer: Peer) -> Parts:
        parts: Parts = []
        for position, length in spans:
            parts += [b"partition", memoryview(b"xx"), FileRegion(file, position, length)]
        return [struct.pack(">i", sum(map(len, parts))), *parts, b""]

    expected = b"".join(b"partitionxx" + CONTENT[p : p + n] for p, n in spans)
    async with listening(answer) as listener, connected(listener.port) as client:
        await client.send(b"a request")
        assert await client.receive() == expected


async def test_a_region_waits_for_the_large_answer_before_it(file: IO[bytes]) -> None:
    large = random.Random(5).randbytes(20_000_000)

    def answer(frame: Buffer, peer: Peer) -> Parts:
        position, length = asked(frame)
        if length == 0:
            return [framed(large)]
        return [struct.pack(">i", length), FileRegion(file, position, length)]

    async with listening(answer) as listener, connected(listener.port) as client:
        await client.send(ask(0, 0), ask(10, 3_000_000), ask(0, 0), ask(20, 100_000))
        assert hashlib.sha1(await client.receive()).digest() == hashlib.sha1(large).digest()
        assert await client.receive() == CONTENT[10:3_000_010]
        assert hashlib.sha1(await client.receive()).digest() == hashlib.sha1(large).digest()
        assert await client.receive() == CONTENT[20:100_020]


async def test_a_client_that_leaves_in_the_middle_of_a_region_harms_no_one(file: IO[bytes]) -> None:
    def answer(frame: Buffer, peer: Peer) -> Parts:
        parts = [FileRegion(file, 0, FILE_BYTES) for _ in range(4)]
        return [struct.pack(">i", 4 * FILE_BYTES), *parts]

    async with listening(answer) as listener:
        for _ in range(5):
            async with connected(listener.port) as client:
                await client.send(b"a request")
                await client.reader.readexactly(1000)
                client.writer.transport.abort()
        await eventually(lambda: listener.connection_count == 0)
        async with connected(listener.port) as client:
            await client.send(b"a request")
            assert await client.receive() == CONTENT * 4


@pytest.mark.parametrize("length", [1000, 1_000_000])
async def test_a_file_that_is_shorter_than_its_region_closes_the_connection(
    length: int, file: IO[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    def answer(frame: Buffer, peer: Peer) -> Parts:
        return [struct.pack(">i", length), FileRegion(file, FILE_BYTES - 500, length)]

    async with listening(answer) as listener, connected(listener.port) as client:
        await client.send(b"a request")
        assert len(await client.receive_rest()) < length
    assert "the file ends before byte" in caplog.text


async def test_a_stop_waits_for_a_region_that_is_being_sent(file: IO[bytes]) -> None:
    def answer(frame: Buffer, peer: Peer) -> Parts:
        return [struct.pack(">i", FILE_BYTES), FileRegion(file, 0, FILE_BYTES)]

    async with (
        listening(answer) as listener,
        connected(listener.port) as client,
        asyncio.TaskGroup() as tasks,
    ):
        await client.send(b"a request")
        await client.reader.readexactly(4)
        stopping = tasks.create_task(listener.stop(10.0))
        assert await client.receive_rest() == CONTENT
        await stopping
