"""``twinlog docs PAGE``: writes the pages that are made from code, or checks them."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from twinlog.cli.failures import EXIT_OK, CliError
from twinlog.cli.metrics_page import metrics_page
from twinlog.config.broker import BROKER
from twinlog.config.declare import Setting, SettingSet, Update
from twinlog.config.kinds import Kind
from twinlog.config.mirror import MIRROR
from twinlog.config.topic import TOPIC

_INTRODUCTION: Final = """\
# Settings

Made from `src/twinlog/config/` by `twinlog docs settings`; do not edit. The keys are Kafka's own
wherever Kafka has the setting, so a file written for Kafka works; what it sets that has no effect
here (settings marked so below, and others of Kafka) is listed in a warning when the broker starts.
An unknown key is an error.

"When" says when a change takes effect: *start* is at the next start of the broker, *at once* is
with `kafka-configs.sh` or IncrementalAlterConfigs, for one broker or for all.
"""

_CHAPTERS: Final = (
    (
        BROKER,
        "Broker",
        "In `config/server.properties`, or `--override key=value` beside it, which wins.",
    ),
    (
        TOPIC,
        "Topic",
        "Given when a topic is created or altered. What a topic does not set comes from the broker "
        "setting named beside it.",
    ),
    (
        MIRROR,
        "Mirror",
        "In the file of `kafka-cluster-mirrors.sh --create --mirror-config`; see "
        "`config/mirror.properties`.",
    ),
)

_WHEN: Final = {
    Update.READ_ONLY: "start",
    Update.PER_BROKER: "at once, per broker",
    Update.CLUSTER_WIDE: "at once",
}


def parser(prog: str) -> argparse.ArgumentParser:
    """Give the parser of the command's flags."""
    made = argparse.ArgumentParser(prog=prog, description="Write the pages made from code.")
    made.add_argument("page", choices=["metrics", "protocol", "settings"])
    made.add_argument(
        "--check", type=Path, metavar="FILE", help="only tell whether FILE is as it should be"
    )
    made.add_argument("--output", type=Path, metavar="FILE", help="by default docs/PAGE.md")
    return made


def run(options: argparse.Namespace) -> int:
    """Write the page, or check it."""
    page = _PAGES[options.page]()
    output = options.output or Path(f"docs/{options.page}.md")
    if options.check is None:
        output.write_text(page, encoding="utf-8")
        print(f"Wrote {output}")
    elif options.check.read_text(encoding="utf-8") != page:
        raise CliError(
            f"{options.check} is not what the code says: run twinlog docs {options.page}"
        )
    return EXIT_OK


def _protocol_page() -> str:
    from twinlog.broker.protocol_page import protocol_page  # loads the whole broker

    return protocol_page()


def settings_page() -> str:
    """Give the page of all settings."""
    chapters = (_chapter(*chapter) for chapter in _CHAPTERS)
    return "\n".join([_INTRODUCTION, *chapters])


_PAGES: Final[dict[str, Callable[[], str]]] = {
    "metrics": metrics_page,
    "protocol": _protocol_page,
    "settings": settings_page,
}


def _chapter(declared: SettingSet, title: str, about: str) -> str:
    when = declared is not TOPIC and declared is not MIRROR
    head = ["Key", "Type", "Default", "Values", "When" if when else "Broker setting"]
    if declared is MIRROR:
        head.pop()
    rows = [_row(setting, declared) for setting in sorted(declared.settings, key=lambda s: s.name)]
    lines = [f"## {title} settings", "", about, "", _line([*head, "What it does"])]
    lines.append(_line(["---"] * (len(head) + 1)))
    lines += [_line(row) for row in rows]
    return "\n".join(lines) + "\n"


def _row(setting: Setting[Any], declared: SettingSet) -> list[str]:
    cells = [
        f"`{setting.name}`",
        setting.kind.name.lower(),
        _default(setting),
        setting.check.words,
    ]
    if declared is TOPIC:
        cells.append(f"`{setting.synonyms[0].setting.name}`" if setting.synonyms else "")
    elif declared is BROKER:
        cells.append(_WHEN[setting.update])
    return [*cells, f"{setting.doc} *No effect yet.*" if setting.is_idle else setting.doc]


def _default(setting: Setting[Any]) -> str:
    if setting.default is None or setting.kind is Kind.PASSWORD:
        return ""
    text = setting.format(setting.default)
    return f"`{text.replace(',', ', ')}`" if text else "(empty)"


def _line(cells: list[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
