"""A broker on loopback that answers what a test tells it to: for clients that run their own loop.

Metadata, coordinators, offsets, fetch and produce are answered from ``logs``, plain lists of
batches; every other request from ``answers``. ``asked`` keeps the requests.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twinlog.network.listener import Listener
from twinlog.network.peer import Peer
from twinlog.wire.codec import Parts, decode_request, encode_response
from twinlog.wire.frames import with_length
from twinlog.wire.headers import decode_request_header, encode_response_header, skip_tags
from twinlog.wire.messages import fetch, groups, metadata, offsets, produce
from twinlog.wire.messages.api_versions import API_VERSIONS, ApiVersion, ApiVersionsResponse
from twinlog.wire.primitives import Buffer
from twinlog.wire.records.batch import iter_headers, read_header, stamp
from twinlog.wire.schema import Api

NODE_ID = 5
HOST = "127.0.0.1"


class AnsweringBroker:
    """One node, number 5, that leads every partition and coordinates every group."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[Any] = []
        self.logs: dict[tuple[str, int], bytes] = {}
        self.produce_errors: list[tuple[int, str]] = []
        self.versions_max: dict[int, int] = {}
        self.aborted: tuple[fetch.AbortedTransaction, ...] = ()
        self._answers: dict[int, tuple[Api[Any, Any], Callable[[Any], Any]]] = {}
        self.on(metadata.METADATA, self._metadata)
        self.on(groups.FIND_COORDINATOR, self._coordinator)
        self.on(offsets.LIST_OFFSETS, self._list_offsets)
        self.on(fetch.FETCH, self._fetch)
        self.on(produce.PRODUCE, self._produce)
        self.on(API_VERSIONS, self._versions)

    @property
    def bootstrap(self) -> str:
        """Where it listens."""
        return f"{HOST}:{self.port}"

    def on(self, api: Api[Any, Any], answer: Any) -> None:
        """Answer requests of ``api`` with a message, or with what a function gives for each."""
        give = answer if callable(answer) else lambda request: answer
        self._answers[api.key] = (api, give)

    def forget(self, api: Api[Any, Any]) -> None:
        """No longer know ``api``."""
        del self._answers[api.key]

    def asked_for(self, kind: type[Any]) -> list[Any]:
        """Give the requests of one kind, in order."""
        return [request for request in self.asked if isinstance(request, kind)]

    def append(self, topic: str, partition: int, batch: bytes) -> int:
        """Put a batch at the end of a log; give its base offset."""
        log = self.logs.setdefault((topic, partition), b"")
        base_offset = self.end_of(topic, partition)
        stamped = bytearray(batch)
        stamp(stamped, 0, base_offset=base_offset, leader_epoch=0)
        self.logs[topic, partition] = log + bytes(stamped)
        return base_offset

    def end_of(self, topic: str, partition: int) -> int:
        """Give the offset after the last record."""
        end = 0
        for _, header in iter_headers(self.logs[topic, partition]):
            end = header.next_offset
        return end

    def answer(self, frame: Buffer, peer: Peer) -> Parts:
        """Answer one request."""
        header, position = decode_request_header(frame)
        api, give = self._answers[header.api_key]
        version = header.api_version
        if api.is_flexible(version):
            position = skip_tags(frame, position)
        request = decode_request(api, frame, version, position)
        self.asked.append(request)
        head = encode_response_header(api, version, header.correlation_id)
        return with_length(head, encode_response(api, give(request), version))

    def _versions(self, _: Any) -> ApiVersionsResponse:
        rows = [
            ApiVersion(
                api_key=api.key,
                min_version=api.min_version,
                max_version=self.versions_max.get(api.key, api.max_version),
            )
            for api, _ in self._answers.values()
        ]
        return ApiVersionsResponse(error_code=0, api_keys=tuple(rows))

    def _metadata(self, request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        known = sorted({topic for topic, _ in self.logs})
        wanted = known if request.topics is None else [t.name or "" for t in request.topics]
        if request.allow_auto_topic_creation:
            for name in wanted:
                if name not in known:
                    self.logs[name, 0] = b""
        broker = metadata.MetadataBroker(node_id=NODE_ID, host=HOST, port=self.port)
        return metadata.MetadataResponse(
            brokers=(broker,),
            cluster_id="answering",
            controller_id=NODE_ID,
            topics=tuple(self._topic(name) for name in wanted),
        )

    def _topic(self, name: str) -> metadata.MetadataTopic:
        numbers = sorted(number for topic, number in self.logs if topic == name)
        return metadata.MetadataTopic(
            error_code=0 if numbers else 3,
            name=name,
            is_internal=name.startswith("__"),
            partitions=tuple(
                metadata.MetadataPartition(
                    partition_index=number,
                    leader_id=NODE_ID,
                    replica_nodes=(NODE_ID,),
                    isr_nodes=(NODE_ID,),
                )
                for number in numbers
            ),
        )

    def _coordinator(
        self, request: groups.FindCoordinatorRequest
    ) -> groups.FindCoordinatorResponse:
        keys = request.coordinator_keys or (request.key,)
        found = tuple(
            groups.Coordinator(key=key, node_id=NODE_ID, host=HOST, port=self.port) for key in keys
        )
        return groups.FindCoordinatorResponse(
            node_id=NODE_ID, host=HOST, port=self.port, coordinators=found
        )

    def _list_offsets(self, request: offsets.ListOffsetsRequest) -> offsets.ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            rows = []
            for asked in topic.partitions:
                place = (topic.name, asked.partition_index)
                rows.append(
                    offsets.ListedPartition(
                        partition_index=asked.partition_index,
                        offset=self._offset_at(place, asked.timestamp),
                    )
                )
            topics.append(offsets.ListedTopic(name=topic.name, partitions=tuple(rows)))
        return offsets.ListOffsetsResponse(topics=tuple(topics))

    def _offset_at(self, place: tuple[str, int], timestamp: int) -> int:
        log = self.logs[place]
        if timestamp == -1:
            return self.end_of(*place)
        headers = [header for _, header in iter_headers(log)]
        if timestamp == -2:
            return headers[0].base_offset if headers else 0
        return next((h.base_offset for h in headers if h.max_timestamp >= timestamp), -1)

    def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        topics = tuple(
            fetch.FetchedTopic(
                topic=topic.topic,
                partitions=tuple(self._fetched(topic.topic, asked) for asked in topic.partitions),
            )
            for topic in request.topics
        )
        return fetch.FetchResponse(topics=topics)

    def _fetched(self, topic: str, asked: fetch.FetchPartition) -> fetch.FetchedPartition:
        log = self.logs[topic, asked.partition]
        end = self.end_of(topic, asked.partition)
        start = self._offset_at((topic, asked.partition), -2)
        if not start <= asked.fetch_offset <= end:
            return fetch.FetchedPartition(
                partition_index=asked.partition, error_code=1, high_watermark=end
            )
        found = [p for p, header in iter_headers(log) if header.next_offset > asked.fetch_offset]
        return fetch.FetchedPartition(
            partition_index=asked.partition,
            high_watermark=end,
            last_stable_offset=end,
            aborted_transactions=self.aborted,
            records=log[found[0] :] if found else b"",
        )

    def _produce(self, request: produce.ProduceRequest) -> produce.ProduceResponse:
        topic = request.topic_data[0]
        sent = topic.partition_data[0]
        code, why, base_offset = 0, None, -1
        if self.produce_errors:
            code, why = self.produce_errors.pop(0)
        else:
            assert isinstance(sent.records, memoryview)
            batch = sent.records.tobytes()
            assert read_header(batch, 0).length == len(batch), "one batch a partition"
            base_offset = self.append(topic.name, sent.index, batch)
        row = produce.ProducedPartition(
            index=sent.index, error_code=code, error_message=why, base_offset=base_offset
        )
        return produce.ProduceResponse(
            responses=(produce.ProducedTopic(name=topic.name, partition_responses=(row,)),)
        )


@contextmanager
def answering_broker() -> Iterator[AnsweringBroker]:
    """Give a broker that listens in a thread of its own; stop it in the end."""
    broker = AnsweringBroker()
    loop = asyncio.new_event_loop()
    is_up = threading.Event()
    done = asyncio.Event()

    async def serve() -> None:
        async with asyncio.TaskGroup() as tasks:
            listener = Listener(tasks, broker.answer)
            await listener.start(HOST, 0)
            broker.port = listener.port
            is_up.set()
            await done.wait()
            await listener.stop(0.0)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert is_up.wait(60), "the answering broker did not start"
    try:
        yield broker
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
        loop.close()
