"""A group's shard and its clients in a seeded mess: lost answers, silent clients, crashes.

Clients behave as real ones do: they join, sync, beat and commit, and react to error codes. What the
shard has written is durable; everything else is lost when the coordinator crashes.
"""

from dataclasses import dataclass
from enum import Enum
from random import Random
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
from twinlog.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    decode_group,
    decode_key,
)
from twinlog.groups.settings import GroupSettings
from twinlog.groups.shard import GroupShard
from twinlog.model.errors import ApiError, ErrorCode
from twinlog.model.ids import Offset, TopicName, TopicPartition

GROUP = "g"
OF = TopicPartition(TopicName("t"), 0)
SESSION_MS = 10_000
REBALANCE_MS = 15_000


class Stage(Enum):
    """What a client is doing."""

    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    IN = "in"


@dataclass
class Client:
    """What one consumer knows, and what it waits for."""

    name: str
    instance_id: str | None = None
    stage: Stage = Stage.OUT
    member_id: str = ""
    generation: int = -1
    ticket: Ticket | None = None
    is_alive: bool = True
    lives: int = 0


class GroupWorld:
    """One shard, some clients, and the log of everything written."""

    def __init__(self, seed: int, client_count: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.faults_on = True
        self.log: list[StateRecord] = []
        self.settings = GroupSettings()
        self.shard = GroupShard(self.settings)
        self.shard.on_loaded(0)
        self.clients = [
            Client(f"c{n}", instance_id=f"i{n}" if n % 3 == 0 else None)
            for n in range(client_count)
        ]
        self.waiting: dict[Ticket, Client] = {}
        self.last_written: GroupMetadataValue | None = None
        self.committed: int | None = None

    # What happens.

    def step(self) -> None:
        """Let some time pass, and one client act; sometimes something breaks."""
        self.pass_time(self.random.randrange(2_000))
        if self.faults_on and self.random.random() < 0.01:
            self.crash()
        client = self.random.choice(self.clients)
        if self.faults_on and self.random.random() < 0.05:
            client.is_alive = not client.is_alive
            client.stage, client.ticket = Stage.OUT, None
            if client.is_alive and self.random.random() < 0.5:
                client.member_id = ""  # it was restarted; the others were only frozen
        if client.is_alive:
            self.act(client)
        self.check()

    def settle(self, rounds: int) -> None:
        """Without faults: every client that lives acts in turn."""
        for _ in range(rounds):
            self.pass_time(500)
            for client in self.clients:
                if client.is_alive:
                    self.act(client)
            self.check()

    def pass_time(self, by_ms: int) -> None:
        """Let time pass, deadline by deadline."""
        until_ms = self.now_ms + by_ms
        while (next_ms := self.shard.timers.next_ms) is not None and next_ms <= until_ms:
            self.now_ms = max(self.now_ms, next_ms)
            for name in self.shard.timers.due(self.now_ms):
                self.take(self.shard.on_timer(name, self.now_ms), None)
        self.now_ms = until_ms

    def crash(self) -> None:
        """Lose the coordinator and load it again; everybody who waits is sent away."""
        self.waiting.clear()
        for client in self.clients:
            if client.ticket is not None:
                client.stage, client.ticket = Stage.OUT, None
        self.shard = self.loaded()
        self.shard.on_loaded(self.now_ms)

    def loaded(self) -> GroupShard:
        """Give a shard made of what is durable."""
        shard = GroupShard(self.settings)
        for record in self.log:
            shard.replay(record.key, record.value)
        return shard

    # What a client does.

    def act(self, client: Client) -> None:
        """Let a client do the next thing."""
        if client.ticket is not None:
            if self.faults_on and self.random.random() < 0.1:
                client.stage, client.ticket = Stage.OUT, None  # its connection broke
            return
        match client.stage:
            case Stage.OUT:
                self.join(client)
            case Stage.IN:
                self.live(client)
            case _:
                raise AssertionError(f"{client} waits for nothing")

    def join(self, client: Client) -> None:
        """Send JoinGroup."""
        client.lives += 1
        request = Join(
            group_id=GROUP,
            member_id=client.member_id,
            fresh_member_id=f"{client.name}-{client.lives}",
            protocol_type="consumer",
            protocols=(ProtocolOffer("range", client.name.encode()),),
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            instance_id=client.instance_id,
            must_know_its_id=True,
            may_skip_assignment=True,
        )
        client.stage = Stage.JOINING
        self.take(self.shard.join(request, self.now_ms), client)

    def live(self, client: Client) -> None:
        """Beat, commit, or leave."""
        claim = self.claim(client)
        chance = self.random.random()
        if self.faults_on and chance < 0.03:
            leaver = Leaver(client.member_id, client.instance_id)
            self.take(self.shard.leave(GROUP, [leaver], self.now_ms), None)
            client.stage, client.member_id = Stage.OUT, ""
        elif chance < 0.3:
            self.commit(client, claim)
        else:
            outcome = self.shard.heartbeat(claim, self.now_ms)
            assert isinstance(outcome.reply, ErrorCode)
            self.take(outcome, None)
            self.react(client, outcome.reply)

    def commit(self, client: Client, claim: MemberClaim) -> None:
        """Commit the next offset."""
        offset = (self.committed or 0) + 1
        committed = CommittedOffset(Offset(offset), committed_at_ms=self.now_ms)
        try:
            outcome = self.shard.commit_offsets(
                CommitOffsets(claim, ((OF, committed),)), self.now_ms
            )
        except ApiError as error:
            self.react(client, error.code)
            return
        self.take(outcome, None)
        self.committed = offset

    def claim(self, client: Client) -> MemberClaim:
        """Give who the client says it is."""
        return MemberClaim(GROUP, client.member_id, client.generation, client.instance_id)

    def react(self, client: Client, error: ErrorCode) -> None:
        """Do what consumers do on an error: join again, with or without their id."""
        match error:
            case ErrorCode.NONE:
                return
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION:
                client.stage = Stage.OUT
            case ErrorCode.MEMBER_ID_REQUIRED:
                client.stage = Stage.OUT
            case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
                client.stage, client.member_id = Stage.OUT, ""
            case _:
                raise AssertionError(f"{client.name} is told {error.name}")

    # What comes back.

    def take(self, outcome: Outcome[Any], client: Client | None) -> None:
        """Write, replay, and deliver the answers."""
        for record in outcome.records:
            self.write(record)
        if isinstance(outcome.reply, Parked):
            assert client is not None
            client.ticket = outcome.reply.ticket
            self.waiting[outcome.reply.ticket] = client
        elif client is not None:
            self.deliver(client, outcome.reply)
        for answer in outcome.answers:
            who = self.waiting.pop(answer.ticket)
            if who.ticket == answer.ticket:
                who.ticket = None
                self.deliver(who, answer.reply)

    def write(self, record: StateRecord) -> None:
        """Append and replay a record; generations never go back."""
        self.log.append(record)
        self.shard.replay(record.key, record.value)
        if not isinstance(decode_key(record.key), GroupMetadataKey):
            return
        if record.value is None:
            self.last_written = None
            return
        value = decode_group(record.value)
        before = -1 if self.last_written is None else self.last_written.generation
        assert value.generation >= before, f"generation {before} -> {value.generation}"
        self.last_written = value

    def deliver(self, client: Client, reply: Any) -> None:
        """Give an answer to a client, unless it gets lost."""
        if self.faults_on and self.random.random() < 0.05:
            client.stage = Stage.OUT
            return
        match reply:
            case Joined(error=ErrorCode.NONE):
                self.joined(client, reply)
            case Synced(error=ErrorCode.NONE):
                self.synced(client, reply)
            case Joined() | Synced():
                if isinstance(reply, Joined) and reply.error is ErrorCode.MEMBER_ID_REQUIRED:
                    client.member_id = reply.member_id
                self.react(client, reply.error)
            case _:
                raise AssertionError(f"{client.name} is told {reply}")

    def joined(self, client: Client, told: Joined) -> None:
        """Sync: the leader hands in a part for everybody it was told of."""
        client.member_id, client.generation = told.member_id, told.generation
        assignments: tuple[tuple[str, bytes], ...] = ()
        if told.leader == told.member_id and not told.skip_assignment:
            assert told.member_id in {m.member_id for m in told.members}
            assignments = tuple(
                (m.member_id, f"{told.generation}/{m.member_id}".encode()) for m in told.members
            )
        client.stage = Stage.SYNCING
        sync = Sync(self.claim(client), "consumer", "range", assignments)
        self.take(self.shard.sync(sync, self.now_ms), client)

    def synced(self, client: Client, told: Synced) -> None:
        """Whatever a client is given is what is written of it."""
        client.stage = Stage.IN
        written = self.last_written
        assert written is not None, f"{client.name} was given {told}, and nothing is written"
        assert written.generation == client.generation
        (own,) = [m.assignment for m in written.members if m.member_id == client.member_id]
        assert own == told.assignment, f"{client.name} was given {told.assignment!r}, not {own!r}"

    # What must hold.

    def check(self) -> None:
        """Nobody waits in vain, and what is durable is what the shard knows."""
        offsets = self.shard.offsets_of(GROUP).reply
        assert not isinstance(offsets, Parked)
        found = offsets[OF].offset if OF in offsets else None
        assert found == self.committed, f"{self.committed} was committed, {found} stands"

    def check_reload(self) -> None:
        """A shard loaded now is the one that lives, as far as things are durable."""
        copy = self.loaded()
        assert copy.offsets_of(GROUP) == self.shard.offsets_of(GROUP)
        live, loaded = self.shard.describe(GROUP).reply, copy.describe(GROUP).reply
        assert not isinstance(live, Parked)
        assert not isinstance(loaded, Parked)
        if self.last_written is not None and live.state in ("Stable", "Empty"):
            assert live == loaded, f"{live}\n{loaded}"

    def is_settled(self) -> bool:
        """Everybody who lives is in one generation, and nobody else is."""
        description = self.shard.describe(GROUP).reply
        assert not isinstance(description, Parked)
        alive = [client for client in self.clients if client.is_alive]
        return (
            all(client.stage is Stage.IN for client in alive)
            and len({client.generation for client in alive}) <= 1
            and {m.member_id for m in description.members} == {c.member_id for c in alive}
            and description.state == ("Stable" if alive else "Empty")
        )
