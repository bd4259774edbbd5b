"""Every setting either has an effect or says that it has none yet."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from twinlog.config.declare import Setting

PACKAGE = Path(__file__).parent.parent / "src" / "twinlog"
MODULES = ("broker", "network", "monitoring", "logs", "coordinators", "mirror", "topic")
# What config itself makes something of, for others: endpoints(), and checks that leave one value.
READ_IN_CONFIG = {
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.listener.names",
    "monitoring.listener",
}
# What only the command line reads is read by nobody who could give it an effect.
READERS = ("broker", "cluster", "groups", "mirroring", "storage", "network", "replication")


def read_by(path: Path) -> Iterator[Setting[Any]]:
    """Give the settings that a file names, by import or as attributes of their module."""
    tree = ast.parse(path.read_text())
    modules: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("twinlog.config"):
            home = import_module(node.module or "")
            for alias in node.names:
                found = getattr(home, alias.name)
                if isinstance(found, Setting):
                    yield found
                modules[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = getattr(modules.get(node.value.id), node.attr, None)
            if isinstance(found, Setting):
                yield found


def with_effect() -> set[int]:
    """Give the identities of settings that somebody reads, and of those they fall back to."""
    found: set[int] = set()
    for folder in READERS:
        for path in (PACKAGE / folder).rglob("*.py"):
            for setting in read_by(path):
                found.add(id(setting))
                found.update(id(synonym.setting) for synonym in setting.synonyms)
    return found


def test_a_setting_that_nobody_reads_says_so_and_no_other_does() -> None:
    effective = with_effect()
    wrong = []
    for name in MODULES:
        module = import_module(f"twinlog.config.{name}")
        for constant, setting in vars(module).items():
            if not isinstance(setting, Setting):
                continue
            is_read = id(setting) in effective or setting.name in READ_IN_CONFIG
            if is_read == setting.is_idle:
                fix = "remove is_idle=True" if is_read else "read it, or declare is_idle=True"
                wrong.append(f"twinlog.config.{name}.{constant}: {fix}")
    assert not wrong, "\n" + "\n".join(sorted(wrong))
