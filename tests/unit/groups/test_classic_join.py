from pathlib import Path

import pytest

from support.group_player import GroupPlayer
from support.transcripts import Transcripts

HERE = Path(__file__).parent / "transcripts"


@pytest.mark.parametrize("name", ["refused", "static"])
def test_members_come_in_or_are_refused_as_the_transcript_tells(
    name: str, transcripts: Transcripts
) -> None:
    transcripts.check(HERE / f"{name}.txt", GroupPlayer().play)
