"""The house rules that no linter knows."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "twinlog"
SOURCES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__init__.py"]
FILE_LINES_MAX = 400

each_source = pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE))
)


@each_source
def test_a_file_holds_one_idea(path: Path) -> None:
    line_count = path.read_text().count("\n")
    assert line_count <= FILE_LINES_MAX, f"{line_count} lines: find the second idea, move it out"


@each_source
def test_a_file_says_what_it_owns(path: Path) -> None:
    first_line = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    assert first_line.endswith("."), "begin with one sentence"


@each_source
def test_a_file_that_decides_something_has_a_test_beside_it(path: Path) -> None:
    tree = ast.parse(path.read_text())
    decides = any(isinstance(node, ast.If | ast.Match | ast.For) for node in ast.walk(tree))
    test = ROOT / "tests" / "unit" / path.relative_to(PACKAGE).with_name(f"test_{path.name}")
    assert test.exists() or not decides, f"expected {test.relative_to(ROOT)}"


def test_the_map_names_every_folder_and_no_other() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    tree = text.partition("```text\n")[2].partition("```")[0]
    named = {line.split("/")[0].strip() for line in tree.splitlines()[1:]}
    folders = {p.parent for p in PACKAGE.rglob("*.py")}
    found = {p.name for p in folders if p.parent in (PACKAGE, PACKAGE / "broker")}
    assert named == found
