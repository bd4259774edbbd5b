import pytest

from twinlog.coordination.homes import home_of, java_hash


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -2147483648),
        ("😀", 1772899),
    ],
)
def test_a_hash_is_the_one_java_gives(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_lowest_hash_lives_in_the_first_partition() -> None:
    assert home_of("polygenelubricants", 50) == 0


def test_every_key_has_a_home_among_the_partitions() -> None:
    assert {home_of(f"group-{n}", 50) for n in range(5000)} == set(range(50))
