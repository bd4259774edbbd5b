from twinlog.broker.traffic import Traffic


def test_a_topic_that_is_gone_stays_in_the_total() -> None:
    traffic = Traffic()
    traffic.begin("a").bytes_in += 10
    traffic.begin("b").bytes_in += 1
    assert traffic.begin("a") is traffic.of("a")
    traffic.forget("a")
    traffic.forget("never known")
    assert [name for name, _ in traffic] == ["b"]
    assert len(traffic) == 1
    assert traffic.total().bytes_in == 11
    assert traffic.begin("a").bytes_in == 0


def test_what_was_asked_of_no_topic_here_is_in_the_total_only() -> None:
    traffic = Traffic()
    traffic.of("unknown").failed_fetches += 1
    assert not list(traffic)
    assert traffic.total().failed_fetches == 1


def test_replicas_that_fall_out_of_sync_and_come_back_are_counted() -> None:
    traffic = Traffic()
    traffic.isr_changed(3, 2)
    traffic.isr_changed(2, 2)
    traffic.isr_changed(2, 3)
    assert (traffic.isr_shrinks, traffic.isr_expands) == (1, 1)
