"""What is offered for Prometheus and Grafana can be read, and asks only for what there is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from twinlog.telemetry.families import CHAPTERS, STATES
from twinlog.telemetry.metrics import Family, Kind

FOLDER = Path(__file__).parent.parent / "docs" / "monitoring"
FAMILIES = {family.name: family for _, chapter in CHAPTERS for family in chapter}
# What Prometheus adds to every series, and the series it makes itself.
ADDED = {"instance", "job"}
OF_PROMETHEUS = {"up"}

METRIC = re.compile(r"\b(?:kafka|twinlog|process)_\w+")
SELECTOR = re.compile(r"\b([a-z]\w*)\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
RATED = re.compile(r"\b(?:rate|increase)\((\w+)")


def alert_rules() -> list[dict[str, str]]:
    """Read the rules: our file keeps each key on a line of its own, so no parser is needed."""
    rules: list[dict[str, str]] = []
    for line in (FOLDER / "alerts.yml").read_text().splitlines():
        found = re.fullmatch(r"\s+(?:- )?(alert|expr|for|severity|summary|description): (.+)", line)
        if found is None:
            continue
        if found[1] == "alert":
            rules.append({})
        rules[-1][found[1]] = found[2]
    return rules


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    return found


def asked_in_panels() -> list[str]:
    return [t["expr"] for panel in dashboard()["panels"] for t in panel.get("targets", ())]


def asked() -> list[str]:
    variables = [one["query"] for one in dashboard()["templating"]["list"]]
    queries = [one["query"] for one in variables if isinstance(one, dict)]
    return [*(rule["expr"] for rule in alert_rules()), *asked_in_panels(), *queries]


@pytest.mark.parametrize("expression", asked())
def test_an_expression_asks_only_for_what_a_broker_tells(expression: str) -> None:
    assert expression.count("(") == expression.count(")")
    names = [name for name in METRIC.findall(expression) if name not in ADDED]
    assert set(names) <= FAMILIES.keys()
    assert names or "up{" in expression
    for name, selector in SELECTOR.findall(expression):
        labels = set(re.findall(r'(\w+)=?[=!~]+"', selector))
        own = set() if name in OF_PROMETHEUS else set(FAMILIES[name].labels)
        assert labels <= own | ADDED, f"{name} has no such labels"
    for name in RATED.findall(expression):
        assert FAMILIES[name].kind is Kind.COUNTER, f"{name} can fall"
    for labels in GROUPED.findall(expression):
        known = {label for name in names for label in FAMILIES[name].labels}
        assert set(labels.split(", ")) <= known | ADDED


def test_every_alert_says_what_to_do_and_is_named_once() -> None:
    rules = alert_rules()
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.keys() >= {"alert", "expr", "severity", "summary", "description"}
        assert rule["severity"] in ("warning", "critical")
        for text in (rule["summary"], rule["description"]):
            assert re.fullmatch(r'"[^"]+"', text), "what has {{ }} in it must be quoted"


@pytest.mark.parametrize(
    "family", ["lag_seconds", "source_silent_seconds", "partitions", "lost_records_total"]
)
def test_what_an_operator_of_a_mirror_must_know_has_an_alert(family: str) -> None:
    assert any(f"twinlog_mirror_{family}" in rule["expr"] for rule in alert_rules())


def test_a_loss_that_was_there_at_the_first_scrape_rings_as_well() -> None:
    (rule,) = (rule for rule in alert_rules() if rule["alert"] == "TwinlogMirrorRecordsLost")
    name = "twinlog_mirror_lost_records_total"
    # A counter that is first seen above 0 has not increased, to Prometheus.
    assert f"increase({name}[10m]) > 0 or " in rule["expr"]
    assert f"({name} > 0 unless {name} offset 10m)" in rule["expr"]


def test_the_rules_are_indented_as_yaml_wants_it() -> None:
    lines = (FOLDER / "alerts.yml").read_text().splitlines()
    for line in (line for line in lines if line.strip() and not line.lstrip().startswith("#")):
        indent = len(line) - len(line.lstrip(" "))
        assert indent % 2 == 0
        assert "\t" not in line
        # A plain value must not hold ": " or " #", which would begin another one or a comment.
        value = line.partition(": ")[2]
        assert value.startswith('"') or (": " not in value and " #" not in value), line


def test_panels_have_names_units_and_places_of_their_own() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)
    assert all(panel["title"] for panel in panels)


def test_the_states_told_are_those_there_are() -> None:
    from twinlog.mirroring.states import MirrorState

    assert STATES.keys() == {state.name for state in MirrorState} - {"UNKNOWN"}


def test_names_are_as_prometheus_wants_them() -> None:
    for name, family in FAMILIES.items():
        assert re.fullmatch(r"[a-z_][a-z0-9_]*", name)
        assert name.endswith("_total") == (family.kind is Kind.COUNTER)
        assert all(re.fullmatch(r"[a-zA-Z_]\w*", label) for label in labels_of(family))


def labels_of(family: Family) -> tuple[str, ...]:
    return family.labels
