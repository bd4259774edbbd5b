from pathlib import Path

import pytest

from support.transcripts import Transcripts, played, steps_of

TEXT = """\
# What this is about.

# Why.
say a
say b
----
  a
  b

hush
----
"""


def parrot(command: str) -> list[str]:
    verb, _, rest = command.partition(" ")
    return [rest] if verb == "say" else []


def test_a_step_is_comments_commands_and_what_is_expected() -> None:
    about, first, second = steps_of(TEXT)
    assert about.commands == ()
    assert first.commands == ("say a", "say b")
    assert first.expected == ("  a", "  b")
    assert second.expected == ()


def test_playing_a_right_transcript_gives_it_back() -> None:
    assert played(TEXT, parrot) == TEXT


def test_a_wrong_transcript_fails(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("say a\n----\n  b\n")
    with pytest.raises(AssertionError, match=r"wrong\.txt"):
        Transcripts(rewrite=False).check(path, parrot)


def test_a_wrong_transcript_can_be_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("# Why.\nsay a\n----\n  b\n")
    Transcripts(rewrite=True).check(path, parrot)
    assert path.read_text() == "# Why.\nsay a\n----\n  a\n"
    Transcripts(rewrite=False).check(path, parrot)
