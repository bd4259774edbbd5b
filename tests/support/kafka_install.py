"""Fetches Apache Kafka as Maven jars, once a machine, into a cache outside the repository."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

KAFKA_4: str = "4.4.0"
KAFKA_WITH_MIRROR_MAKER: str = "4.3.1"
KAFKA_2_1: str = "2.1.1"

_LOG4J_2 = tuple(
    f"org.apache.logging.log4j:{artifact}:2.25.5"
    for artifact in ("log4j-slf4j-impl", "log4j-core", "log4j-1.2-api")
)
_LOG4J_1 = ("org.slf4j:slf4j-log4j12:1.7.25", "log4j:log4j:1.2.17")


def _kafka(version: str, *, scala: str) -> tuple[str, ...]:
    names = (f"kafka_{scala}", "kafka-tools")
    return tuple(f"org.apache.kafka:{name}:{version}" for name in names)


@dataclass(frozen=True, slots=True)
class Release:
    """What one version of Apache Kafka is made of, and what its servers say when they are ready."""

    version: str
    dependencies: tuple[str, ...]
    ready_line: str
    needs_zookeeper: bool = False


RELEASES: dict[str, Release] = {
    KAFKA_4: Release(KAFKA_4, _kafka(KAFKA_4, scala="2.13") + _LOG4J_2, "Kafka Server started"),
    KAFKA_WITH_MIRROR_MAKER: Release(
        KAFKA_WITH_MIRROR_MAKER,
        (
            *_kafka(KAFKA_WITH_MIRROR_MAKER, scala="2.13"),
            f"org.apache.kafka:connect-mirror:{KAFKA_WITH_MIRROR_MAKER}",
            f"org.apache.kafka:connect-json:{KAFKA_WITH_MIRROR_MAKER}",
            *_LOG4J_2,
        ),
        "Kafka Server started",
    ),
    # The client of ZooKeeper 3.4.13, which Kafka 2.1 names, cannot parse addresses on Java 14 and
    # newer; 3.5.9 can, and named first-hand it is the one Maven takes.
    KAFKA_2_1: Release(
        KAFKA_2_1,
        ("org.apache.zookeeper:zookeeper:3.5.9", *_kafka(KAFKA_2_1, scala="2.12"), *_LOG4J_1),
        "started (kafka.server.KafkaServer)",
        needs_zookeeper=True,
    ),
}


class InstallError(Exception):
    """Apache Kafka could not be fetched; the text is Maven's own."""


def cache_folder() -> Path:
    """The folder of everything that tests and benches fetch or build, shared by all checkouts."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "twinlog-tests"


def missing_for(version: str) -> str | None:
    """Name what this machine lacks to run that Kafka, or None."""
    if shutil.which("java") is None:
        return "no JDK: `java` is not on the path (Debian: apt-get install openjdk-17-jre-headless)"
    if _cached_class_path(_folder(version)) is None and shutil.which("mvn") is None:
        return "no Maven: `mvn` is not on the path (Debian: apt-get install maven)"
    return None


def require(version: str) -> None:
    """Skip the test where Kafka cannot run; in CI, where it must run, fail it."""
    reason = missing_for(version)
    if reason is None:
        return
    reason = f"Apache Kafka {version} cannot run here: {reason}"
    if is_ci():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def is_ci() -> bool:
    """True where a missing tool is a failure rather than a reason to skip."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


@cache
def class_path(version: str) -> str:
    """Give the class path of that Kafka, fetching it first where it is not in the cache."""
    folder = _folder(version)
    folder.mkdir(parents=True, exist_ok=True)
    with _only_one_at_a_time(folder):
        return _cached_class_path(folder) or _fetch(RELEASES[version], folder)


def logging_option(version: str) -> str:
    """Give the JVM option that sends warnings, and the line that says ready, to standard error."""
    folder = _folder(version)
    folder.mkdir(parents=True, exist_ok=True)
    if RELEASES[version].needs_zookeeper:
        _write_if_other(folder / "log4j.properties", _LOG4J_1_PROPERTIES)
        return f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"
    _write_if_other(folder / "log4j2.properties", _LOG4J_2_PROPERTIES)
    return f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"


def _folder(version: str) -> Path:
    return cache_folder() / f"kafka-{version}"


@contextmanager
def _only_one_at_a_time(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cached_class_path(folder: Path) -> str | None:
    """Give the class path as cached, unless its pom changed or a jar left Maven's repository."""
    try:
        pom = (folder / "pom.xml").read_text()
        text = (folder / "class_path.txt").read_text().strip()
    except FileNotFoundError:
        return None
    version = folder.name.removeprefix("kafka-")
    if pom != pom_of(RELEASES[version]) or not all(Path(jar).exists() for jar in text.split(":")):
        return None
    return text


def _fetch(release: Release, folder: Path) -> str:
    (folder / "pom.xml").write_text(pom_of(release))
    command = ["mvn", "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:build-classpath"]
    command += [f"-Dmdep.outputFile={folder / 'new.txt'}", "-Dmdep.includeScope=runtime"]
    for attempt in (1, 2, 3):
        run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if run.returncode == 0:
            (folder / "new.txt").rename(folder / "class_path.txt")
            return (folder / "class_path.txt").read_text().strip()
        if attempt == 3:
            said = (run.stdout + run.stderr)[-2000:]
            raise InstallError(f"Maven could not fetch Kafka {release.version}:\n{said}")
    raise AssertionError("unreachable: the third attempt raises")


def pom_of(release: Release) -> str:
    """Write the pom whose runtime class path is that release."""
    entries = "".join(_dependency(*each.split(":")) for each in release.dependencies)
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        f"<groupId>tests</groupId><artifactId>kafka</artifactId>"
        f"<version>{release.version}</version><packaging>pom</packaging>\n"
        f"<dependencies>\n{entries}</dependencies></project>\n"
    )


def _dependency(group: str, artifact: str, version: str) -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>\n"
    )


def _write_if_other(path: Path, text: str) -> None:
    """Write so that a process reading at the same time sees the old text or the new one."""
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(text)
    fresh.rename(path)


_LOG4J_2_PROPERTIES = """\
status=error
appender.c.type=Console
appender.c.name=C
appender.c.target=SYSTEM_ERR
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=WARN
rootLogger.appenderRef.c.ref=C
logger.started.name=kafka.server.KafkaRaftServer
logger.started.level=INFO
"""

_LOG4J_1_PROPERTIES = """\
log4j.rootLogger=WARN, C
log4j.appender.C=org.apache.log4j.ConsoleAppender
log4j.appender.C.Target=System.err
log4j.appender.C.layout=org.apache.log4j.PatternLayout
log4j.appender.C.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.server.KafkaServer=INFO
log4j.logger.kafka.network.Processor=ERROR
"""
