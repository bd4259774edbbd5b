from twinlog.cli.metrics_page import metrics_page
from twinlog.telemetry.families import CHAPTERS


def test_every_family_has_a_line_with_what_it_means() -> None:
    page = metrics_page()
    families = [family for _, chapter in CHAPTERS for family in chapter]
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert f"| `{family.name}` | {family.kind.value} |" in page
        assert family.doc.endswith(".")
