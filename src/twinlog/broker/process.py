"""A broker as a process: its event loop, its signals, and what its memory is spared."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable

from twinlog.broker.server import Server
from twinlog.config.declare import Settings

log = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Run a broker until SIGTERM or SIGINT; give the exit code. Raises SettingsError."""
    # What a start makes stays. To look through it all again in search of garbage takes 10 ms and
    # more, and meanwhile nobody is answered.
    server = Server(settings, on_open=gc.freeze)

    async def serve() -> int:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, server.stop)
        return await server.serve()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(serve())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        log.warning("uvloop is not installed, the slower event loop of Python is used")
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
