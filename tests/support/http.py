"""An HTTP request as bytes, and its answer."""

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers (lower case) and body."""

    status: int
    headers: dict[str, str]
    body: str


async def http_exchange(port: int, sent: bytes) -> bytes:
    """Send bytes and read until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def http_get(port: int, path: str, method: str = "GET") -> HttpAnswer:
    """Ask for a page."""
    request = f"{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n"
    head, _, body = (await http_exchange(port, request.encode())).decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return HttpAnswer(int(lines[0].split()[1]), headers, body)


def samples(page: str) -> dict[str, float]:
    """Read a page of metrics: each series, as it is written, and its number."""
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {series: float(number) for series, number in (line.rsplit(" ", 1) for line in lines)}
