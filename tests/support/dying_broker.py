"""Runs a twinlog broker that kills itself (SIGKILL) at a named moment: a launcher for tests.

``python -m support.dying_broker ORDER PROPERTIES`` serves as ``twinlog serve`` does. While the file
ORDER holds ``MOMENT COUNT``, the COUNTth such moment from then on is the process's last. Moments:

* ``effect NAME``: a mirror partition's machine has ordered that effect, which is not begun;
* ``event NAME``: what an effect did is durable, and the machine is not told yet;
* ``saved``: what is to be cut lies safe in a file of its own, and is not cut;
* ``append``: a batch of our own (a marker, a reset) is in a log, and nothing that follows is done;
* ``stop asked``: that a topic shall be STOPPED is committed, and nobody is told.

SaveState and StateSaved carry the state's name behind them: ``effect SaveState STOPPING``.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from twinlog.broker.facts import Facts
from twinlog.broker.mirrors.driven import DrivenPartition
from twinlog.broker.partitions import Partition
from twinlog.cli.main import main
from twinlog.storage.lost_tail import LogTail


class DeathOrder:
    """The moment at which to die, as the file says now."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = 0

    def passes(self, moment: str) -> None:
        """Die if this is the moment."""
        try:
            ordered, _, count = self._file.read_text().rpartition(" ")
        except FileNotFoundError:
            self._seen = 0
            return
        if ordered == moment:
            self._seen += 1
            if self._seen >= int(count):
                os.kill(os.getpid(), signal.SIGKILL)


def watch(order: DeathOrder) -> None:
    """Let every moment pass by the order first."""
    carry_out, deliver = DrivenPartition.carry_out, DrivenPartition.deliver
    append_own, change, save = Partition.append_own, Facts.change, LogTail.save

    def dying_carry_out(self: DrivenPartition, effect: Any) -> None:
        order.passes(f"effect {_named(effect)}")
        carry_out(self, effect)

    def dying_deliver(self: DrivenPartition, event: Any) -> None:
        order.passes(f"event {_named(event)}")
        deliver(self, event)

    def dying_append_own(self: Partition, *given: Any, **named: Any) -> Any:
        appended = append_own(self, *given, **named)
        order.passes("append")
        return appended

    def dying_save(self: LogTail) -> Any:
        saved = save(self)
        order.passes("saved")
        return saved

    async def dying_change(self: Facts, decide: Any) -> Any:
        before = _to_be_stopped(self)
        after = await change(self, decide)
        if _to_be_stopped(self) > before:
            order.passes("stop asked")
        return after

    for owner, name, dying in (
        (DrivenPartition, "carry_out", dying_carry_out),
        (DrivenPartition, "deliver", dying_deliver),
        (Partition, "append_own", dying_append_own),
        (Facts, "change", dying_change),
        (LogTail, "save", dying_save),
    ):
        setattr(owner, name, dying)


def _to_be_stopped(facts: Facts) -> int:
    mirrored = [topic.mirror for topic in facts.image.topics.values() if topic.mirror]
    return sum(mirror.desired_state.name == "STOPPED" for mirror in mirrored)


def _named(thing: Any) -> str:
    name = type(thing).__name__
    return f"{name} {thing.state.name}" if name in ("SaveState", "StateSaved") else name


if __name__ == "__main__":
    watch(DeathOrder(Path(sys.argv[1])))
    sys.exit(main(["serve", *sys.argv[2:]]))
