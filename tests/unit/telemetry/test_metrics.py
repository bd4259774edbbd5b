import pytest

from twinlog.telemetry.metrics import Registry, Sample


def test_a_counter_counts_and_is_the_same_when_asked_for_again() -> None:
    registry = Registry()
    counter = registry.counter("requests", "Requests answered.", api="FETCH")
    counter.add()
    counter.add(4)
    assert registry.counter("requests", "Requests answered.", api="FETCH") is counter
    assert registry.counter("requests", "Requests answered.", api="PRODUCE").value == 0
    assert counter.value == 5
    assert registry.doc_of("requests") == "Requests answered."


def test_a_gauge_is_read_when_it_is_asked_for() -> None:
    registry = Registry()
    queue = [1, 2, 3]
    registry.gauge("queued", "Requests waiting.", lambda: len(queue))
    queue.append(4)
    assert list(registry.read()) == [Sample("queued", (), 4)]


def test_samples_come_by_name_and_labels() -> None:
    registry = Registry()
    registry.counter("b", "B.", topic="z").add(2)
    registry.counter("b", "B.", topic="a", partition="0").add(1)
    registry.gauge("a", "A.", lambda: 0.5)
    assert list(registry.read()) == [
        Sample("a", (), 0.5),
        Sample("b", (("partition", "0"), ("topic", "a")), 1),
        Sample("b", (("topic", "z"),), 2),
    ]


def test_a_series_can_be_forgotten() -> None:
    registry = Registry()
    registry.gauge("lag", "Records behind.", lambda: 7, partition="orders-0")
    registry.forget("lag", partition="orders-0")
    registry.forget("lag", partition="never known")
    assert list(registry.read()) == []


def test_one_name_is_one_kind() -> None:
    registry = Registry()
    registry.counter("a", "A.")
    registry.gauge("b", "B.", lambda: 1)
    with pytest.raises(AssertionError, match="a is a counter"):
        registry.gauge("a", "A.", lambda: 1)
    with pytest.raises(AssertionError, match="b is a gauge"):
        registry.counter("b", "B.")
