"""The transcripts beside this file tell the life of a mirrored partition."""

from pathlib import Path

import pytest

from support.mirror_player import Player
from support.transcripts import Transcripts

PATHS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_machine_does_what_the_transcript_says(path: Path, transcripts: Transcripts) -> None:
    transcripts.check(path, Player().play)
