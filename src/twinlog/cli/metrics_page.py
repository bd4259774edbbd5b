"""Makes docs/metrics.md from the declared families."""

from collections.abc import Iterator
from typing import Final

from twinlog.telemetry.families import CHAPTERS
from twinlog.telemetry.metrics import Family

_INTRODUCTION: Final = """\
# Metrics

Made from `src/twinlog/telemetry/families.py` by `twinlog docs metrics`; do not edit.

With `monitoring.listener=http://127.0.0.1:9404` in `config/server.properties` a broker tells its
metrics on `/metrics`, as Prometheus reads them, and on `/healthz` whether it serves: 200, or 503
while it starts or stops. Nobody listens there yet while logs are recovered. For Prometheus:

```yaml
scrape_configs:
  - job_name: twinlog
    static_configs:
      - targets: ["127.0.0.1:9404"]
rule_files:
  - alerts.yml    # docs/monitoring/alerts.yml
```

`docs/monitoring/grafana-dashboard.json` is a dashboard to import into Grafana.

Kafka's metrics have the names that the usual configuration of the JMX exporter gives them, so that
dashboards and alerts made for Kafka fit. Kafka's rates are told as totals: ask for
`rate(kafka_server_brokertopicmetrics_messagesin_total[1m])`. What Kafka has no word for begins with
`twinlog_`.

A series without the label `topic` is the sum of all topics, also of deleted ones and of what was
asked of topics that are not here; so sum either over `topic!=""` or take `topic=""`, as with Kafka.
On a broker with more partitions than `monitoring.partition.series.max` there are sums only.

The page costs the broker about 0.8 ms for each thousand series, in which it does nothing else; who
asks again within a quarter of a second gets the same page.
Whoever can connect can read it; nothing else can be done there.

Differs from Kafka: a request is counted under its own name only (no FetchConsumer beside Fetch),
and how long requests take is not told. The proposal's errors of a mirror's tasks are counted when
there is one, not in every round.
"""


def metrics_page() -> str:
    """Give the page: every family with its labels and what it means."""
    return "\n".join([_INTRODUCTION, *_chapters()])


def _chapters() -> Iterator[str]:
    for title, families in CHAPTERS:
        lines = [
            f"## {title}",
            "",
            "| Name | Kind | Labels | What it is |",
            "| --- | --- | --- | --- |",
        ]
        yield "\n".join([*lines, *map(_line, families)]) + "\n"


def _line(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.kind.value} | {labels} | {family.doc} |"
