"""How settings are declared, and the checked values of a whole set of them.

A setting is declared once, as a module constant::

    NUM_PARTITIONS: Final = Setting(
        "num.partitions", Kind.INT, 1, "Partitions of a topic ...", at_least(1)
    )

and read with its type: ``settings[NUM_PARTITIONS] + 1``. The values come in layers, each from
one ``Source``; what no layer gives is taken from the setting's synonyms, then its default.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Final, Generic, TypeVar

from twinlog.config.checks import ANY, Check
from twinlog.config.kinds import HIDDEN, WORDS, Kind, format_value, parse
from twinlog.model.errors import SettingsError

T = TypeVar("T")

_UNITS: Final = ("ms", "bytes", "minutes", "hours", "seconds")


class Update(Enum):
    """When a change of a setting takes effect; the values are Kafka's words."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Source(IntEnum):
    """Where a value comes from, the weightiest first, with the numbers of DescribeConfigs."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLUSTER_MIRROR = 9


@dataclass(frozen=True, slots=True)
class Synonym:
    """Another setting that gives the value when this one is not set, times ``factor``."""

    setting: "Setting[Any]"
    factor: int = 1

    def value_from(self, value: Any) -> Any:
        """Turn the other setting's value into ours; -1 (no limit) stays what it is."""
        return value * self.factor if self.factor != 1 and value > 0 else value


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """One setting: name, kind, default, what it does, and which values it takes."""

    name: str
    kind: Kind
    default: T
    doc: str
    check: Check = ANY
    update: Update = Update.READ_ONLY
    synonyms: tuple[Synonym, ...] = ()
    is_idle: bool = False
    """Known, checked and shown, but without an effect yet."""

    @property
    def unit(self) -> str:
        """The unit, where the name ends in one; otherwise nothing."""
        last = self.name.rpartition(".")[2]
        return last if last in _UNITS else ""

    @property
    def is_sensitive(self) -> bool:
        """Whether the value must never be shown."""
        return self.kind is Kind.PASSWORD

    def parse(self, text: str) -> T:
        """Give the value of ``text``; ValueError, saying what it must be, if it is none."""
        try:
            value: T = parse(self.kind, text)
        except ValueError:
            raise ValueError(self.must_be) from None
        if not self.check.accepts(value):
            raise ValueError(self.must_be)
        return value

    @property
    def must_be(self) -> str:
        """What the value must be, in words."""
        words = WORDS[self.kind]
        words += f" of {self.unit}" if self.unit and self.kind is not Kind.LIST else ""
        return f"{words}, {self.check.words}" if self.check.words else words

    def format(self, value: Any) -> str | None:
        """Give a value as text, as Kafka writes it; None for a password."""
        return format_value(self.kind, value)


@dataclass(frozen=True, slots=True)
class Given:
    """The text of a value, and where it was written (``server.properties line 3``)."""

    text: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class SettingSet:
    """All settings of one kind of thing (a broker, a topic, a mirror), by name."""

    of: str
    settings: tuple[Setting[Any], ...]
    rules: tuple[Callable[["Settings"], str | None], ...] = ()
    """Rules between settings: each gives what is wrong, or None."""
    is_foreign: Callable[[str], bool] = lambda name: False
    """Tells the names that Kafka knows and we accept, but do not look at."""
    by_name: dict[str, Setting[Any]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {s.name: s for s in self.settings})
        assert len(self.by_name) == len(self.settings), f"a {self.of} setting is declared twice"

    def find(self, name: str) -> Setting[Any] | None:
        """Give the setting called ``name``, if there is one."""
        return self.by_name.get(name)

    def is_ignored(self, name: str) -> bool:
        """Tell whether what is given for ``name`` has no effect."""
        found = self.by_name.get(name)
        return found is None or found.is_idle


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A place where a value could come from; the first of a list is the one that counts."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as DescribeConfigs tells it; ``value`` is None when unset or sensitive."""

    name: str
    value: str | None
    source: Source
    kind: Kind
    doc: str
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]


Layers = Mapping[Source, Mapping[str, Given]]


class Settings:
    """The checked values of a set of settings; never changes."""

    def __init__(
        self, declared: SettingSet, layers: Layers, *, beneath: "Settings | None" = None
    ) -> None:
        """Check everything. Raises SettingsError that names place, key, value and the fix.

        ``beneath`` are the settings of the broker, in which a topic's synonyms are looked up.
        """
        self.declared = declared
        self._beneath = beneath
        self._layers = {source: dict(layers[source]) for source in sorted(layers)}
        self._parsed = {
            source: dict(_parse_all(declared, given)) for source, given in self._layers.items()
        }
        self._values = {s.name: self._resolve(s)[0] for s in declared.settings}
        for rule in declared.rules:
            wrong = rule(self)
            if wrong is not None:
                raise SettingsError(wrong)

    @staticmethod
    def of(
        declared: SettingSet,
        given: Mapping[str, str] | None = None,
        *,
        source: Source = Source.STATIC_BROKER,
        origin: str = "",
        beneath: "Settings | None" = None,
    ) -> "Settings":
        """Give settings of one layer, out of plain texts."""
        layer = {name: Given(text, origin) for name, text in (given or {}).items()}
        return Settings(declared, {source: layer}, beneath=beneath)

    def __getitem__(self, setting: Setting[T]) -> T:
        """Give the value of a setting."""
        value: T = self._values[setting.name]
        return value

    def get_by_name(self, name: str) -> Any:
        """Give the value of the setting called ``name``; KeyError if there is none."""
        return self._values[name]

    @property
    def overrides(self) -> dict[str, str]:
        """What was given, by name, as text; the weightiest layer wins."""
        merged: dict[str, str] = {}
        for layer in reversed(self._layers.values()):
            merged.update((name, given.text) for name, given in layer.items())
        return merged

    @property
    def ignored(self) -> tuple[str, ...]:
        """Names that were given and that Kafka knows, but which have no effect here."""
        names = {name for layer in self._layers.values() for name in layer}
        return tuple(sorted(name for name in names if self.declared.is_ignored(name)))

    def source_of(self, setting: Setting[Any]) -> Source:
        """Tell which layer the value of a setting comes from."""
        return self._resolve(setting)[1]

    def with_overrides(
        self,
        changes: Mapping[str, str | None],
        *,
        source: Source = Source.STATIC_BROKER,
        origin: str = "",
    ) -> "Settings":
        """Give settings with texts set (or, by None, removed) in one layer; checked as a whole."""
        layer = dict(self._layers.get(source, {}))
        for name, text in changes.items():
            if text is None:
                layer.pop(name, None)
            else:
                layer[name] = Given(text, origin)
        return Settings(self.declared, {**self._layers, source: layer}, beneath=self._beneath)

    def describe(self, names: Iterable[str] | None = None) -> list[ConfigEntry]:
        """Give the settings as DescribeConfigs tells them, all or those named and known."""
        wanted = None if names is None else set(names)
        return [
            self._entry(setting)
            for setting in self.declared.settings
            if wanted is None or setting.name in wanted
        ]

    def _entry(self, setting: Setting[Any]) -> ConfigEntry:
        value, source = self._resolve(setting)
        return ConfigEntry(
            name=setting.name,
            value=setting.format(value),
            source=source,
            kind=setting.kind,
            doc=setting.doc,
            is_read_only=setting.update is Update.READ_ONLY,
            is_sensitive=setting.is_sensitive,
            synonyms=tuple(self._synonyms(setting)),
        )

    def _resolve(self, setting: Setting[Any]) -> tuple[Any, Source]:
        for value, source in self._given(setting):
            return value, source
        for synonym in setting.synonyms:
            for value, source in (self._beneath or self)._given(synonym.setting):
                return synonym.value_from(value), source
        return setting.default, Source.DEFAULT

    def _given(self, setting: Setting[Any]) -> Iterator[tuple[Any, Source]]:
        """Give the values of a setting that layers hold, the weightiest first."""
        for source, values in self._parsed.items():
            if setting.name in values:
                yield values[setting.name], source

    def _synonyms(self, setting: Setting[Any]) -> Iterator[ConfigSynonym]:
        for value, source in self._given(setting):
            yield ConfigSynonym(setting.name, setting.format(value), source)
        for synonym in setting.synonyms:
            other = synonym.setting
            for value, source in (self._beneath or self)._given(other):
                yield ConfigSynonym(other.name, other.format(value), source)
        if setting.default is not None:
            # Under the synonym's name only if it counts in the same unit.
            alike = (one.setting.name for one in setting.synonyms if one.factor == 1)
            name = next(alike, setting.name)
            yield ConfigSynonym(name, setting.format(setting.default), Source.DEFAULT)


def _parse_all(declared: SettingSet, given: Mapping[str, Given]) -> Iterator[tuple[str, Any]]:
    for name, entry in given.items():
        setting = declared.find(name)
        place = f"{entry.origin}: " if entry.origin else ""
        if setting is None:
            if declared.is_foreign(name):
                continue
            raise SettingsError(f"{place}{_unknown(declared, name)}")
        try:
            yield name, setting.parse(entry.text)
        except ValueError as error:
            shown = HIDDEN if setting.is_sensitive else entry.text
            raise SettingsError(
                f"{place}{name}={shown} cannot be: it must be {error}{_default_of(setting)}"
            ) from None


def _default_of(setting: Setting[Any]) -> str:
    text = setting.format(setting.default)
    return f" (the default is {text})" if text else ""


def _unknown(declared: SettingSet, name: str) -> str:
    import difflib  # only when there is something wrong

    near = difflib.get_close_matches(name, declared.by_name, n=1)
    hint = f"did you mean {near[0]}?" if near else "docs/settings.md lists all there are"
    return f"no {declared.of} setting is called {name}; {hint}"
