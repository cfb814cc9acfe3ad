"""Gathers the facts of one call: each value once, the first word about it counting, and only so
many in all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from agenttool_otel.facts.accounting import TextAccounting
from agenttool_otel.facts.argument_names import FactKind, is_one_line
from agenttool_otel.facts.types import EMPTY_FACTS, FactEnvironment, Facts
from agenttool_otel.names import ArgumentRole, PathAccess
from agenttool_otel.readers.types import unread
from agenttool_otel.values.pointers import escape_token

MAX_DEPTH: Final = 64
"""Deeper values are not followed; a fact says so."""

MAX_FACTS: Final = 500
"""More values are not looked at; a fact says so."""

_MAX_TRACED: Final = 500
_MAX_STEPS: Final = 100_000
_BROKEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]|%0[ad]", re.I)
"""A line break or control character other than a tab, or one that a URL's reader makes."""


class _Value(NamedTuple):
    """A value among the arguments that is no container, or an empty one."""

    pointer: str
    name: str  # of the argument; of what lies in a list, the list's
    given: Any

    @property
    def is_text(self) -> bool:
        """Whether it could name something."""
        return not isinstance(self.given, bool | Mapping) and self.given != []

    @property
    def text(self) -> Any:
        """The text of it, as a reader takes it."""
        from agenttool_otel.readers.paths.fact import path_text_of

        if isinstance(self.given, list | tuple | set | frozenset):
            return list(self.given)
        text = path_text_of(self.given)
        return self.given if text is None else text


def _roles(
    values: Sequence[_Value],
    texts: TextAccounting,
    *,
    everything: bool,
) -> dict[str, ArgumentRole]:
    """Return what each value does in the call, by pointer.

    Where nothing is a target, what names something best is: of ``delete_note(title)`` the title,
    and where there is only a text, the text.
    """
    named = [value for value in values if value.is_text]
    roles: dict[str, ArgumentRole] = {}
    for value in named:
        if not texts.is_listed_word(value.pointer, value.given):
            roles[value.pointer] = texts.role(value.pointer, value.name)
    if not everything or ArgumentRole.TARGET in roles.values():
        return roles
    tiers: dict[str, int] = {}
    for value in named:
        if not texts.is_inert(value.pointer):
            tiers[value.pointer] = texts.tier(value.pointer, value.name, value.given)
    first = min(tiers.values(), default=None)
    for pointer, tier in tiers.items():
        if tier == first:
            roles[pointer] = ArgumentRole.TARGET
    return roles


class Collector:
    """The facts of one call, as they come."""

    __slots__ = ("_count", "_declared", "_env", "_gave_up", "_seen", "_steps", "facts")

    def __init__(self, env: FactEnvironment) -> None:
        self._env = env
        self._count = 0
        self._steps = 0
        self._seen: dict[str, set[FactKind]] = {}
        self._declared: frozenset[str] = frozenset()
        self._gave_up = False
        self.facts: Facts = {
            **EMPTY_FACTS,
            "paths": [],
            "urls": [],
            "shell": [],
            "sql": [],
            "provenance": {},
        }

    @property
    def env(self) -> FactEnvironment:
        """The call's surroundings."""
        return self._env

    @property
    def full(self) -> bool:
        """Whether no more values are looked at."""
        return self._count >= MAX_FACTS

    def step(self) -> bool:
        """Count one value that is looked at; return whether it may still be."""
        self._steps += 1
        return self._steps <= _MAX_STEPS and self._count < MAX_FACTS

    def close_declared(self) -> None:
        """Note that all declared arguments are in: from now on, nothing is added to where one of
        them is.
        """
        self._declared = frozenset(self._seen)

    def add(
        self,
        kind: FactKind,
        value: Any,
        pointer: str,
        access: PathAccess,
        *,
        inferred: bool,
    ) -> None:
        """Add the facts of one value, or of each element of a list."""
        if isinstance(value, list | tuple | set | frozenset) and not self._is_argv(
            kind, value, pointer
        ):
            self._mark(kind, pointer)
            for index, element in enumerate(value):
                if self.full:
                    self.give_up(pointer)
                    return
                self._add_one(kind, element, f"{pointer}/{index}", access, inferred=inferred)
            return
        self._add_one(kind, value, pointer, access, inferred=inferred)

    def replace_command(self, pointer: str, text: str) -> None:
        """Put the fact of a command, joined with the words beside it, in place of an
        argument's own.
        """
        kept = [
            fact
            for fact in self.facts["shell"]
            if not f"{fact['argument']}/".startswith(f"{pointer}/")
        ]
        inferred = all(fact["inferred"] for fact in self.facts["shell"] if fact not in kept)
        self.facts["shell"] = kept
        self._seen.pop(pointer, None)
        self._declared -= {pointer}
        self._add_one(FactKind.COMMAND, text, pointer, PathAccess.UNKNOWN, inferred=inferred)

    def give_up(self, pointer: str) -> None:
        """Add a fact of every kind: from here on values were not looked at."""
        if self._gave_up:
            return
        self._gave_up = True
        self._count = MAX_FACTS
        found: dict[str, list[Any]] = cast("dict[str, Any]", self.facts)
        for name, kind in (("paths", "path"), ("urls", "url"), ("shell", "shell"), ("sql", "sql")):
            found[name].append(unread(kind, pointer))

    def trace(
        self,
        arguments: Mapping[str, Any],
        *,
        everything: bool,
        family: str,
        tool: str,
        texts: TextAccounting,
    ) -> None:
        """Add provenance: of all texts and numbers among the arguments, or of those that there is a
        fact about.
        """
        ledger = self._env.ledger
        if ledger is None or not ledger.speaks:
            return
        values, complete = self._values(arguments, everything=everything, texts=texts)
        roles = _roles(values, texts, everything=everything)
        found = self.facts["provenance"]
        for value in values:
            if (role := roles.get(value.pointer)) is None:
                continue
            fact = ledger.lookup(
                value.text,
                name=value.name,
                family=family,
                tool=tool,
                role=role,
            )
            found[value.pointer] = {**fact, "broken": True} if self._is_broken(value) else fact
        if everything and complete:
            self.facts["traced"] = True
            undecided = [value for value in values if not texts.is_inert(value.pointer)]
            self.facts["aimed"] = not undecided or ArgumentRole.TARGET in roles.values()

    def _values(
        self,
        arguments: Mapping[str, Any],
        *,
        everything: bool,
        texts: TextAccounting,
    ) -> tuple[list[_Value], bool]:
        """Return the values of a call, or those that there is a fact about, and whether
        these are all.
        """
        values: list[_Value] = []
        stack: list[tuple[str, str, Any, int]] = [("", "", arguments, 0)]
        steps = 0
        while stack:
            pointer, name, value, depth = stack.pop()
            steps += 1
            if depth > MAX_DEPTH or len(values) >= _MAX_TRACED or steps > 20 * _MAX_TRACED:
                from agenttool_otel.facts.provenance import UNREADABLE

                self.facts["provenance"][pointer] = {**UNREADABLE, "untrusted": False}
                return values, False
            if isinstance(value, Mapping) and value:
                for key, child in value.items():
                    place = f"{pointer}/{escape_token(str(key))}"
                    stack.append((place, str(key), child, depth + 1))
                    # a key may be whom the call reaches: {"eve@example.org": true}
                    if everything and texts.is_chosen_key(place, name, str(key)):
                        values.append(_Value(f"{place}/", name, str(key)))
            elif self._is_list_of_values(pointer, value) and value:
                for index, child in enumerate(value):
                    stack.append((f"{pointer}/{index}", name, child, depth + 1))
            elif value is None or value is arguments:
                continue
            elif everything or pointer in self._seen:
                values.append(_Value(pointer, name, value))
        return values, True

    def _is_list_of_values(self, pointer: str, value: Any) -> bool:
        """Return whether a value is a list, and not the words of a command."""
        if isinstance(value, set | frozenset):
            return True
        return isinstance(value, list | tuple) and not self._is_command(pointer)

    def _is_command(self, pointer: str) -> bool:
        return FactKind.COMMAND in self._seen.get(pointer, ())

    def _is_broken(self, value: _Value) -> bool:
        """Return whether a text that should be one line is more, or has a control character."""
        if not isinstance(value.text, str) or not is_one_line(value.name):
            return False
        kinds = self._seen.get(value.pointer, set())
        if FactKind.COMMAND in kinds or FactKind.SQL in kinds:
            return False
        return _BROKEN.search(value.text) is not None

    def _is_argv(self, kind: FactKind, value: Any, pointer: str) -> bool:
        """Return whether a list is the words of one command rather than several commands."""
        name = pointer.rpartition("/")[2].lower()
        many = name.endswith("s") and not name.endswith("args")
        return kind is FactKind.COMMAND and isinstance(value, list | tuple) and not many

    def _mark(self, kind: FactKind, pointer: str) -> bool:
        """Note that a value has its fact; return whether it had one of that kind already, or a
        declared one.
        """
        kinds = self._seen.setdefault(pointer, set())
        known = kind in kinds or pointer in self._declared
        kinds.add(kind)
        return known

    def _add_one(
        self,
        kind: FactKind,
        value: Any,
        pointer: str,
        access: PathAccess,
        *,
        inferred: bool,
    ) -> None:
        if self._count >= MAX_FACTS:
            self.give_up(pointer)
            return
        if self._mark(kind, pointer):
            return
        self._count += 1
        if kind is FactKind.PATH:
            from agenttool_otel.readers.paths.fact import path_fact

            fact = path_fact(
                value,
                argument=pointer,
                access=access.value,
                surroundings=self._env,
                inferred=inferred,
            )
            self.facts["paths"].append(fact)
        elif kind is FactKind.URL:
            from agenttool_otel.readers.urls.fact import url_fact

            self.facts["urls"].append(
                url_fact(
                    value,
                    argument=pointer,
                    surroundings=self._env,
                    inferred=inferred,
                )
            )
        else:
            self._add_parsed(
                "shell" if kind is FactKind.COMMAND else "sql", value, pointer, inferred
            )

    def _add_parsed(self, kind: str, value: Any, pointer: str, inferred: bool) -> None:
        found: list[Any] = cast("dict[str, Any]", self.facts)[kind]
        try:
            if kind == "sql":
                from agenttool_otel.readers.sql import sql_fact

                found.append(sql_fact(value, argument=pointer, inferred=inferred))
            else:
                from agenttool_otel.readers.shell import shell_fact

                found.append(
                    shell_fact(
                        value,
                        argument=pointer,
                        surroundings=self._env,
                        inferred=inferred,
                    )
                )
        except Exception:  # a missing grammar, too, must read as "not proven"
            found.append(unread(kind, pointer, inferred=inferred, unparsed="internal"))
