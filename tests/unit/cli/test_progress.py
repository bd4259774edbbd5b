"""The progress bar: what it draws, and that it draws on terminals only."""

import io

import pytest

from twinlog.cli.progress import WIDTH, ProgressBar, bar


class Terminal(io.StringIO):
    """What says that it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.mark.parametrize(
    ("done", "total", "filled", "percent"),
    [(0, 10, 0, 0), (5, 10, WIDTH // 2, 50), (10, 10, WIDTH, 100), (0, 0, WIDTH, 100)],
)
def test_the_bar_is_filled_by_what_is_done(
    done: int, total: int, filled: int, percent: int
) -> None:
    assert bar(done, total) == f"[{'#' * filled}{'.' * (WIDTH - filled)}] {percent:3d}%"


def test_what_is_nearly_done_is_not_told_to_be_done() -> None:
    assert bar(999_999, 1_000_000).endswith(" 99%")
    assert bar(11, 10).endswith("100%")


def test_a_terminal_sees_one_line_redrawn_now_and_then_and_cleared() -> None:
    out = Terminal()
    shown = ProgressBar(out)
    shown.clear()
    assert out.getvalue() == ""
    shown.show(1, 2, "orders-0")
    shown.show(2, 2, "too soon")
    shown.clear()
    assert out.getvalue() == f"\r\x1b[K{bar(1, 2)} orders-0\r\x1b[K"


def test_nothing_is_drawn_into_a_file() -> None:
    out = io.StringIO()
    shown = ProgressBar(out)
    shown.show(1, 2, "orders-0")
    shown.clear()
    assert out.getvalue() == ""
