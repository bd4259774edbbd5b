"""The text of a login is read as Kafka reads it, and is never told back."""

import pytest

from twinlog.config.jaas import PLAIN_MODULE, SCRAM_MODULE, read_jaas


def test_a_login_has_a_module_and_options() -> None:
    login = read_jaas(f'{PLAIN_MODULE} required username="alice" password="alice-secret";')
    assert login.module == PLAIN_MODULE
    assert login.options == {"username": "alice", "password": "alice-secret"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"a b;c=d"', "a b;c=d"),
        ("'single \"double\" inside'", 'single "double" inside'),
        (r'"a\"b\\c\n"', 'a"b\\c\n'),
        (r'"\101\7\8"', "A\x078"),
        ("bare-word_1.$", "bare-word_1.$"),
        ('"ünï – ç"', "ünï – ç"),
        ('""', ""),
    ],
)
def test_a_value_may_hold_anything_in_quotes(written: str, meant: str) -> None:
    assert read_jaas(f"{PLAIN_MODULE} required password={written};").options["password"] == meant


def test_lines_blanks_and_comments_do_not_matter() -> None:
    text = f"""
    {SCRAM_MODULE}   REQUIRED // the mirror
       username = "me" /* and
       */ password="x"
    ;"""
    assert read_jaas(text).options == {"username": "me", "password": "x"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must begin with a login module and a flag"),
        (f"{PLAIN_MODULE};", "must begin"),
        (f'{PLAIN_MODULE} username="me" password="hush";', "must begin"),
        (f'{PLAIN_MODULE} required username="me" password="hush"', "end with a semicolon"),
        (f'{PLAIN_MODULE} required username="me" password="hush;', "without its end"),
        (f"{PLAIN_MODULE} required username=me password=hush!;", "needs quotes"),
        (f"{PLAIN_MODULE} required username hush;", 'name="value"'),
        (f"{PLAIN_MODULE} required username=me hush;", 'name="value"'),
        (f"{PLAIN_MODULE} required a=b; {PLAIN_MODULE} required password=hush;", "one login"),
    ],
)
def test_what_is_wrong_is_told_and_the_password_is_not(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        read_jaas(text)
    assert "hush" not in str(caught.value)


def test_a_login_is_not_printed_with_its_password() -> None:
    assert "hush" not in repr(read_jaas(f"{PLAIN_MODULE} required password=hush;"))
