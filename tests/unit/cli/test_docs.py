"""The page of settings is made from the declarations, and the committed one is up to date."""

from pathlib import Path

from support.commands import run_command
from twinlog.cli.docs import settings_page
from twinlog.config.broker import BROKER
from twinlog.config.mirror import MIRROR
from twinlog.config.topic import TOPIC

COMMITTED = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_committed_page_is_what_the_code_says() -> None:
    ran = run_command(["docs", "settings", "--check", str(COMMITTED)])
    assert (ran.code, ran.err) == (0, "")


def test_every_setting_is_on_the_page() -> None:
    page = settings_page()
    for declared in (BROKER, TOPIC, MIRROR):
        for setting in declared.settings:
            assert f"| `{setting.name}` |" in page


def test_every_row_of_a_table_has_as_many_cells_as_its_heading() -> None:
    counts = [
        line.replace("\\|", "").count("|")
        for line in settings_page().splitlines()
        if line.startswith("|")
    ]
    assert set(counts) == {7, 6}


def test_a_page_that_drifted_is_code_1(tmp_path: Path) -> None:
    page = tmp_path / "settings.md"
    page.write_text("old")
    ran = run_command(["docs", "settings", "--check", str(page)])
    assert ran.code == 1
    assert "is not what the code says: run twinlog docs settings" in ran.err


def test_the_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "settings.md"
    assert run_command(["docs", "settings", "--output", str(page)]).code == 0
    assert page.read_text() == settings_page()
