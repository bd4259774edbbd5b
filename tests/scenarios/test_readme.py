"""The list of scenarios names tests that exist, so that a reader finds them."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_test_that_the_list_names_exists() -> None:
    text = (Path(__file__).parent / "README.md").read_text()
    named = re.findall(r"`([\w/]+\.(?:py|txt))(?:::(\w+))?`", text)
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if not is_there(TESTS / path, name)] == []


def is_there(path: Path, name: str) -> bool:
    """Tell whether there is that file, and in it that test."""
    return path.exists() and (not name or f"def {name}(" in path.read_text())
