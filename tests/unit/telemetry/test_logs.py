import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from twinlog.telemetry.logs import LogForm, set_up_logging


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raises = list(root.handlers), root.level, logging.raiseExceptions
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raises


log = logging.getLogger("twinlog.test")


def test_a_text_line_has_time_level_place_phrase_and_fields() -> None:
    stream = io.StringIO()
    set_up_logging(stream, form=LogForm.TEXT)
    log.info("mirror partition changed state", extra={"partition": "orders-0", "to": "STOPPED"})
    log.debug("not to be seen")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO twinlog\.test: "
        r"mirror partition changed state \(partition=orders-0, to=STOPPED\)\n",
        stream.getvalue(),
    )


def test_a_line_break_in_a_phrase_makes_no_second_line() -> None:
    stream = io.StringIO()
    set_up_logging(stream, form=LogForm.TEXT)
    log.warning("a client said %s", "hello\n2026-01-01 ERROR all is lost")
    assert stream.getvalue().count("\n") == 1


def test_nor_does_one_in_a_field() -> None:
    stream = io.StringIO()
    set_up_logging(stream, form=LogForm.TEXT)
    log.warning("mirror was asked", extra={"client_id": "x\r\n2026-01-01 ERROR all is lost"})
    assert stream.getvalue().count("\n") == 1
    assert "\r" not in stream.getvalue()


def test_a_stack_follows_its_line() -> None:
    stream = io.StringIO()
    set_up_logging(stream, form=LogForm.TEXT)
    try:
        raise ValueError("offset 5 is behind 7")
    except ValueError:
        log.exception("a request failed")
    first, *stack = stream.getvalue().splitlines()
    assert first.endswith("ERROR twinlog.test: a request failed")
    assert stack[0].startswith("Traceback")
    assert stack[-1] == "ValueError: offset 5 is behind 7"


def test_a_json_line_is_one_object() -> None:
    stream = io.StringIO()
    set_up_logging(stream, form=LogForm.JSON, level=logging.DEBUG)
    try:
        raise ValueError("offset 5\nis behind 7")
    except ValueError:
        log.exception("request %d failed", 3, extra={"partition": "naïve-0", "odd": {1}})
    assert stream.getvalue().count("\n") == 1
    line = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert (line["level"], line["logger"]) == ("ERROR", "twinlog.test")
    assert (line["message"], line["partition"], line["odd"]) == (
        "request 3 failed",
        "naïve-0",
        "{1}",
    )
    assert "is behind 7" in line["stack"]


def test_a_second_set_up_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    set_up_logging(first, form=LogForm.TEXT)
    set_up_logging(second, form=LogForm.TEXT, level=logging.WARNING)
    log.info("no longer seen")
    log.warning("seen once")
    assert first.getvalue() == ""
    assert second.getvalue().count("seen") == 1


def test_a_stream_that_is_gone_stops_nothing() -> None:
    stream = io.StringIO()
    set_up_logging(stream, form=LogForm.TEXT)
    stream.close()
    log.info("into the void")
