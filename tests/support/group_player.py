"""Plays commands like ``20ms join a protocols=range,sticky`` on a group shard, for transcripts.

A client is called by a name; the player remembers the member id and the generation it was told
last, and sends them with its next request, as a real client does. ``id=`` and ``gen=`` override.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from twinlog.coordination.outcome import Outcome, Parked, StateRecord, Ticket
from twinlog.groups.commands import (
    CommitOffsets,
    CommittedOffset,
    Join,
    Joined,
    Leaver,
    MemberClaim,
    ProtocolOffer,
    Sync,
    Synced,
)
from twinlog.groups.effects import GroupTimer
from twinlog.groups.records import GroupMetadataKey, decode_group, decode_key, decode_offset
from twinlog.groups.settings import GroupSettings
from twinlog.groups.shard import GroupShard
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import Offset, TopicName, TopicPartition

GROUP = "g"


@dataclass
class Client:
    """What one client remembers."""

    name: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
    lives: int = 0


@dataclass
class GroupPlayer:
    """A shard with one group, its clients, and everything it has ever written."""

    settings: GroupSettings = field(default_factory=GroupSettings)
    written: list[StateRecord] = field(default_factory=list)
    clients: dict[str, Client] = field(default_factory=dict)
    tickets: dict[Ticket, Client] = field(default_factory=dict)
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.shard = GroupShard(self.settings)
        self.shard.on_loaded(0)

    def play(self, command: str) -> list[str]:
        """Carry out one command; give what came of it, and where the group then stands."""
        time, verb, *words = command.split()
        self.now_ms = int(time.removesuffix("ms"))
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        lines = list(getattr(self, f"_{verb}")(plain, options))
        description = self.shard.describe(GROUP).reply
        assert not isinstance(description, Parked), "describe never waits"
        return [*lines, f"= {description.state}"]

    def take(self, outcome: Outcome[Any], client: Client | None = None) -> Iterator[str]:
        """Write and replay an outcome's records, then hand out its replies."""
        self.written += outcome.records
        for record in outcome.records:
            yield f"write {_shown_record(record)}"
            self.shard.replay(record.key, record.value)
        if isinstance(outcome.reply, Parked):
            assert client is not None, "only clients are parked"
            self.tickets[outcome.reply.ticket] = client
        elif outcome.reply is not None:
            yield from self._hand(outcome.reply, client)
        for answer in outcome.answers:
            yield from self._hand(answer.reply, self.tickets.pop(answer.ticket))

    def _hand(self, reply: Any, client: Client | None) -> Iterator[str]:
        told_ids = (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
        if isinstance(reply, Joined) and client is not None and reply.error in told_ids:
            client.member_id = reply.member_id
            client.generation = reply.generation
        name = "" if client is None else f"{client.name}: "
        yield f"{name}{_shown_reply(reply)}"

    def _client(self, plain: list[str], options: dict[str, str]) -> Client:
        client = self.clients.setdefault(plain[0], Client(plain[0]))
        client.instance_id = options.get("instance", client.instance_id)
        return client

    def _claim(self, client: Client, options: dict[str, str]) -> MemberClaim:
        return MemberClaim(
            group_id=GROUP,
            member_id=options.get("id", client.member_id),
            generation=int(options.get("gen", client.generation)),
            instance_id=client.instance_id,
        )

    def _join(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self._client(plain, options)
        client.lives += 1
        offers = options.get("protocols", "range").split(",")
        request = Join(
            group_id=GROUP,
            member_id=options.get("id", client.member_id),
            fresh_member_id=f"{client.name}-{client.lives}",
            protocol_type=options.get("type", "consumer"),
            protocols=tuple(ProtocolOffer(name, client.name.encode()) for name in offers if name),
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            instance_id=client.instance_id,
            must_know_its_id="old" not in plain,
            may_skip_assignment="skip" in plain,
        )
        yield from self.take(self.shard.join(request, self.now_ms), client)

    def _sync(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self._client(plain, options)
        parts = [part.split(":") for part in options.get("assign", "").split(",") if part]
        request = Sync(
            claim=self._claim(client, options),
            protocol_type=options.get("type"),
            protocol_name=options.get("protocol"),
            assignments=tuple((self.clients[name].member_id, a.encode()) for name, a in parts),
        )
        yield from self.take(self.shard.sync(request, self.now_ms), client)

    def _heartbeat(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self._client(plain, options)
        claim = self._claim(client, options)
        yield from self.take(self.shard.heartbeat(claim, self.now_ms), client)

    def _leave(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        clients = [self._client([name], options) for name in plain]
        leavers = [Leaver(options.get("id", c.member_id), c.instance_id) for c in clients]
        yield from self.take(self.shard.leave(GROUP, leavers, self.now_ms), None)

    def _commit(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        client = self._client(plain, options)
        committed = CommittedOffset(Offset(int(plain[1])), committed_at_ms=self.now_ms)
        of = TopicPartition(TopicName("t"), 0)
        request = CommitOffsets(self._claim(client, options), ((of, committed),))
        try:
            yield from self.take(self.shard.commit_offsets(request, self.now_ms), client)
        except ApiError as error:
            yield f"{client.name}: {error.code.name}"

    def _timers(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        for timer in self.shard.timers.due(self.now_ms):
            shown = timer
            if isinstance(timer, GroupTimer):
                shown = f"{timer.kind.value} {timer.member_id}".strip()
            yield f"timer {shown}"
            yield from self.take(self.shard.on_timer(timer, self.now_ms))

    def _reload(self, plain: list[str], options: dict[str, str]) -> Iterator[str]:
        self.shard = GroupShard(self.settings)
        for record in self.written:
            self.shard.replay(record.key, record.value)
        self.shard.on_loaded(self.now_ms)
        yield f"{len(self.written)} records replayed"


def _shown_reply(reply: Any) -> str:
    match reply:
        case ErrorCode():
            return reply.name
        case Joined(error=ErrorCode.NONE):
            members = ",".join(f"{m.member_id}({m.metadata.decode()})" for m in reply.members)
            skip = " skip assignment" if reply.skip_assignment else ""
            return (
                f"joined as {reply.member_id} generation {reply.generation} "
                f"{reply.protocol_name} leader {reply.leader} members [{members}]{skip}"
            )
        case Synced(error=ErrorCode.NONE):
            return f"synced {reply.protocol_name} {reply.assignment.decode() or '(nothing)'}"
        case Joined() | Synced():
            return reply.error.name
        case tuple():
            return ", ".join(_shown_item(item) for item in reply)
        case _:
            raise AssertionError(f"no words for {reply}")


def _shown_item(item: Any) -> str:
    if isinstance(item, tuple):
        return f"{item[0]} {item[1].name}"
    return f"{item.member_id or item.instance_id} {item.error.name}"


def _shown_record(record: StateRecord) -> str:
    key = decode_key(record.key)
    assert key is not None, f"written, but not known: {record.key!r}"
    if record.value is None:
        return f"tombstone of {key}"
    if not isinstance(key, GroupMetadataKey):
        return f"{key.topic}-{key.partition} at {decode_offset(record.value).offset}"
    value = decode_group(record.value)
    members = ", ".join(f"{m.member_id}: {m.assignment.decode()}" for m in value.members)
    return f"generation {value.generation} leader {value.leader} {{{members}}}"
