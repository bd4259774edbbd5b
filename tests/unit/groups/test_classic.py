from pathlib import Path

import pytest

from support.group_player import GroupPlayer
from support.transcripts import Transcripts
from twinlog.groups.settings import GroupSettings

HERE = Path(__file__).parent / "transcripts"


@pytest.mark.parametrize("name", ["life", "rebalance", "crash"])
def test_a_group_goes_through_its_states_as_its_transcript_tells(
    name: str, transcripts: Transcripts
) -> None:
    transcripts.check(HERE / f"{name}.txt", GroupPlayer().play)


def test_a_full_group_and_silent_members_as_the_transcript_tells(transcripts: Transcripts) -> None:
    player = GroupPlayer(GroupSettings(members_max=2))
    transcripts.check(HERE / "limits.txt", player.play)
