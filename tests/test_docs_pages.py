"""Pages made from code say what the code says."""

from pathlib import Path

import pytest

from twinlog.cli.main import main

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["metrics", "protocol", "settings"])
def test_a_page_made_from_code_is_up_to_date(page: str) -> None:
    assert main(["docs", page, "--check", str(DOCS / f"{page}.md")]) == 0
