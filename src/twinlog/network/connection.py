"""One client of ours: frames in, answers out, in order and one request at a time.

Frames that come while a request is being answered wait in a queue; when the queue or the output
is full we stop reading, so a connection holds a bounded number of bytes whatever its client does.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from twinlog.model.errors import WireError
from twinlog.network.budget import FrameBudget
from twinlog.network.frames import BIG_FRAME_BYTES, FrameReader, ReceiveBuffers
from twinlog.network.keep_alive import keep_alive
from twinlog.network.output import HIGH_WATER_BYTES, Output
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts
from twinlog.wire.primitives import Buffer

log = logging.getLogger(__name__)

# An answer is a whole frame with its length, as ``wire.frames.with_length`` makes it.
Answer: TypeAlias = Parts | Awaitable[Parts | None] | None
OnFrame: TypeAlias = Callable[[Buffer, Peer], Answer]

QUEUED_FRAMES_MAX: Final = 64
QUEUED_BYTES_MAX: Final = 1024 * 1024
TURN_FRAMES_MAX: Final = 64
"""Requests of one connection that are answered before others get their turn."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a listener allows, with Kafka's names; idle and queued may be -1, for no bound."""

    frame_bytes_max: int = 104_857_600  # socket.request.max.bytes
    queued_bytes_max: int = 268_435_456  # queued.max.request.bytes
    connections_max: int = 10_000  # max.connections
    idle_ms_max: int = 600_000  # connections.max.idle.ms
    stalled_ms_max: int = 60_000  # a frame half sent, or an answer half read
    grace_ms_max: int = 1_000  # for requests whose client has said its last word


@dataclass(slots=True, eq=False)
class Shared:
    """What all connections of a listener have in common."""

    name: str
    on_frame: OnFrame
    limits: Limits
    tasks: asyncio.TaskGroup
    loop: asyncio.AbstractEventLoop
    buffers: ReceiveBuffers
    budget: FrameBudget
    on_lost: Callable[[], None]
    connections: "set[ServerConnection]" = field(default_factory=set)
    accepted_count: int = 0
    refused_count: int = 0
    broken_count: int = 0


class ServerConnection(asyncio.BufferedProtocol):
    """A connection that a client opened to us."""

    peer: Peer
    _transport: asyncio.Transport
    _output: Output

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._reader = FrameReader(
            shared.buffers, shared.limits.frame_bytes_max, setting="socket.request.max.bytes"
        )
        self._queue: deque[Buffer] = deque()
        self._queued_bytes = 0
        self._current: asyncio.Future[Any] | None = None
        self._current_frame: Buffer = b""
        self._budget_bytes = 0
        self._is_frame_paid = False
        self._waits_for_room = False
        self._is_reading = True
        self._is_turn_due = False
        self._has_ended = False
        self._grace: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._sent_bytes = 0
        self._moved_at = shared.loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place among the connections, or be turned away."""
        self._transport = cast("asyncio.Transport", transport)
        keep_alive(self._transport)
        address = transport.get_extra_info("peername") or ("unknown", 0)
        self.peer = Peer(str(address[0]), int(address[1]), self._shared.name)
        self._output = Output(self._transport, self._shared.loop, self._serve)
        connections_max = self._shared.limits.connections_max
        if len(self._shared.connections) >= connections_max:
            self._shared.refused_count += 1
            log.warning("refusing %s: max.connections=%d are open", self.peer, connections_max)
            self.abort()
            return
        self._shared.accepted_count += 1
        self._shared.connections.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Tell where the next bytes go."""
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take the frames that are whole now, and answer them."""
        if self._is_stopping:
            return
        self._moved_at = self._shared.loop.time()
        try:
            frames = self._reader.take(nbytes)
        except WireError as error:
            self._break(str(error))
            self._serve()
            return
        for frame in frames:
            self._queue.append(frame)
            self._queued_bytes += len(frame)
            if type(frame) is memoryview:
                self._is_frame_paid = False
        self._reserve()
        if self._current is None and not self._is_turn_due:
            self._serve()
        else:
            self._regulate()

    def eof_received(self) -> bool:
        """Finish what was asked, for a short while: acks=0 producers send and leave."""
        self._has_ended = True
        if self._current is None and not self._queue:
            self.finish()
            return self._output.is_full
        grace_s = self._shared.limits.grace_ms_max / 1000
        self._grace = self._shared.loop.call_later(grace_s, self.abort)
        return True

    def pause_writing(self) -> None:
        """Make no more answers for now."""
        self._output.pause()

    def resume_writing(self) -> None:
        """Go on answering."""
        self._output.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what this client waits for, and forget it."""
        self._take_no_more()
        failure = self._output.failure
        if failure is not None and not isinstance(failure, ConnectionError):
            log.error("closed connection to %s: cannot send: %s", self.peer, failure)
        self._output.dispose()
        if self._current is not None:
            self._current.cancel()
        if self._grace is not None:
            self._grace.cancel()
        taken, self._budget_bytes = self._budget_bytes, 0
        self._shared.connections.discard(self)
        self._shared.budget.give_back(taken)
        self._shared.on_lost()

    def finish(self) -> None:
        """Take no more requests; close when the current one is answered."""
        self._take_no_more()
        self._regulate()
        if self._current is None:
            self._output.close_when_sent()

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        self._take_no_more()
        self._output.abort()

    def sweep(self, now_s: float) -> None:
        """Close the connection if nothing has moved for too long."""
        limits = self._shared.limits
        quiet_ms = (now_s - self._moved_at) * 1000
        unsent_bytes = 0 if self._transport.is_closing() else self._output.unsent_bytes
        sent_bytes = self._output.written_bytes - unsent_bytes
        if unsent_bytes and sent_bytes == self._sent_bytes:
            if quiet_ms > limits.stalled_ms_max:
                self._give_up(f"it has read nothing of {unsent_bytes} bytes for {quiet_ms:.0f} ms")
        elif unsent_bytes or self._current is not None or self._queue or self._waits_for_room:
            self._sent_bytes = sent_bytes
            self._moved_at = now_s
        elif self._reader.is_inside_frame and quiet_ms > limits.stalled_ms_max:
            self._give_up(f"a frame stopped half way {quiet_ms:.0f} ms ago")
        elif 0 <= limits.idle_ms_max < quiet_ms:
            log.debug("closing connection from %s: idle for %.0f ms", self.peer, quiet_ms)
            self.abort()

    def _serve(self) -> None:
        """Answer requests from the queue until one has to wait, or the output is full."""
        self._is_turn_due = False
        answers: Parts = []
        turn_bytes = turn_frames = 0
        queue, output = self._queue, self._output
        # ``_can_serve``, spelt out: this runs for every request.
        while (
            queue
            and self._current is None
            and turn_frames < TURN_FRAMES_MAX
            and not (output.is_full or output.is_closing)
        ):
            frame = queue.popleft()
            self._queued_bytes -= len(frame)
            turn_frames += 1
            answer = self._answer_to(frame)
            if answer is None:
                continue
            answers += answer
            turn_bytes += sum(map(len, answer))
            if turn_bytes >= HIGH_WATER_BYTES:
                self._output.send(answers)
                answers = []
                turn_bytes = 0
        if answers and not self._output.is_closing:
            self._output.send(answers)
        if self._can_serve():
            self._is_turn_due = True
            self._shared.loop.call_soon(self._serve)
        is_last = self._is_stopping or (self._has_ended and not self._queue)
        if is_last and self._current is None:
            self.finish()
        self._regulate()

    def _can_serve(self) -> bool:
        return (
            bool(self._queue)
            and self._current is None
            and not self._output.is_full
            and not self._output.is_closing
        )

    def _answer_to(self, frame: Buffer) -> Parts | None:
        """Hand over one request; give the answer if it is there at once."""
        try:
            answer = self._shared.on_frame(frame, self.peer)
        except WireError as error:
            self._break(str(error))
            return None
        except Exception:
            log.exception("closing connection from %s: a request failed", self.peer)
            self._take_no_more()
            return None
        if answer is not None and not isinstance(answer, list):
            self._await(answer, frame)
            return None
        self._pay_back(frame)
        return answer

    def _await(self, answer: Awaitable[Parts | None], frame: Buffer) -> None:
        """Wait for an answer, in a task of the listener unless it is a future already."""
        if isinstance(answer, asyncio.Future):
            self._current = answer
        else:
            self._current = self._shared.tasks.create_task(_outcome_of(answer))
        self._current_frame = frame
        self._current.add_done_callback(self._resolved)

    def _resolved(self, current: asyncio.Future[Any]) -> None:
        """Send the answer that was waited for, and go on with the next request."""
        frame, self._current_frame, self._current = self._current_frame, b"", None
        outcome: Any = None
        if current.cancelled():
            self._is_stopping = True
        else:
            outcome = current.exception() or current.result()
        if self._transport.is_closing():
            return
        self._pay_back(frame)
        if isinstance(outcome, WireError):
            self._break(str(outcome))
        elif isinstance(outcome, BaseException):
            log.error("closing connection from %s: a request failed", self.peer, exc_info=outcome)
            self._take_no_more()
        elif outcome is not None:
            self._output.send(outcome)
        self._serve()

    def _break(self, why: str) -> None:
        """Close, since the client does not speak our protocol; earlier answers still go out."""
        self._shared.broken_count += 1
        log.warning("closing connection from %s: %s", self.peer, why)
        if self._current is not None:
            self._current.cancel()
        self._take_no_more()

    def _take_no_more(self) -> None:
        self._is_stopping = True
        self._queue.clear()
        self._queued_bytes = 0

    def _give_up(self, why: str) -> None:
        log.warning("closing connection from %s: %s", self.peer, why)
        self.abort()

    def _reserve(self) -> None:
        """Take room in the listener's budget for the big frame that is being received."""
        size = self._reader.receiving_bytes
        if size < BIG_FRAME_BYTES or self._is_frame_paid or self._waits_for_room:
            return
        if self._is_stopping:
            return
        if self._shared.budget.take(size, self._room_came):
            self._budget_bytes += size
            self._is_frame_paid = True
        else:
            self._waits_for_room = True

    def _room_came(self) -> None:
        self._waits_for_room = False
        self._reserve()
        self._regulate()

    def _pay_back(self, frame: Buffer) -> None:
        if type(frame) is memoryview:
            self._budget_bytes -= len(frame)
            self._shared.budget.give_back(len(frame))

    def _regulate(self) -> None:
        """Read on, or stop reading, as queue, output and budget have it."""
        wanted = not (
            self._is_stopping
            or self._waits_for_room
            or self._output.is_full
            or len(self._queue) >= QUEUED_FRAMES_MAX
            or self._queued_bytes >= QUEUED_BYTES_MAX
        )
        if wanted == self._is_reading or self._transport.is_closing():
            return
        self._is_reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


async def _outcome_of(answer: Awaitable[Parts | None]) -> Parts | Exception | None:
    """Wait for an answer; a failure is given, not raised, since it is this connection's alone."""
    try:
        return await answer
    except Exception as error:  # noqa: BLE001
        return error
