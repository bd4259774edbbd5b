"""``twinlog serve config/server.properties``: starts a broker and stays until it is stopped."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from twinlog.cli.failures import CliError
from twinlog.cli.pid_file import PidFile
from twinlog.cli.text_files import text_of
from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.config.logs import LOG_DIRS
from twinlog.config.mirror_broker import MIRROR_AUDIT_LOG
from twinlog.config.read import read_settings
from twinlog.telemetry.audit import written_to
from twinlog.telemetry.logs import LogForm, set_up_logging

LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Start a broker.")
    made.add_argument("properties", metavar="FILE", type=Path, help="config/server.properties")
    made.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting that wins over the file; may be given again",
    )
    made.add_argument("--log-level", default="INFO", choices=LEVELS, help="INFO by default")
    made.add_argument(
        "--log-format",
        default="text",
        choices=[form.value for form in LogForm],
        help="text for people (the default), json for machines",
    )
    return made


def run(options: argparse.Namespace) -> int:
    """Start the broker; give its exit code when it has stopped."""
    set_up_logging(sys.stdout, level=options.log_level, form=LogForm(options.log_format))
    settings = settings_of(options.properties, options.override)
    if settings.ignored:
        print(
            f"{options.properties}: without effect here: {', '.join(settings.ignored)}",
            file=sys.stderr,
        )
    # Imported late: a mistake in the file is told without loading a broker.
    from twinlog.broker.process import run as run_broker

    with pid_file_of(settings).held(), _audited(settings):
        return run_broker(settings)


@contextmanager
def _audited(settings: Settings) -> Iterator[None]:
    """Write the audit to its file, if one is named; CliError if it cannot be opened."""
    named = settings[MIRROR_AUDIT_LOG]
    with ExitStack() as stack:
        try:
            stack.enter_context(written_to(Path(named) if named else None))
        except OSError as error:
            raise CliError(
                f"{MIRROR_AUDIT_LOG.name}={named} cannot be written: {error.strerror}; name a "
                "file that this user may write, or leave it out"
            ) from error
        yield


def settings_of(file: Path, overrides: list[str]) -> Settings:
    """Read a broker's settings; raises CliError or SettingsError, naming what to do."""
    try:
        text = text_of(file)
    except FileNotFoundError:
        raise CliError(
            f"{file} does not exist: name a properties file, such as config/server.properties"
        ) from None
    return read_settings(BROKER, text, file_name=str(file), overrides=overrides)


def pid_file_of(settings: Settings) -> PidFile:
    """Give the file that says which process serves the first log dir; it lies beside it."""
    folder = Path(settings[LOG_DIRS][0])
    return PidFile(folder.with_name(f"{folder.name}.pid"))
