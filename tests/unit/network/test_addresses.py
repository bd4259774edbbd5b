import pytest

from twinlog.model.errors import SettingsError
from twinlog.network.addresses import Address, parse_addresses


def test_a_list_is_read_in_order_and_each_address_once() -> None:
    assert parse_addresses(" b:2, a:1 ,b:2,, [::1]:9092") == (
        Address("b", 2),
        Address("a", 1),
        Address("::1", 9092),
    )


@pytest.mark.parametrize("text", ["kafka.example:9092", "[fe80::1]:19092", "10.0.0.1:1"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    (address,) = parse_addresses(text)
    assert str(address) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("host", 'bootstrap.servers: "host" has no port'),
        ("[::1]", r'"\[::1\]" has no port'),
        ("host:", '"" in "host:" is no port'),
        ("host:port", '"port" in "host:port" is no port'),
        ("host:0", "is no port"),
        ("host:70000", "is no port"),
        ("host:-1", "is no port"),
        ("host:²", "is no port"),
        (":9092", "has no host"),
        ("[]:9092", "has no host"),
        ("kafka://host:9092", "in brackets|has no host"),
        ("::1:9092", r"in brackets: \[::1\]:9092"),
        (" , ", "no address"),
        ("", "no address"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        parse_addresses(text)


def test_the_setting_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^advertised\.listeners: "):
        parse_addresses("x", key="advertised.listeners")
