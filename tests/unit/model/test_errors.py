from twinlog.model.errors import ApiError, ErrorCode, error_name, is_retriable


def test_an_unknown_error_code_is_a_number_never_an_exception() -> None:
    assert error_name(32_000) == "error 32000"
    assert error_name(3) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_retriable_is_what_kafka_calls_retriable() -> None:
    assert is_retriable(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert not is_retriable(ErrorCode.CORRUPT_MESSAGE - 1)
    assert not is_retriable(32_000)


def test_an_api_error_says_its_code_and_why() -> None:
    assert str(ApiError(ErrorCode.INVALID_CONFIG, "no")) == "INVALID_CONFIG: no"
