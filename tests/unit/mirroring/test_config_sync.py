"""What brings a topic's settings in step with the source."""

from twinlog.mirroring.config_sync import ConfigPlan, plan_config

KNOWN = {"retention.ms", "cleanup.policy", "min.insync.replicas", "segment.bytes"}


def test_overrides_are_set_and_deleted_as_at_the_source() -> None:
    plan = plan_config(
        {"retention.ms": "5", "cleanup.policy": "compact"},
        {"retention.ms": "6", "cleanup.policy": "compact", "segment.bytes": "9"},
        frozenset(),
        KNOWN,
    )
    assert plan == ConfigPlan({"retention.ms": "5"}, frozenset({"segment.bytes"}))


def test_what_is_excluded_or_unknown_here_stays_as_it_is() -> None:
    plan = plan_config(
        {"min.insync.replicas": "2", "of.another.broker": "x"},
        {"min.insync.replicas": "1"},
        {"min.insync.replicas"},
        KNOWN,
    )
    assert plan.is_empty


def test_an_exclusion_keeps_our_own_override_from_being_deleted() -> None:
    assert plan_config({}, {"segment.bytes": "9"}, {"segment.bytes"}, KNOWN).is_empty
