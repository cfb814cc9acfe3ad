"""Walking through a value: a quick look first, a careful copy only where something has to
change.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Final

from agenttool_otel.redaction.keys import KeyClass, classify
from agenttool_otel.redaction.placeholders import omitted
from agenttool_otel.redaction.pointers import Targets, pointer_of
from agenttool_otel.redaction.split_secrets import Column, Part, columns
from agenttool_otel.redaction.structure import (
    DESCRIBING_KEYS,
    KeyRules,
    Verdict,
    describes_members,
    is_extra,
    list_verdicts,
    member_verdicts,
)
from agenttool_otel.redaction.text import WITHHELD, DetectorFailed, Finds, TextRedactor
from agenttool_otel.redaction.types import Redaction, RedactionSettings
from agenttool_otel.redaction.work import TooMuchWork

_LONG_KEY: Final = 16
_LEAST_INTEGER: Final = -(1 << 53)
_MOST_INTEGER: Final = 999_999_999_999
"""Integers between these are no payment card's number and fit a JSON number."""
_LENGTHS_OF_PHRASES: Final = (12, 15, 18, 21, 24)
_POINTER_LIMIT: Final = 1000
_ROUNDS: Final = 5


def strings_of(root: Any, settings: RedactionSettings, extra: frozenset[str]) -> list[str] | None:
    """All strings of a value for which no other than value rules can matter.

    Args:
        root: the value.
        settings: how much is looked at.
        extra: the user's own key names, normalised.

    Returns:
        The strings, or None where only the careful copy can decide.
    """
    look = _Look(settings, extra)
    level: list[Any] = [root]
    for _ in range(settings.max_depth):
        below: list[Any] = []
        for value in level:
            if not look.is_plain(value, below):
                return None
        if look.nodes > settings.max_nodes:
            return None
        if not below:
            return look.strings
        level = below
    return None


class _Look:
    """A quick look through a value, level by level. Not used twice."""

    __slots__ = ("_extra", "_keyed", "nodes", "strings")

    def __init__(self, settings: RedactionSettings, extra: frozenset[str]) -> None:
        """Begin with nothing."""
        self.strings: list[str] = []
        self.nodes = 0
        self._keyed = settings.key_names and settings.enabled
        self._extra = extra

    def is_plain(self, value: Any, below: list[Any]) -> bool:
        """Whether nothing but value rules matters for a value itself; adds what it holds to the
        level below.
        """
        kind = type(value)
        if kind is str:
            self.strings.append(value)
            return True
        if kind is dict:
            return self._is_plain_mapping(value, below)
        if kind is list or kind is tuple:
            self.nodes += len(value)
            if self._keyed and len(value) >= 2 and _has_related_items(value, self._extra):
                return False
            below.extend(value)
            return True
        if kind is int:
            return not (value < _LEAST_INTEGER or value > _MOST_INTEGER)
        if kind is float:
            return math.isfinite(value)
        return value is None or kind is bool

    def _is_plain_mapping(self, mapping: dict[Any, Any], below: list[Any]) -> bool:
        self.nodes += len(mapping)
        is_pair = False
        for key, child in mapping.items():
            if type(key) is not str:
                return False
            if self._keyed and _is_secret_name(key, self._extra):
                return False
            if len(key) >= _LONG_KEY:
                self.strings.append(key)
            if key in DESCRIBING_KEYS or key[-5:] == "Value":
                is_pair = True
            # most members are strings
            if type(child) is str:
                self.strings.append(child)
            elif not self._is_plain_member(child, below):
                return False
        return not (is_pair and self._keyed and describes_members(mapping))

    def _is_plain_member(self, child: Any, below: list[Any]) -> bool:
        """The same of a mapping's member that is no string: integers need no level of their own."""
        kind = type(child)
        if kind is int:
            return not (child < _LEAST_INTEGER or child > _MOST_INTEGER)
        if child is not None and kind is not bool:
            below.append(child)
        return True


def _is_secret_name(name: str, extra: frozenset[str]) -> bool:
    return classify(name) is not KeyClass.NONE or is_extra(name, extra)


def _has_related_items(items: list[Any] | tuple[Any, ...], extra: frozenset[str]) -> bool:
    """Whether the items of a list could have to do with each other."""
    first = items[0]
    # ["Authorization", "Bearer ..."]
    if len(items) == 2 and type(first) is str and _is_secret_name(first, extra):
        return True
    if len(items) in _LENGTHS_OF_PHRASES:
        return True
    # ["--password", "hunter2"]
    return any(type(item) is str and item[:1] == "-" for item in items)


class Walk:
    """One careful copy. Not shared between threads, not used twice."""

    def __init__(
        self,
        text: TextRedactor,
        settings: RedactionSettings,
        names: KeyRules,
        targets: Targets,
        kind: str,
        budget: int | None,
    ) -> None:
        """Prepare."""
        self._text = text
        self._make = text.placeholders
        self._settings = settings
        self._names = names
        self._targets = targets
        self._kind = kind
        self._left = budget
        self._nodes = 0
        self._path: list[str | int] = []
        self._above: set[int] = set()
        self._counts: dict[tuple[str, str, str], int] = {}
        self._too_much = False
        self.failed = False

    @property
    def redactions(self) -> tuple[Redaction, ...]:
        """What was removed so far."""
        return tuple(
            Redaction(kind, pointer, rule, count)
            for (kind, pointer, rule), count in self._counts.items()
        )

    def run(self, value: Any) -> Any:
        """The copy that may leave the process."""
        if self._targets.everything:
            return self._by_pointer(value, "*")
        return self._copy(value, None)

    def _note(self, kind: str, rule: str) -> None:
        # a list of a million secrets: beyond the bound they are counted together
        pointer = ""
        if len(self._counts) < _POINTER_LIMIT:
            pointer = pointer_of(self._path)
        key = (kind, pointer, rule)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _by_pointer(self, value: Any, rule: str) -> Any:
        """The placeholder of a whole value that was named."""
        if value is None:
            return None
        if type(value) is str:
            raw = value.encode("utf-8", "surrogatepass")
            # a second pass
            if self._make.pattern.fullmatch(raw):
                return value
        else:
            raw = b"\0" + type(value).__name__.encode()
        self._note(self._kind, rule)
        return self._make.make(self._kind, raw)

    def _copy(self, value: Any, forced: Verdict | None) -> Any:
        kind = type(value)
        if kind is str:
            return self._string(value, forced)
        if value is None or kind is bool:
            return value
        if kind is int:
            return self._integer(value, forced)
        if kind is float:
            return self._float(value, forced)
        if kind is dict or kind is list or kind is tuple:
            return self._container(value, forced)
        return self._foreign(value, kind, forced)

    def _foreign(self, value: Any, kind: type, forced: Verdict | None) -> Any:
        """Subclasses of builtin types are read through the builtin's own methods; user code never
        runs.
        """
        if issubclass(kind, str):
            return self._string(str.__str__(value), forced)
        if issubclass(kind, int):
            return self._integer(int.__int__(value), forced)
        if issubclass(kind, float):
            return self._float(float.__float__(value), forced)
        if issubclass(kind, (dict, list, tuple, set, frozenset)):
            return self._container(value, forced)
        if issubclass(kind, (bytes, bytearray, memoryview)):
            return omitted("bytes")
        return omitted(_class_name(kind))

    def _integer(self, value: int, forced: Verdict | None) -> Any:
        if forced is not None:
            self._note(forced.kind, forced.rule)
            raw = str(value).encode() if value.bit_length() < 512 else b"int"
            return self._make.make(forced.kind, raw)
        # 10**5000 is too long to be written in decimal by default (sys.set_int_max_str_digits)
        if value.bit_length() > 256:
            return omitted("int")
        if self._text.card(value):
            self._note("payment_card", "pii:card")
            return self._make.make("payment_card", str(value).encode())
        return value

    def _float(self, value: float, forced: Verdict | None) -> Any:
        if forced is not None:
            self._note(forced.kind, forced.rule)
            return self._make.make(forced.kind, repr(value).encode())
        if math.isfinite(value):
            return value
        # JSON has no numbers for these (RFC 8259, 6)
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value > 0 else "-Infinity"

    def _string(self, value: str, forced: Verdict | None) -> str:
        if forced is not None:
            # "Bearer abcdef123456": the scheme stays
            head = value[: forced.start]
            secret = value[forced.start :]
            raw = secret.encode("utf-8", "surrogatepass")
            if self._make.is_done(raw) or value in self._settings.allow:
                return value
            self._note(forced.kind, forced.rule)
            return head + self._make.make(forced.kind, raw)
        if not value or not self._text.active:
            return value
        value, rest = self._within_budget(value)
        try:
            clean, finds = self._redacted(value)
        except DetectorFailed as error:
            self.failed = True
            self._note("failed", error.detector)
            return self._make.make("failed", b"")
        for kind, rule in finds:
            self._note(kind, rule)
        return clean + rest

    def _within_budget(self, value: str) -> tuple[str, str]:
        """What of a string the budget allows, and what stands for the rest."""
        if self._left is None:
            return value, ""
        size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        if size <= self._left:
            self._left -= size
            return value, ""
        kept = self._text.cut(value, self._left) if self._left else ""
        self._note("over_budget", "budget")
        self._left = 0
        return kept, omitted("over_budget")

    def _redacted(self, value: str) -> tuple[str, Finds]:
        try:
            return self._text.redact(value)
        except TooMuchWork:
            # one text that costs too much keeps its beginning, further ones nothing
            is_first = not self._too_much
            self._too_much = True
            return self._text.beginning(value if is_first else "")

    def _container(self, value: Any, forced: Verdict | None) -> Any:
        # a list that holds itself
        identity = id(value)
        if identity in self._above:
            return omitted("cycle")
        if len(self._above) >= self._settings.max_depth:
            return omitted("depth")
        self._above.add(identity)
        try:
            if issubclass(type(value), dict):
                return self._mapping(value, forced)
            return self._sequence(value, forced)
        finally:
            self._above.discard(identity)

    def _full(self, size: int) -> bool:
        self._nodes += size
        return self._nodes > self._settings.max_nodes

    def _mapping(self, value: Any, forced: Verdict | None) -> Any:
        items = list(dict.items(value))
        if self._full(len(items)):
            return omitted("nodes")
        verdicts: dict[str, Verdict] = {}
        if self._settings.key_names and self._settings.enabled and forced is None:
            verdicts = member_verdicts(dict(items), self._names)
        out: dict[Any, Any] = {}
        for key, child in items:
            name = self._key(key)
            step = name if type(name) is str else str(name)
            verdict = forced or verdicts.get(key)
            new = self._member(step, key, child, verdict)
            # {"ghp_Co...": 1, "ghp_9f...": 2}: two secrets as keys must not swallow each other
            while name in out:
                name = f"{name}#2"
            out[name] = new
        return out

    def _sequence(self, value: Any, forced: Verdict | None) -> Any:
        kind = type(value)
        if issubclass(kind, list):
            items = list(list.__iter__(value))
        elif issubclass(kind, tuple):
            items = list(tuple.__iter__(value))
        elif issubclass(kind, set):
            items = list(set.__iter__(value))
        else:
            items = list(frozenset.__iter__(value))
        if self._full(len(items)):
            return omitted("nodes")
        verdicts: dict[int, Verdict] = {}
        if forced is None:
            items = self._without_split_secrets(items)
            if self._settings.key_names and self._settings.enabled:
                verdicts = list_verdicts(items, self._names)
        out = [
            self._member(index, None, child, forced or verdicts.get(index))
            for index, child in enumerate(items)
        ]
        return tuple(out) if issubclass(kind, tuple) else out

    def _without_split_secrets(self, items: list[Any]) -> list[Any]:
        """The items without the secrets that are split over several of them."""
        if len(items) < 2 or not self._text.active:
            return items
        changed = items
        for column in columns(items):
            try:
                # two tokens may share the character between them: one more round finds the second
                for _ in range(_ROUNDS):
                    pieces = self._affordable(column.pieces)
                    found = self._text.split_secrets(pieces)
                    if not found:
                        break
                    if changed is items:
                        changed = list(items)
                    self._remove(changed, column, found)
            except DetectorFailed as error:
                self.failed = True
                self._note("failed", error.detector)
                return [self._make.make("failed", b"")]
            except TooMuchWork:
                self._note(*WITHHELD)
                return [omitted(WITHHELD[0])]
        return changed

    def _remove(self, items: list[Any], column: Column, found: list[Part]) -> None:
        # from the last to the first, so that the places of the others stay right
        for part in sorted(found, key=lambda part: part.start, reverse=True):
            index, *keys = column.steps[part.place]
            raw = column.pieces[part.place].encode("utf-8", "surrogatepass")
            placeholder = self._make.make(part.kind, part.secret)
            clean = raw[: part.start] + placeholder.encode() + raw[part.end :]
            text = clean.decode("utf-8", "surrogatepass")
            column.pieces[part.place] = text
            items[index] = _with(items[index], keys, text)
            self._path.extend((index, *keys))
            self._note(part.kind, part.rule)
            del self._path[-1 - len(keys) :]

    def _affordable(self, pieces: list[str]) -> list[str]:
        """Those of the first strings that the budget still allows to be looked at."""
        if self._left is None:
            return pieces
        sizes = list(accumulate(map(len, pieces)))
        count = bisect_right(sizes, self._left)
        return pieces[:count]

    def _member(self, step: str | int, key: Any, child: Any, verdict: Verdict | None) -> Any:
        self._path.append(step)
        try:
            rule = self._named(key)
            if rule is not None:
                return self._by_pointer(child, rule)
            # {"password": {"min_length": 8}} is looked into
            is_container = type(child) in (dict, list, tuple)
            if verdict is not None and is_container and not verdict.whole:
                verdict = None
            return self._copy(child, verdict)
        finally:
            self._path.pop()

    def _named(self, key: Any) -> str | None:
        """The pointer rule that asks for the value at the current path."""
        targets = self._targets
        if not targets.names and not targets.paths:
            return None
        if key is not None and type(key) is str and targets.names_rule(key):
            return "name"
        path = tuple(str(step) for step in self._path)
        return "pointer" if targets.path_rule(path) else None

    def _key(self, key: Any) -> Any:
        kind = type(key)
        if kind is str:
            # no token is as short as most keys
            if len(key) < _LONG_KEY or not self._text.active:
                return key
            return self._string(key, None)
        if key is None or kind is bool or kind is int or kind is float:
            return key
        if issubclass(kind, str):
            return self._string(str.__str__(key), None)
        return omitted(_class_name(kind))


def _with(value: Any, path: list[Any], text: str) -> Any:
    """A copy of a value with another text at a place."""
    if not path:
        return text
    copy: Any = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], text)
    return copy


def _class_name(kind: type) -> str:
    # a metaclass may have a __name__ of its own, which would be the user's code
    name = type.__dict__["__name__"].__get__(kind)
    return name if type(name) is str else "object"
