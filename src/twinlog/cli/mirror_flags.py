"""The flags of ``kafka-cluster-mirrors.sh``, and which of them go together."""

import argparse
from pathlib import Path
from typing import Final

from twinlog.cli.cluster import add_cluster_flags
from twinlog.cli.failures import UsageError
from twinlog.cli.mirror_asking import EVERY_STATE, words
from twinlog.cli.mirror_wait import STATE_AFTER
from twinlog.config.mirror import matcher
from twinlog.model.errors import SettingsError

ACTIONS: Final = {
    "create": "create a mirror from --mirror-config",
    "start": "mirror the source's topics that match --topics",
    "stop": "make topics writable here, where the mirror stands",
    "pause": "stop fetching, for a while",
    "resume": "fetch again after --pause",
    "delete": "delete a mirror without topics; the copies stay",
    "recover": "let failed topics try again",
    "list": "list the mirrors",
    "describe": "tell state and lag of every partition",
    "verify": "compare the batches of both logs, by their CRCs",
}
WAIT: Final = "wait"
TIMEOUT_MS: Final = 600_000
TOPIC_ACTIONS: Final = ("start", "stop", "pause", "resume", "recover")
ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "mirror_config": ("create",),
    "topics": (*TOPIC_ACTIONS, "verify", WAIT),
    "exclude": ("start",),
    "json": ("describe", "verify", "stop"),
    "failed": ("describe",),
    "tasks": ("describe",),
    "source_cluster_id": ("list",),
    "desired_state": ("list",),
    "source_command_config": ("verify", "stop"),
    "promote": ("stop",),
    "plan": ("stop",),
    "wait": (*STATE_AFTER, WAIT),
}


def mirrors_parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(
        prog=prog,
        description="Mirror topics of another cluster into this one, byte for byte.",
        epilog="Topics are named with commas between them; each may be a regular expression.",
    )
    add_cluster_flags(made)
    action = made.add_mutually_exclusive_group()
    for verb, what in ACTIONS.items():
        action.add_argument(f"--{verb}", dest="action", action="store_const", const=verb, help=what)
    made.add_argument("--mirror", metavar="NAME", help="the mirror")
    made.add_argument(
        "--mirror-config", type=Path, metavar="FILE", help="its properties, for --create"
    )
    made.add_argument("--topics", metavar="A,B,REGEX", help="the topics that are meant")
    made.add_argument("--exclude", metavar="A,REGEX", help="topics not to start")
    made.add_argument("--json", action="store_true", help="tell it as JSON")
    made.add_argument("--failed", action="store_true", help="describe what has failed, and why")
    made.add_argument(
        "--tasks", action="store_true", help="describe what is synced again and again, and how"
    )
    made.add_argument(
        "--source-cluster-id", metavar="ID,ID", help="list mirrors of these sources only"
    )
    made.add_argument(
        "--desired-state",
        metavar="STATE,STATE",
        help="list topics that were asked to be in these states: "
        f"{', '.join(EVERY_STATE)}; without it {' and '.join(EVERY_STATE[:2])}",
    )
    made.add_argument(
        "--source-command-config",
        type=Path,
        metavar="FILE",
        help="properties of this tool's own connection to the source (bootstrap.servers, "
        "request.timeout.ms, client.id, security.protocol and what goes with it); "
        "without it the mirror's bootstrap.servers are used",
    )
    made.add_argument(
        "--plan",
        action="store_true",
        help="with --stop: change nothing, but tell what the stop would lose now",
    )
    made.add_argument(
        "--promote",
        action="store_true",
        help="with --stop: first wait for lag 0 and for the groups, so that nothing is lost",
    )
    made.add_argument(
        "--wait",
        action="store_true",
        help="alone: until the lag is 0, or --state is reached; with --start, --stop, --pause "
        "and --resume: until it is done",
    )
    made.add_argument(
        "--state", choices=EVERY_STATE, help="the state to --wait for, instead of a lag of 0"
    )
    made.add_argument(
        "--timeout-ms",
        type=int,
        metavar="MS",
        help=f"how long --wait and --promote may take ({TIMEOUT_MS})",
    )
    return made


def check_flags(options: argparse.Namespace) -> None:
    """Refuse flags that the action needs and lacks, or has and does not know."""
    _settle_action(options)
    action = options.action
    if action not in ("list", "describe") and not options.mirror:
        raise UsageError(f"--{action} needs --mirror NAME")
    if action == "create" and options.mirror_config is None:
        raise UsageError("--create needs --mirror-config FILE, which names the source")
    if action in TOPIC_ACTIONS and not words(options.topics):
        raise UsageError(f"--{action} needs --topics A,B,REGEX")
    for flag, actions in ALLOWED.items():
        if getattr(options, flag) and action not in actions:
            known = " and ".join(f"--{a}" for a in actions)
            raise UsageError(f"--{flag.replace('_', '-')} goes with {known} only")
    _check_waiting(options)
    _check_shown(options)
    for piece in (*words(options.topics), *words(options.exclude)):
        if piece.count("{") != piece.count("}"):
            raise UsageError(
                f"{piece!r} is a piece of a regular expression with a comma, which separates "
                "patterns: write x{1,3} as xx?x?"
            )
    try:
        matcher(words(options.topics), words(options.exclude))
    except SettingsError as error:
        raise UsageError(str(error)) from error


def _check_shown(options: argparse.Namespace) -> None:
    """Refuse what --describe and --list cannot show."""
    if options.failed and options.tasks:
        raise UsageError("--failed shows partitions, --tasks does not: leave out one of them")
    unknown = [state for state in words(options.desired_state) if state not in EVERY_STATE]
    if unknown:
        known = ", ".join(EVERY_STATE)
        raise UsageError(f"--desired-state {unknown[0]} is no state to ask for; there are {known}")


def _settle_action(options: argparse.Namespace) -> None:
    """--wait is an action where there is no other."""
    if options.action is None:
        if not options.wait:
            known = " ".join(f"--{action}" for action in (*ACTIONS, WAIT))
            raise UsageError(f"one of the arguments {known} is required")
        options.action = WAIT


def _check_waiting(options: argparse.Namespace) -> None:
    """Refuse what makes no sense beside --wait and --promote, or without them."""
    if options.state and not options.wait:
        raise UsageError("--state goes with --wait only")
    wanted = STATE_AFTER.get(options.action)
    if options.state and wanted and options.state != wanted:
        raise UsageError(f"--{options.action} is done in state {wanted}, not {options.state}")
    if options.timeout_ms is not None and not (options.wait or options.promote):
        raise UsageError("--timeout-ms goes with --wait and --promote only")
    if options.timeout_ms is not None and options.timeout_ms < 0:
        raise UsageError(f"--timeout-ms {options.timeout_ms} cannot be: it must be at least 0")
    options.timeout_ms = TIMEOUT_MS if options.timeout_ms is None else options.timeout_ms
    if options.action == "stop":
        _check_stop(options)


def _check_stop(options: argparse.Namespace) -> None:
    """Refuse what a plain stop does not need, and what a plan cannot have."""
    if options.plan and (options.promote or options.wait):
        raise UsageError("--plan changes nothing: leave out --promote and --wait")
    if options.json and not options.plan:
        raise UsageError("--json goes with --stop --plan: a stop prints no JSON")
    if options.source_command_config and not (options.plan or options.promote):
        raise UsageError(
            "--source-command-config goes with --stop --plan and --stop --promote: "
            "a stop needs no source"
        )
