"""A kept answer is given to the same question about the same image, under the asker's own id."""

import struct

from twinlog.broker.kept_answers import KeptAnswers
from twinlog.cluster.image import ClusterImage

IMAGE = ClusterImage(cluster_id="one")
QUESTION = (3, 12, b"all topics")
FRAME = struct.pack(">ii", 10, 7) + b"answer"


def found(kept: KeptAnswers, question: tuple[int, int, bytes] = QUESTION) -> bytes | None:
    parts = kept.find(IMAGE, question, 42)
    return None if parts is None else b"".join(parts)  # type: ignore[arg-type]


def test_the_same_question_gets_the_same_answer_under_its_own_correlation_id() -> None:
    kept = KeptAnswers()
    kept.keep(IMAGE, QUESTION, FRAME)
    assert found(kept) == struct.pack(">ii", 10, 42) + b"answer"


def test_another_version_or_body_is_another_question() -> None:
    kept = KeptAnswers()
    kept.keep(IMAGE, QUESTION, FRAME)
    assert found(kept, (3, 11, b"all topics")) is None
    assert found(kept, (3, 12, b"one topic")) is None


def test_an_equal_image_that_is_not_the_same_has_no_answers() -> None:
    kept = KeptAnswers()
    kept.keep(IMAGE, QUESTION, FRAME)
    newer = ClusterImage(cluster_id="one")
    assert kept.find(newer, QUESTION, 42) is None
    kept.keep(newer, (3, 12, b""), FRAME)
    assert found(kept) is None


def test_what_is_kept_is_bounded() -> None:
    kept = KeptAnswers(bytes_max=60)
    for number in range(10):
        kept.keep(IMAGE, (3, number, b"all topics"), FRAME)
    assert sum(found(kept, (3, number, b"all topics")) is not None for number in range(10)) == 2
    kept.keep(IMAGE, QUESTION, FRAME * 10)
    assert found(kept) is None
