"""The lists of scenarios and traps name tests that exist, so that a reader finds them."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = HERE.parent


@pytest.mark.parametrize("page", ["README.md", "traps.md"])
def test_every_test_that_the_list_names_exists(page: str) -> None:
    text = (HERE / page).read_text()
    named = re.findall(r"`([\w/]+\.(?:py|txt))(?:::(\w+))?`", text)
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if not is_there(TESTS / path, name)] == []


def test_every_planted_fault_that_the_list_names_is_planted() -> None:
    planted = (TESTS / "simulation" / "README.md").read_text()
    named = re.findall(r"planted: ([\w ]+)", (HERE / "traps.md").read_text())
    assert len(named) > 8
    assert [name for name in named if f"| {name.strip()} |" not in planted] == []


def is_there(path: Path, name: str) -> bool:
    """Tell whether there is that file, and in it that test."""
    return path.exists() and (not name or f"def {name}(" in path.read_text())
