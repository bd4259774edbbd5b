"""The transcripts beside this file tell the life of a mirrored partition."""

from pathlib import Path

import pytest

from support.mirror_player import Player
from support.transcripts import Transcripts

PATHS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_machine_does_what_the_transcript_says(path: Path, transcripts: Transcripts) -> None:
    transcripts.check(path, Player().play)


def test_what_the_source_told_before_a_pause_or_a_stop_is_no_lag_of_now() -> None:
    """By its offset of then the partition would pass for level, whatever was written since."""
    player = Player()

    def play(*commands: str) -> int | None:
        for command in commands:
            list(player.play(f"1ms {command}"))
        lag = player.machine.lag
        return None if lag.is_of_before else lag.records

    level = ("leader 1 5", "log 0..100 5@0", "range 0..100", "end 5 5 100")
    assert play("start MIRRORING actual=MIRRORING", "saved", *level) == 0
    assert play("desired PAUSED", "saved", "saved") == 0
    assert play("desired MIRRORING") is None
    assert play("saved") is None
    assert play("leader 1 5", "log 0..100 5@0", "range 0..150", "end 5 5 150") == 50
    assert play("moved 1 6") == 50
