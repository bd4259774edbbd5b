"""Errors of the broker become sentences that say what to do next."""

import pytest

from twinlog.cli.failures import NEXT_STEPS, CliError, expect_ok, sentence
from twinlog.model.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "why", "text"),
    [
        (41, None, "NOT_CONTROLLER."),
        (999, None, "error 999."),
        (36, "Topic 'a' exists.", "Topic 'a' exists (TOPIC_ALREADY_EXISTS). Choose another name"),
        (44, "POLICY_VIOLATION: it is mirrored", "it is mirrored (POLICY_VIOLATION)."),
    ],
)
def test_a_sentence_has_the_brokers_words_the_name_and_the_next_step(
    code: int, why: str | None, text: str
) -> None:
    assert sentence(code, why).startswith(text)


def test_every_next_step_is_a_sentence() -> None:
    for code, step in NEXT_STEPS.items():
        assert step[-1] in ".?", code


def test_no_error_is_no_exception() -> None:
    expect_ok(ErrorCode.NONE, "ignored", doing="nothing failed")
    with pytest.raises(CliError, match=r"^m was not created: NOT_CONTROLLER\."):
        expect_ok(ErrorCode.NOT_CONTROLLER, None, doing="m was not created")
