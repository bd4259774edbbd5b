from math import inf, nan

from twinlog.telemetry.exposition import render
from twinlog.telemetry.metrics import Reading, counter, gauge, one

SIZE = gauge("size", "Bytes.", "topic", "partition")


def test_a_family_is_told_with_its_help_its_type_and_its_series() -> None:
    page = render([Reading(SIZE, [(("orders", 0), 10), (("orders", 1), 2.5)])])
    assert page.decode().splitlines() == [
        "# HELP size Bytes.",
        "# TYPE size gauge",
        'size{topic="orders",partition="0"} 10',
        'size{topic="orders",partition="1"} 2.5',
    ]


def test_a_total_stands_beside_the_series_without_labels() -> None:
    bytes_in = counter("in_total", "Bytes.", "topic")
    page = render([Reading(bytes_in, [((), 7), (("a",), 7)])])
    assert page.decode().splitlines()[2:] == ["in_total 7", 'in_total{topic="a"} 7']


def test_a_family_without_series_is_left_out() -> None:
    assert render([Reading(SIZE, []), one(gauge("a", "A."), 1)]).startswith(b"# HELP a A.\n")


def test_what_has_a_meaning_in_the_format_is_escaped() -> None:
    strange = gauge("strange", "One\nline \\ only.", "mirror")
    page = render([Reading(strange, [(('a"b\\c\nd',), 1)])]).decode()
    assert page.splitlines() == [
        "# HELP strange One\\nline \\\\ only.",
        "# TYPE strange gauge",
        'strange{mirror="a\\"b\\\\c\\nd"} 1',
    ]


def test_numbers_that_are_none_have_names() -> None:
    page = render([Reading(SIZE, [(("t", 0), inf), (("t", 1), -inf), (("t", 2), nan)])]).decode()
    assert [line.split()[-1] for line in page.splitlines()[2:]] == ["+Inf", "-Inf", "NaN"]
