"""Plays very many seeds and tells what went wrong in them: ``python -m simulation.many``."""

import argparse
import sys
import time
from collections import Counter

from simulation.mirror_plays import PLAYS


def main() -> int:
    """Play; give 1 when a seed failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="of each play")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--plays", nargs="*", choices=sorted(PLAYS), default=list(PLAYS))
    asked = parser.parse_args()
    faults: Counter[str] = Counter()
    failed: list[tuple[str, int]] = []
    steps, begun_s = 0, time.process_time()
    for name in asked.plays:
        for seed in range(asked.first, asked.first + asked.seeds):
            try:
                schedule = PLAYS[name](seed)
            except Exception as error:  # noqa: BLE001 - told, and the others go on
                failed.append((name, seed))
                _say(f"FAILED {name} seed {seed}: {str(error).splitlines()[0][:200]}")
                continue
            faults += schedule.faults
            steps += schedule.steps
        _say(f"{name}: {asked.seeds} seeds, {time.process_time() - begun_s:.0f} s of CPU so far")
    _say(f"{len(asked.plays) * asked.seeds} worlds, {steps} steps, {len(failed)} failed: {failed}")
    for what, count in faults.most_common():
        _say(f"  {count:>10}  {what}")
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
