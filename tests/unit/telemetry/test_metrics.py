import pytest

from twinlog.telemetry.metrics import Kind, Reading, counter, gauge, one


def test_a_family_is_a_name_a_kind_and_labels() -> None:
    counted = counter("requests_total", "Requests answered.", "request", "version")
    assert (counted.kind, counted.labels) == (Kind.COUNTER, ("request", "version"))
    assert gauge("queued", "Requests waiting.").kind is Kind.GAUGE


def test_a_counter_is_named_as_one() -> None:
    with pytest.raises(AssertionError, match="requests should end in _total"):
        counter("requests", "Requests answered.")


def test_a_family_without_labels_has_one_series() -> None:
    queued = gauge("queued", "Requests waiting.")
    assert one(queued, 3) == Reading(queued, (((), 3),))
