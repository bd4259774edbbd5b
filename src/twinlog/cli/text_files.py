"""Reads the text files that a command line names."""

from pathlib import Path

from twinlog.cli.failures import CliError


def text_of(file: Path) -> str:
    """Give what a file says. Raises OSError, and CliError if it is not UTF-8."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CliError(f"{file} is not UTF-8 (byte {error.start}): save it as UTF-8") from None
