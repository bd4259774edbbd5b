"""The flags of ``kafka-cluster-mirrors.sh``, and which of them go together."""

import argparse
from pathlib import Path
from typing import Final

from twinlog.cli.cluster import add_cluster_flags
from twinlog.cli.failures import UsageError
from twinlog.cli.mirror_asking import words
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
TOPIC_ACTIONS: Final = ("start", "stop", "pause", "resume", "recover")
ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "mirror_config": ("create",),
    "topics": (*TOPIC_ACTIONS, "verify"),
    "exclude": ("start",),
    "json": ("describe", "verify"),
    "failed": ("describe",),
    "source_command_config": ("verify",),
}


def mirrors_parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(
        prog=prog,
        description="Mirror topics of another cluster into this one, byte for byte.",
        epilog="Topics are named with commas between them; each may be a regular expression.",
    )
    add_cluster_flags(made)
    action = made.add_mutually_exclusive_group(required=True)
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
        "--source-command-config",
        type=Path,
        metavar="FILE",
        help="properties of this tool's own connection to the source (bootstrap.servers, "
        "request.timeout.ms, client.id); without it the mirror's bootstrap.servers are used",
    )
    return made


def check_flags(options: argparse.Namespace) -> None:
    """Refuse flags that the action needs and lacks, or has and does not know."""
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
    try:
        matcher(words(options.topics), words(options.exclude))
    except SettingsError as error:
        raise UsageError(str(error)) from error
