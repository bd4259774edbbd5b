"""The one entry point: finds the command, loads only that, and turns failures into exit codes.

0: it was done. 1: it failed, and the last line says why. 2: the command line makes no sense.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, Protocol, cast

from twinlog.cli.failures import EXIT_FAILED, EXIT_OK, EXIT_USAGE, CliError, UsageError, sentence
from twinlog.model.errors import ApiError, CorruptBatchError, DiskError, SettingsError

EXIT_INTERRUPTED: Final = 130

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "serve": ("twinlog.cli.serve", "start a broker"),
    "stop": ("twinlog.cli.stop", "stop a broker that serve started"),
    "mirrors": ("twinlog.cli.mirrors", "create, start, stop, describe and verify mirrors"),
    "topics": ("twinlog.cli.topics", "create, list, describe, alter and delete topics"),
    "configs": ("twinlog.cli.configs", "describe and alter settings while things run"),
    "groups": ("twinlog.cli.groups", "list, describe, reset and delete consumer groups"),
    "produce": ("twinlog.cli.produce", "write lines of standard input as records"),
    "consume": ("twinlog.cli.consume", "print records"),
    "dump-log": ("twinlog.cli.dump_log", "print the batches of .log files"),
    "demo": ("twinlog.cli.demo", "mirror between two brokers, lose one, go on with the other"),
    "docs": ("twinlog.cli.docs", "write the pages made from code"),
}


class Command(Protocol):
    """What the module of a command offers."""

    def parser(self, prog: str) -> argparse.ArgumentParser:
        """Give the parser of the command's flags."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it; give the exit code."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``twinlog COMMAND FLAGS...``; give the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given.pop(0) if given else ""
    if name in ("-h", "--help", "help"):
        print(_usage())
        return EXIT_OK
    if name not in COMMANDS:
        print(f"twinlog: {_no_command(name)}\n\n{_usage()}", file=sys.stderr)
        return EXIT_USAGE
    command = cast("Command", import_module(COMMANDS[name][0]))
    try:
        return _run(command, f"twinlog {name}", given)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        return EXIT_OK


def _run(command: Command, prog: str, given: list[str]) -> int:
    parser = command.parser(prog)
    try:
        return command.run(parser.parse_args(given))
    except SystemExit as stop:  # argparse has printed help or what is wrong
        return stop.code if isinstance(stop.code, int) else EXIT_USAGE
    except UsageError as error:
        parser.print_usage(sys.stderr)
        return _failed(prog, str(error), EXIT_USAGE)
    except (CliError, SettingsError, CorruptBatchError, DiskError) as error:
        return _failed(prog, str(error), EXIT_FAILED)
    except ApiError as error:
        return _failed(prog, sentence(error.code, error.why), EXIT_FAILED)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _failed(prog, _os_sentence(error), EXIT_FAILED)


def _failed(prog: str, why: str, code: int) -> int:
    print(f"{prog}: {why}", file=sys.stderr)
    return code


def _os_sentence(error: OSError) -> str:
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _no_command(name: str) -> str:
    if not name:
        return "a command is missing"
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"there is no command {name}" + (f"; did you mean {near[0]}?" if near else "")


def _usage() -> str:
    lines = ["usage: twinlog COMMAND FLAGS...    (twinlog COMMAND --help tells the flags)", ""]
    lines += [f"  {name:<10}{what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
