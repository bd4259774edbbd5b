from base64 import urlsafe_b64encode

from twinlog.broker.clock import Clock


def test_deadlines_never_go_back() -> None:
    clock = Clock()
    readings = [clock.now_ms() for _ in range(100)]
    assert readings == sorted(readings)


def test_a_fresh_id_can_be_an_argument_on_a_command_line() -> None:
    clock = Clock()
    ids = [clock.uuid() for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert not any(urlsafe_b64encode(id_.bytes).startswith(b"-") for id_ in ids)
