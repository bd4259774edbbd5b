"""Tables and JSON look the same for every verb."""

import io
import json
from uuid import UUID

from twinlog.cli.output import (
    Column,
    base64_of,
    cut_left,
    cut_right,
    fitted,
    write_json,
    write_table,
)


def test_a_name_is_cut_on_the_left_and_a_message_on_the_right() -> None:
    assert cut_left("a-long-topic-name", 10) == "...ic-name"
    assert cut_left("short", 10) == "short"
    assert cut_right("a message that goes on", 10) == "a messa..."
    assert cut_right("short", 10) == "short"


def test_cells_are_padded_names_cut_other_cells_kept_and_none_is_a_dash() -> None:
    out = io.StringIO()
    columns = (Column("NAME", 8, is_name=True), Column("STATE", 3), Column("LAST"))
    write_table(columns, [("abcdefghijk", "LONGER", 1), ("a", "OK", None)], out)
    assert out.getvalue() == "NAME     STATE LAST\n...ghijk LONGER 1\na        OK  -\n"


def test_columns_can_be_as_wide_as_what_they_hold() -> None:
    assert fitted(("A", "LONG"), [("xyz", None)]) == [Column("A", 3), Column("LONG", 4)]


def test_json_is_one_document_in_plain_letters() -> None:
    out = io.StringIO()
    write_json([{"topic": "ü", "lag": None}], out)
    assert json.loads(out.getvalue()) == [{"topic": "ü", "lag": None}]
    assert "ü" in out.getvalue()
    assert out.getvalue().endswith("]\n")


def test_nothing_is_an_empty_list() -> None:
    out = io.StringIO()
    write_json([], out)
    assert out.getvalue() == "[]\n"


def test_topic_ids_are_told_as_kafka_tells_them() -> None:
    assert base64_of(UUID(int=0)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert base64_of(UUID(int=(1 << 128) - 1)) == "_____________________w"
