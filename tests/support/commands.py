"""Runs a command of twinlog in this process, and gives what it wrote and its exit code."""

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from twinlog.cli.main import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


def run_command(arguments: Sequence[str], stdin: bytes = b"") -> Ran:
    """Run ``twinlog`` with these arguments."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
    finally:
        sys.stdin = before
    out.flush()
    written = out.buffer
    assert isinstance(written, io.BytesIO)
    return Ran(code, written.getvalue().decode(), err.getvalue())
