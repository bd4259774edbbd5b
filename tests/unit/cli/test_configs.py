"""The verbs of settings: what is asked, what is printed, exit codes."""

from pathlib import Path

import pytest

from support.answering_broker import AnsweringBroker
from support.commands import Ran, run_command
from twinlog.wire.messages import configs


def configs_command(broker: AnsweringBroker, *arguments: str) -> Ran:
    return run_command(["configs", "--bootstrap-server", broker.bootstrap, *arguments])


def with_configs(broker: AnsweringBroker, error_code: int = 0) -> None:
    """Answer for every resource with one setting of its own and one default."""

    def described(request: configs.DescribeConfigsRequest) -> configs.DescribeConfigsResponse:
        (asked,) = request.resources
        own = configs.DescribedConfig(
            name="retention.ms",
            value="5",
            config_source=1,
            synonyms=(
                configs.ConfigSynonym(name="retention.ms", value="5", source=1),
                configs.ConfigSynonym(name="log.retention.ms", value="9", source=5),
            ),
        )
        secret = configs.DescribedConfig(
            name="a.secret", value=None, config_source=5, is_sensitive=True
        )
        resource = configs.DescribedResource(
            error_code=error_code,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=(own, secret),
        )
        return configs.DescribeConfigsResponse(results=(resource,))

    broker.on(configs.DESCRIBE_CONFIGS, described)


def asked_names(broker: AnsweringBroker) -> list[tuple[int, str]]:
    asked = broker.asked_for(configs.DescribeConfigsRequest)
    return [(r.resource_type, r.resource_name) for a in asked for r in a.resources]


OWN_LINE = (
    "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5, "
    "DEFAULT_CONFIG:log.retention.ms=9}"
)


def test_describe_tells_what_was_set_and_all_if_asked(broker: AnsweringBroker) -> None:
    with_configs(broker)
    ran = configs_command(broker, "--describe", "--topic", "a")
    assert (ran.code, ran.out) == (0, f"Dynamic configs for topic a are:\n{OWN_LINE}\n")
    ran = configs_command(
        broker, "--describe", "--entity-type", "topics", "--entity-name", "a", "--all"
    )
    assert ran.out.splitlines() == [
        "All configs for topic a are:",
        "  a.secret=null sensitive=true synonyms={}",
        OWN_LINE,
    ]


def test_without_a_name_all_of_a_kind_are_described(broker: AnsweringBroker) -> None:
    broker.logs = {("b", 0): b"", ("a", 0): b""}
    with_configs(broker)
    configs_command(broker, "--describe", "--entity-type", "topics")
    configs_command(broker, "--describe", "--entity-type", "brokers")
    mirror = configs.ConfigResource(resource_name="m", resource_type=64)
    listed = configs.ListConfigResourcesResponse(config_resources=(mirror,))
    broker.on(configs.LIST_CONFIG_RESOURCES, listed)
    ran = configs_command(broker, "--describe", "--entity-type", "cluster-mirrors")
    assert "cluster mirror m" in ran.out
    assert asked_names(broker) == [(2, "a"), (2, "b"), (4, "5"), (4, ""), (64, "m")]


def test_a_broker_that_is_not_there_is_named(broker: AnsweringBroker) -> None:
    ran = configs_command(broker, "--describe", "--broker", "8")
    assert (ran.code, ran.err) == (1, "twinlog configs: there is no broker 8; there are 5\n")


def test_an_error_is_told(broker: AnsweringBroker) -> None:
    with_configs(broker, error_code=3)
    ran = configs_command(broker, "--describe", "--topic", "x")
    assert ran.code == 1
    assert "configs for topic x cannot be described: UNKNOWN_TOPIC_OR_PARTITION" in ran.err


def altered(broker: AnsweringBroker, *arguments: str) -> list[tuple[str, int, str | None]]:
    row = configs.AlteredResource(resource_type=2, resource_name="a")
    broker.on(
        configs.INCREMENTAL_ALTER_CONFIGS, configs.IncrementalAlterConfigsResponse(responses=(row,))
    )
    ran = configs_command(broker, "--alter", "--topic", "a", *arguments)
    assert (ran.code, ran.out) == (0, "Completed updating config for topic a.\n")
    (asked,) = broker.asked_for(configs.IncrementalAlterConfigsRequest)[-1].resources
    return [(c.name, c.config_operation, c.value) for c in asked.configs]


def test_alter_sets_and_deletes(broker: AnsweringBroker) -> None:
    with_configs(broker)
    deleted = ("--delete-config", "retention.ms, a.secret")
    assert altered(broker, "--add-config", "a=1,b=[x,y] , c=z=w", *deleted) == [
        ("a", 0, "1"),
        ("b", 0, "x,y"),
        ("c", 0, "z=w"),
        ("retention.ms", 1, None),
        ("a.secret", 1, None),
    ]
    assert altered(broker, "--add-config", "a=,b=[]") == [("a", 0, ""), ("b", 0, "")]


def test_settings_are_read_from_a_file_and_the_command_line_wins(
    broker: AnsweringBroker, tmp_path: Path
) -> None:
    file = tmp_path / "add.properties"
    file.write_text("# secret\na = it has [brackets], and = \\\n  goes on\nb=1\n")
    given = ("--add-config-file", str(file))
    assert altered(broker, *given, "--add-config", "b=2") == [
        ("a", 0, "it has [brackets], and = goes on"),
        ("b", 0, "2"),
    ]
    file.write_text("# nothing\n")
    ran = configs_command(broker, "--alter", "--topic", "a", *given)
    assert (ran.code, ran.err) == (1, f"twinlog configs: {file} sets nothing\n")


def test_what_no_setting_is_called_is_not_deleted(broker: AnsweringBroker) -> None:
    with_configs(broker)
    ran = configs_command(
        broker, "--alter", "--topic", "a", "--delete-config", "retention.ms,no.such"
    )
    assert (ran.code, broker.asked_for(configs.IncrementalAlterConfigsRequest)) == (1, [])
    assert "there is no setting no.such to delete" in ran.err


def test_a_refusal_is_told(broker: AnsweringBroker) -> None:
    row = configs.AlteredResource(
        error_code=40, error_message="a=1 cannot be", resource_type=4, resource_name=""
    )
    broker.on(
        configs.INCREMENTAL_ALTER_CONFIGS, configs.IncrementalAlterConfigsResponse(responses=(row,))
    )
    ran = configs_command(
        broker,
        *("--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "a=1"),
    )
    assert ran.code == 1
    assert ran.err == (
        "twinlog configs: configs for the default of every broker were not altered: "
        "a=1 cannot be (INVALID_CONFIG).\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--describe"], "say of what: --topic NAME, --broker ID, or --entity-type"),
        (["--describe", "--topic", "a", "--add-config", "b=1"], "go with --alter only"),
        (
            ["--alter", "--topic", "a"],
            "--alter needs --add-config A=1,B=2, --add-config-file FILE or",
        ),
        (["--alter", "--topic", "a", "--add-config", "b"], "--add-config b is not A=1,B=2"),
        (["--alter", "--topic", "a", "--add-config", "b=[1"], "has a [ without its ]"),
        (["--alter", "--topic", "a", "--add-config", "b=[1]x,c=2"], "goes on behind its ]"),
        (["--alter", "--entity-type", "topics", "--add-config", "b=1"], "--alter needs --entity-n"),
        (["--describe", "--entity-type", "topics", "--entity-default"], "--entity-default goes"),
        (["--describe", "--entity-type", "users"], "invalid choice: 'users'"),
    ],
    ids=str,
)
def test_flags_that_do_not_fit_are_code_2(
    broker: AnsweringBroker, arguments: list[str], message: str
) -> None:
    ran = configs_command(broker, *arguments)
    assert ran.code == 2
    assert message in ran.err
