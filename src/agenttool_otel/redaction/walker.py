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
    TELLING_KEYS,
    KeyRules,
    Verdict,
    is_extra,
    list_verdicts,
    member_verdicts,
    tells,
)
from agenttool_otel.redaction.text import WITHHELD, DetectorFailed, Finds, TextRedactor
from agenttool_otel.redaction.types import Redaction, RedactionSettings
from agenttool_otel.redaction.work import TooMuchWork

_LONG_KEY: Final = 16
_POINTER_LIMIT: Final = 1000
_ROUNDS: Final = 5


def strings_of(root: Any, settings: RedactionSettings, extra: frozenset[str]) -> list[str] | None:
    """All strings of a value for which no other than value rules can matter."""
    strings: list[str] = []
    level: list[Any] = [root]
    nodes = 0
    keyed = settings.key_names and settings.enabled
    for _ in range(settings.max_depth):
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                strings.append(value)
            elif kind is dict:
                nodes += len(value)
                pair = False
                for key, child in value.items():
                    if type(key) is not str:
                        return None
                    if keyed and (
                        classify(key) is not KeyClass.NONE or (extra and is_extra(key, extra))
                    ):
                        return None
                    if len(key) >= _LONG_KEY:
                        strings.append(key)
                    pair = pair or key in TELLING_KEYS or key[-5:] == "Value"
                    kind = type(child)
                    if kind is str:
                        strings.append(child)
                    elif kind is int:
                        if child > 999_999_999_999 or child < -(1 << 53):
                            return None
                    elif child is not None and kind is not bool:
                        below.append(child)
                if pair and keyed and tells(value):
                    return None
            elif kind is list or kind is tuple:
                nodes += len(value)
                if keyed and len(value) >= 2 and _telling_list(value, extra):
                    return None
                below.extend(value)
            elif kind is int:
                if value > 999_999_999_999 or value < -(1 << 53):
                    return None
            elif kind is float:
                if not math.isfinite(value):
                    return None
            elif value is not None and kind is not bool:
                return None
        if nodes > settings.max_nodes:
            return None
        if not below:
            return strings
        level = below
    return None


def _telling_list(items: list[Any] | tuple[Any, ...], extra: frozenset[str]) -> bool:
    first = items[0]
    if (
        len(items) == 2
        and type(first) is str
        and (classify(first) is not KeyClass.NONE or is_extra(first, extra))
    ):
        return True
    if len(items) in (12, 15, 18, 21, 24):
        return True
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
        return self._by_pointer(value, "*") if self._targets.everything else self._copy(value, None)

    def _note(self, kind: str, rule: str) -> None:
        pointer = pointer_of(self._path) if len(self._counts) < _POINTER_LIMIT else ""
        key = (kind, pointer, rule)
        self._counts[key] = self._counts.get(key, 0) + 1

    def _by_pointer(self, value: Any, rule: str) -> Any:
        """The placeholder of a whole value that was named."""
        if value is None:
            return None
        raw = (
            value.encode("utf-8", "surrogatepass")
            if type(value) is str
            else b"\0" + type(value).__name__.encode()
        )
        if type(value) is str and self._make.pattern.fullmatch(raw):
            return value
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
            return self._make.make(
                forced.kind, str(value).encode() if value.bit_length() < 512 else b"int"
            )
        if value.bit_length() > 256:
            return omitted("int")  # too long to be written in decimal by default
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
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def _string(self, value: str, forced: Verdict | None) -> str:
        if forced is not None:
            head, secret = value[: forced.start], value[forced.start :]
            raw = secret.encode("utf-8", "surrogatepass")
            if self._make.is_done(raw) or value in self._settings.allow:
                return value
            self._note(forced.kind, forced.rule)
            return head + self._make.make(forced.kind, raw)
        if not value or not self._text.active:
            return value
        rest = ""
        if self._left is not None:
            size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
            if size > self._left:
                value = self._text.cut(value, self._left) if self._left else ""
                rest = omitted("over_budget")
                self._note("over_budget", "budget")
                self._left = 0
            else:
                self._left -= size
        try:
            clean, finds = self._redacted(value)
        except DetectorFailed as error:
            self.failed = True
            self._note("failed", error.detector)
            return self._make.make("failed", b"")
        for kind, rule in finds:
            self._note(kind, rule)
        return clean + rest

    def _redacted(self, value: str) -> tuple[str, Finds]:
        try:
            return self._text.redact(value)
        except TooMuchWork:
            first, self._too_much = not self._too_much, True
            return self._text.beginning(value if first else "")

    def _container(self, value: Any, forced: Verdict | None) -> Any:
        identity = id(value)
        if identity in self._above:
            return omitted("cycle")
        if len(self._above) >= self._settings.max_depth:
            return omitted("depth")
        self._above.add(identity)
        try:
            return (
                self._mapping(value, forced)
                if issubclass(type(value), dict)
                else self._sequence(value, forced)
            )
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
            new = self._member(
                name if type(name) is str else str(name), key, child, forced or verdicts.get(key)
            )
            while name in out:
                name = f"{name}#2"  # two secrets as keys must not swallow each other
            out[name] = new
        return out

    def _sequence(self, value: Any, forced: Verdict | None) -> Any:
        kind = type(value)
        if issubclass(kind, list):
            items = list(list.__iter__(value))
        elif issubclass(kind, tuple):
            items = list(tuple.__iter__(value))
        else:
            items = list(
                set.__iter__(value) if issubclass(kind, set) else frozenset.__iter__(value)
            )
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
                for _ in range(_ROUNDS):  # two tokens may share the character between them
                    if not (found := self._text.split_secrets(self._affordable(column.pieces))):
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
        for part in sorted(found, key=lambda part: part.start, reverse=True):
            index, *keys = column.steps[part.place]
            raw = column.pieces[part.place].encode("utf-8", "surrogatepass")
            clean = b"".join(
                (
                    raw[: part.start],
                    self._make.make(part.kind, part.secret).encode(),
                    raw[part.end :],
                )
            )
            column.pieces[part.place] = text = clean.decode("utf-8", "surrogatepass")
            items[index] = _with(items[index], keys, text)
            self._path.extend((index, *keys))
            self._note(part.kind, part.rule)
            del self._path[-1 - len(keys) :]

    def _affordable(self, pieces: list[str]) -> list[str]:
        """Those of the first strings that the budget still allows to be looked at."""
        left = self._left
        return (
            pieces
            if left is None
            else pieces[: bisect_right([*accumulate(map(len, pieces))], left)]
        )

    def _member(self, step: str | int, key: Any, child: Any, verdict: Verdict | None) -> Any:
        self._path.append(step)
        try:
            if (rule := self._named(key)) is not None:
                return self._by_pointer(child, rule)
            if verdict is not None and not verdict.whole and type(child) in (dict, list, tuple):
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
        return "pointer" if targets.path_rule(tuple(str(step) for step in self._path)) else None

    def _key(self, key: Any) -> Any:
        kind = type(key)
        if kind is str:
            return key if len(key) < _LONG_KEY or not self._text.active else self._string(key, None)
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
    name = type.__dict__["__name__"].__get__(kind)
    return name if type(name) is str else "object"
