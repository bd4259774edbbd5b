"""Runs the main classes of an Apache Kafka release, as servers or as tools that end."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from support.kafka_install import class_path, logging_option
from support.server_process import ServerProcess

_SERVER_OPTIONS = ("-Xms256m", "-Xmx768m", "-XX:+UseG1GC", "-Djava.awt.headless=true")
# A tool lives for seconds: the quick compiler and the plain collector start it soonest.
_TOOL_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_HEAVY_TOOL_OPTIONS = ("-Xmx1g", "-XX:+UseG1GC")


class ToolError(Exception):
    """A Java tool ended with an error, or complained where it must not."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """What a tool printed before it ended well."""

    stdout: str
    stderr: str


def java_command(
    version: str, main_class: str, *arguments: str, options: Sequence[str] = _SERVER_OPTIONS
) -> list[str]:
    """Give the command that runs a main class of that release."""
    start = ["java", *options, logging_option(version), "-cp", class_path(version)]
    return [*start, main_class, *arguments]


def java_server(
    name: str, version: str, main_class: str, properties: Path, *, options: Sequence[str] = ()
) -> ServerProcess:
    """Give a server of that release, not yet started, that logs beside its properties file."""
    folder = properties.parent
    # Kafka 2.1 and its tools want to write garbage collector logs unless told where.
    every = [*_SERVER_OPTIONS, f"-Dkafka.logs.dir={folder}", *options]
    command = java_command(version, main_class, str(properties), options=every)
    return ServerProcess(name, command, folder / f"{name}.out")


def run_tool(
    version: str,
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout_s: float = 180.0,
    is_heavy: bool = False,
) -> ToolRun:
    """Run a tool to its end and give what it printed; raise ToolError unless it ended well."""
    options = _HEAVY_TOOL_OPTIONS if is_heavy else _TOOL_OPTIONS
    command = java_command(version, main_class, *arguments, options=options)
    name = main_class.rpartition(".")[2]
    try:
        run = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            errors="replace",
        )
    except subprocess.TimeoutExpired as late:
        said = _both(late.stdout, late.stderr)
        raise ToolError(f"{name} did not end in {timeout_s} s:\n{said}") from None
    if run.returncode != 0:
        said = _both(run.stdout, run.stderr)
        raise ToolError(f"{name} ended with {run.returncode}:\n{said}")
    return ToolRun(run.stdout, run.stderr)


def _both(stdout: str | bytes | None, stderr: str | bytes | None) -> str:
    texts = [
        text.decode(errors="replace") if isinstance(text, bytes) else text or ""
        for text in (stdout, stderr)
    ]
    return "".join(texts)[-4000:]
