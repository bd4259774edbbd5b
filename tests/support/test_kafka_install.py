"""Tests of what decides whether Kafka can run here, and what Maven is asked for."""

from pathlib import Path

import pytest

from support import kafka_install
from support.kafka_install import KAFKA_2_1, KAFKA_4, RELEASES


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a machine with no programs and an empty cache."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(machine: Path, name: str) -> None:
    program = machine / "bin" / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)


def test_a_machine_without_java_is_told_so(empty_machine: Path) -> None:
    assert "no JDK" in (kafka_install.missing_for(KAFKA_4) or "")


def test_a_machine_without_maven_is_told_so(empty_machine: Path) -> None:
    install(empty_machine, "java")
    assert "no Maven" in (kafka_install.missing_for(KAFKA_4) or "")


def test_a_filled_cache_needs_no_maven(empty_machine: Path) -> None:
    install(empty_machine, "java")
    folder = kafka_install.cache_folder() / f"kafka-{KAFKA_4}"
    folder.mkdir(parents=True)
    jar = empty_machine / "some.jar"
    jar.touch()
    (folder / "pom.xml").write_text(kafka_install.pom_of(RELEASES[KAFKA_4]))
    (folder / "class_path.txt").write_text(str(jar))
    assert kafka_install.missing_for(KAFKA_4) is None
    jar.unlink()
    assert "no Maven" in (kafka_install.missing_for(KAFKA_4) or "")


def test_missing_java_skips_a_test_here_and_fails_it_in_ci(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no JDK"):
        kafka_install.require(KAFKA_4)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no JDK"):
        kafka_install.require(KAFKA_4)


def test_kafka_2_1_is_asked_for_with_a_zookeeper_that_newer_java_can_use() -> None:
    pom = kafka_install.pom_of(RELEASES[KAFKA_2_1])
    assert "<artifactId>zookeeper</artifactId><version>3.5.9</version>" in pom
    assert "<artifactId>kafka_2.12</artifactId><version>2.1.1</version>" in pom
