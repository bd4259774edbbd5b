"""A twinlog broker in a process of its own that dies at a moment of the test's choice."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from support.brokers import connected_to
from support.mirrored_pair import describe
from support.server_process import ServerDiedError, ServerProcess
from support.twinlog_process import TwinlogProcess
from support.waiting import wait_until
from twinlog.wire.messages.mirrors import DescribedMirrorPartition

_TESTS = Path(__file__).parents[1]


class DyingTwinlog(TwinlogProcess):
    """Serves as any twinlog broker does, until the moment that ``die_at`` names."""

    def __init__(
        self, folder: Path, *, node_id: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, node_id=node_id, settings=settings)
        self._order = folder / "die-at"
        self.server = ServerProcess(
            f"dying-twinlog-{node_id}",
            [sys.executable, "-m", "support.dying_broker", str(self._order), str(self.properties)],
            folder / "twinlog.out",
            env={"PYTHONPATH": f"{_TESTS}:{_TESTS.parent / 'src'}"},
        )

    def die_at(self, moment: str, *, count: int = 1) -> None:
        """Let it die at the COUNTth moment of that name from now on; see dying_broker."""
        written = self._order.with_suffix(".new")
        written.write_text(f"{moment} {count}")
        written.replace(self._order)

    def await_death(self) -> None:
        """Return when it has died; it lives on at the next start."""
        wait_until(lambda: not self.server.is_running, self._what)
        self.live_on()
        self.server.kill()

    @property
    def is_to_die(self) -> bool:
        """Whether a moment to die at was named and has not come yet."""
        return self._order.exists()

    def dies_within(self, limit_s: float) -> bool:
        """Tell whether its moment comes in that time; it lives on afterwards if it does not."""
        deadline = time.monotonic() + limit_s
        while self.server.is_running and time.monotonic() < deadline:
            time.sleep(0.02)
        self.live_on()
        if self.server.is_running:
            return False
        self.server.kill()
        return True

    def dies_before(self, is_through: Callable[[], bool]) -> bool:
        """Tell whether its moment comes before all is through; it lives on if it does not."""
        wait_until(lambda: not self.server.is_running or is_through(), self._what)
        # The last moments come just behind the sign that all is through.
        return self.dies_within(2.0)

    def dies_after_start(self, is_through: Callable[[], bool] = lambda: False) -> bool:
        """Start it and tell whether its moment came so; it is down afterwards anyhow."""
        try:
            self.start()
        except ServerDiedError:
            self.live_on()
            return True
        has_died = self.dies_before(is_through)
        self.server.kill()
        return has_died

    def tells(self, of: tuple[str, int], state: str, **fields: object) -> bool:
        """Whether it lives and tells that of a mirrored partition; fields are the protocol's."""

        async def ask() -> DescribedMirrorPartition | None:
            async with connected_to(self.bootstrap) as broker:
                return (await describe(broker)).get(of)

        try:
            told = asyncio.run(ask())
        except OSError:
            return False
        wanted = {"state_value": state, **fields}
        return told is not None and all(getattr(told, key) == wanted[key] for key in wanted)

    def _what(self) -> str:
        return f"dies at {self._order.read_text()!r}"

    def live_on(self) -> None:
        """Take the order to die back."""
        self._order.unlink(missing_ok=True)
