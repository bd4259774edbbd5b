"""Every flag of mirrors is known to some action; what is refused is tested with the verbs."""

from twinlog.cli.mirror_flags import (
    ACTIONS,
    ALLOWED,
    TOPIC_ACTIONS,
    WAIT,
    check_flags,
    mirrors_parser,
)


def test_flags_are_allowed_for_actions_that_there_are() -> None:
    known = set(vars(mirrors_parser("p").parse_args(["--bootstrap-server", "h:1", "--list"])))
    assert set(ALLOWED) <= known
    assert {action for actions in ALLOWED.values() for action in actions} <= {*ACTIONS, WAIT}
    assert set(TOPIC_ACTIONS) <= set(ACTIONS)


def test_a_whole_command_line_is_taken() -> None:
    options = mirrors_parser("p").parse_args(
        ["--bootstrap-server", "h:1", "--verify", "--mirror", "m", "--topics", "a,b.*", "--json"]
    )
    check_flags(options)
    assert (options.action, options.topics, options.json) == ("verify", "a,b.*", True)


def test_wait_is_an_action_by_itself_and_has_a_bound() -> None:
    options = mirrors_parser("p").parse_args(
        ["--bootstrap-server", "h:1", "--wait", "--mirror", "m", "--state", "PAUSED"]
    )
    check_flags(options)
    assert (options.action, options.state, options.timeout_ms) == ("wait", "PAUSED", 600_000)
