"""Listeners: what is opened, what is told, and what cannot be."""

import pytest

from twinlog.config.broker import BROKER
from twinlog.config.declare import Settings
from twinlog.config.network import Endpoint, advertised, endpoints
from twinlog.model.errors import SettingsError


def of(**given: str) -> Settings:
    return Settings.of(BROKER, {name.replace("_", "."): text for name, text in given.items()})


def test_by_default_only_loopback_is_listened_on() -> None:
    assert endpoints(of()) == (Endpoint("PLAINTEXT", "127.0.0.1", 9_092),)
    assert advertised(of()) == (Endpoint("PLAINTEXT", "127.0.0.1", 9_092),)


def test_every_address_is_told_as_localhost_unless_something_else_is_said() -> None:
    assert advertised(of(listeners="PLAINTEXT://:9092"))[0].host == "localhost"
    told = advertised(
        of(listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://host.x:19092")
    )
    assert told == (Endpoint("PLAINTEXT", "host.x", 19_092),)


def test_ipv6_addresses_stand_in_brackets() -> None:
    (endpoint,) = endpoints(of(listeners="PLAINTEXT://[::1]:9092"))
    assert endpoint == Endpoint("PLAINTEXT", "::1", 9_092)
    assert str(endpoint) == "PLAINTEXT://[::1]:9092"


def test_a_configuration_of_kafkas_own_controller_mode_is_understood() -> None:
    settings = of(
        process_roles="broker,controller",
        listeners="PLAINTEXT://:9092,CONTROLLER://:9093",
        controller_listener_names="CONTROLLER",
        controller_quorum_voters="1@localhost:9093",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    )
    assert endpoints(settings) == (Endpoint("PLAINTEXT", "", 9_092),)
    assert advertised(settings) == (Endpoint("PLAINTEXT", "localhost", 9_092),)
    assert settings.ignored == ("controller.quorum.voters", "process.roles")


def test_listeners_have_names_of_their_own() -> None:
    settings = of(
        listeners="IN://127.0.0.1:0,OUT://127.0.0.1:0",
        listener_security_protocol_map="IN:PLAINTEXT,OUT:PLAINTEXT",
    )
    assert [endpoint.name for endpoint in endpoints(settings)] == ["IN", "OUT"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listeners": "127.0.0.1:9092"}, "not NAME://host:port: write, for example"),
        ({"listeners": "PLAINTEXT://h:70000"}, "not NAME://host:port"),
        ({"listeners": ""}, "not empty"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "names must differ"),
        ({"listeners": "SSL://:9093"}, "should speak SSL, but only PLAINTEXT"),
        ({"listeners": "IN://:9093"}, "add IN:PLAINTEXT to listener.security.protocol.map"),
        ({"advertised.listeners": "X://h:1"}, r"advertised.listeners has X, but listeners has"),
        ({"advertised.listeners": "PLAINTEXT://:9092"}, "to which no client can connect"),
        (
            {"listeners": "C://:1", "controller.listener.names": "C"},
            "only the controllers' listeners",
        ),
    ],
    ids=str,
)
def test_listeners_that_cannot_be_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Settings.of(BROKER, given)
