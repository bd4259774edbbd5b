"""Names and layout inside a log dir: partition folders, segment files, identity files."""

import base64
import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from twinlog.model.errors import SettingsError
from twinlog.model.ids import TopicId, TopicName, TopicPartition

META_PROPERTIES: Final = "meta.properties"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
LOCK: Final = ".lock"
PARTITION_METADATA: Final = "partition.metadata"
DELETED_SUFFIX: Final = ".deleted"
DELETED_FOLDER_SUFFIX: Final = "-delete"
STRAY_FOLDER_SUFFIX: Final = "-stray"
FOLDER_NAME_CHARS_MAX: Final = 255

_FOLDER: Final = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED_FOLDER: Final = re.compile(r"\S+\.[0-9a-f]{32}-(delete|stray|future)")
_OFFSET_FILE: Final = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose log dir this is, as ``meta.properties`` says."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def encode_uuid(value: UUID) -> str:
    """Write a UUID as Kafka does: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    """Read a UUID as Kafka writes it; ValueError for anything else."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def partition_of_folder(name: str) -> TopicPartition | None:
    """Tell which partition a folder holds; None when its name is not that of one."""
    match = _FOLDER.fullmatch(name)
    return TopicPartition(TopicName(match[1]), int(match[2])) if match else None


def is_deleted_folder(name: str) -> bool:
    """Whether a folder was on its way out when the broker stopped."""
    match = _DELETED_FOLDER.fullmatch(name)
    return match is not None and match[1] == "delete"


def renamed_folder(of: TopicPartition, unique: UUID, suffix: str) -> str:
    """Give the name of a folder that is a log no more, cut to what a name may have."""
    ending = f".{unique.hex}{suffix}"
    return str(of)[: FOLDER_NAME_CHARS_MAX - len(ending)] + ending


def offset_and_kind(name: str) -> tuple[int, str] | None:
    """Split the name of a segment's file into base offset and ending; None for other files."""
    match = _OFFSET_FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def encode_identity(identity: Identity) -> bytes:
    """Give the content of ``meta.properties``, version 1."""
    return (
        "#\n"
        f"node.id={identity.node_id}\n"
        f"directory.id={encode_uuid(identity.directory_id)}\n"
        "version=1\n"
        f"cluster.id={identity.cluster_id}\n"
    ).encode()


def decode_identity(content: bytes, path: str) -> Identity:
    """Read ``meta.properties``; version 0, which says ``broker.id``, is understood too.

    Raises SettingsError. A missing directory id is given as zero.
    """
    values = {}
    for line in content.decode(errors="replace").splitlines():
        key, found, value = line.partition("=")
        if found and not line.lstrip().startswith("#"):
            values[key.strip()] = value.strip().replace("\\=", "=").replace("\\:", ":")
    try:
        node_id = int(values.get("node.id", values.get("broker.id", "")))
        directory_id = (
            decode_uuid(values["directory.id"]) if "directory.id" in values else UUID(int=0)
        )
    except ValueError as error:
        raise SettingsError(f"{path}: {error}; it must name node.id and directory.id") from error
    if "cluster.id" not in values:
        raise SettingsError(f"{path}: it must name cluster.id; was the file cut short?")
    return Identity(values["cluster.id"], node_id, directory_id)


def encode_topic_id(topic_id: TopicId) -> bytes:
    """Give the content of ``partition.metadata``."""
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}".encode()


def decode_topic_id(content: bytes) -> TopicId | None:
    """Read ``partition.metadata``; None when it is torn."""
    match = re.fullmatch(r"version: 0\s+topic_id: (\S{22})\s*", content.decode(errors="replace"))
    try:
        return TopicId(decode_uuid(match[1])) if match else None
    except ValueError:
        return None
