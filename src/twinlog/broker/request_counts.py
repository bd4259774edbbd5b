"""How many requests came, by kind and version, and which error codes they were answered with."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeAlias, get_args, get_type_hints

from twinlog.model.errors import error_name
from twinlog.wire.schema import Api

Note: TypeAlias = Callable[[Any, Counter[int]], None]

CODE: Final = "error_code"


class ApiCounts:
    """The numbers of one kind of request: ``versions[v]`` and ``errors[code]``."""

    __slots__ = ("_note", "_response", "errors", "name", "versions")

    def __init__(self, api: Api[Any, Any]) -> None:
        self.name: Final = api.request.__name__.removesuffix("Request")
        self.versions: Final = [0] * (api.max_version + 1)
        self.errors: Final[Counter[int]] = Counter()
        self._response: Final = api.response
        self._note: Note | None = None

    def note_errors(self, response: Any) -> None:
        """Count every error code that is set in an answer."""
        if self._note is None:
            # Looking for the places takes a while, which a start does not have.
            self._note = error_noter(self._response)
        self._note(response, self.errors)


class RequestCounts:
    """The numbers of all kinds of requests."""

    def __init__(self) -> None:
        self._by_key: Final[dict[int, ApiCounts]] = {}

    def of(self, api: Api[Any, Any]) -> ApiCounts:
        """Give the numbers of a kind of request, to add to."""
        found = self._by_key.get(api.key)
        if found is None:
            found = self._by_key[api.key] = ApiCounts(api)
        return found

    def requests(self) -> Iterator[tuple[tuple[str, int], int]]:
        """Give what was asked at least once: name and version, and how often."""
        for counts in self._by_key.values():
            for version, count in enumerate(counts.versions):
                if count:
                    yield (counts.name, version), count

    def errors(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Give the name of the request and of the error, and how often."""
        for counts in self._by_key.values():
            for code, count in tuple(counts.errors.items()):
                yield (counts.name, error_name(code)), count


def error_noter(response: type) -> Note:
    """Give what counts every error code that is set in such an answer."""
    paths = tuple(_paths(response))

    def note(answer: Any, errors: Counter[int]) -> None:
        for path in paths:
            values = [answer]
            for name in path:
                values = [inner for one in values for inner in getattr(one, name) or ()]
            for one in values:
                if one.error_code:
                    errors[one.error_code] += 1

    return note


def _paths(message: type) -> Iterator[tuple[str, ...]]:
    """Find the lists to walk through to get to each error code."""
    hints = get_type_hints(message)
    for field in fields(message):
        if field.name == CODE:
            yield ()
        inner = _message_in(hints[field.name])
        if inner is not None:
            yield from ((field.name, *path) for path in _paths(inner))


def _message_in(hint: Any) -> type | None:
    """Give the message of ``tuple[Message, ...]``, which may be optional."""
    for one in get_args(hint):
        if isinstance(one, type) and is_dataclass(one):
            return one
        inner = _message_in(one)
        if inner is not None:
            return inner
    return None
