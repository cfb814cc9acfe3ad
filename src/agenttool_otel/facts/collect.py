"""Gathers the facts of one call: each value once, as what it was added for first, and only so many
in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.accounting import TextAccounting
from agenttool_otel.facts.argument_names import FactKind, is_single_line
from agenttool_otel.facts.path_base import PathBases
from agenttool_otel.facts.sources import ArgumentSources, StatedSources
from agenttool_otel.facts.types import EMPTY_FACTS, FactEnvironment, Facts, Ledger, ProvenanceFact
from agenttool_otel.names import ArgumentRole, PathAccess, Sourced, Trust
from agenttool_otel.readers.types import ShellFact, SqlFact, unread
from agenttool_otel.values.inspection import path_text_of
from agenttool_otel.values.pointers import escape_token

MAX_DEPTH: Final = 64
"""Deeper values are not followed; a fact is added that names the place."""

MAX_FACTS: Final = 500
"""More values are not looked at; a fact is added that names the place."""

_MAX_TRACED: Final = 500
"""Values of a call whose provenance is looked up."""

_MAX_TRACE_STEPS: Final = 20 * _MAX_TRACED
_MAX_STEPS: Final = 100_000
_BROKEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]|%0[ad]", re.I)
"""A line break or control character other than a tab, or one that a URL's reader makes."""


class _Place(NamedTuple):
    """A value that the walk through the arguments comes by."""

    pointer: str
    name: str  # of the argument; of what lies in a list, the list's
    value: Any
    depth: int


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
        if isinstance(self.given, list | tuple | set | frozenset):
            return list(self.given)
        text = path_text_of(self.given)
        return self.given if text is None else text


def _roles(
    values: Sequence[_Value],
    texts: TextAccounting,
    *,
    everything: bool,
    stated: Sequence[str] = (),
) -> dict[str, ArgumentRole]:
    """Return what each value does in the call, by pointer; a target where its sources are stated.

    Where nothing is a target, what names something best is: of ``delete_note(title)`` the title,
    and where there is only a text, the text.
    """
    named = [value for value in values if value.is_text]
    roles: dict[str, ArgumentRole] = dict.fromkeys(stated, ArgumentRole.TARGET)
    for value in named:
        if value.pointer in roles:
            continue
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


def _chosen_keys(
    place: _Place,
    members: Sequence[_Place],
    texts: TextAccounting,
) -> Iterator[_Value]:
    """Return the keys of an object that are values: {"eve@example.org": true} reaches eve."""
    if not isinstance(place.value, Mapping):
        return
    for member in members:
        if texts.is_chosen_key(member.pointer, place.name, member.name):
            # a key has no pointer of its own: the empty key below its value stands for it
            yield _Value(f"{member.pointer}/", place.name, member.name)


def _compared(
    value: _Value,
    stated: Sequence[ArgumentSources],
    ledger: Ledger | None,
    *,
    family: str,
    tool: str,
) -> ProvenanceFact:
    """Return where a value came from, with whether its stated sources have all of it."""
    sourced = Sourced.OTHER
    fact = _UNTRACED
    if ledger is not None and ledger.has_evidence:
        fact = ledger.lookup(value.text, name=value.name, family=family, tool=tool)
    if ledger is not None and all(
        ledger.is_from(value.text, source, name=value.name, family=family, tool=tool)
        for source in stated
    ):
        sourced = Sourced.LISTED
    words = [word for source in stated for word in source.words]
    allowed = list(dict.fromkeys(words))
    return {**fact, "sourced": sourced.value, "allowed": allowed}


_UNTRACED: Final[ProvenanceFact] = {
    "sources": ["unknown"],
    "untrusted": False,
    "certain": True,
    "trust": Trust.UNKNOWN.value,
    "role": ArgumentRole.TARGET.value,
    "seen_in": [],
    "link": False,
    "extended": False,
    "made_up_id": False,
    "private": [],
    "broken": False,
    "sourced": Sourced.OTHER.value,
    "allowed": [],
}
"""The fact about a value whose sources are stated, in a session that has seen nothing yet."""


class Collector:
    """The facts of one call, as they come.

    Args:
        env: the call's surroundings.
        bases: where the tool's paths are, if it has a file system of its own.
    """

    __slots__ = ("_bases", "_count", "_declared", "_env", "_gave_up", "_seen", "_steps", "facts")

    def __init__(self, env: FactEnvironment, bases: PathBases | None = None) -> None:
        self._env = env
        self._bases = bases
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
        """Note that all declared arguments are in: from now on, nothing is added for their
        pointers.
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
                self._add_value(kind, element, f"{pointer}/{index}", access, inferred=inferred)
            return
        self._add_value(kind, value, pointer, access, inferred=inferred)

    def replace_command(self, pointer: str, text: str) -> None:
        """Put the fact of a command, joined with the words beside it, in place of an
        argument's own.
        """
        kept: list[ShellFact] = []
        inferred = True
        for fact in self.facts["shell"]:
            if f"{fact['argument']}/".startswith(f"{pointer}/"):
                inferred = inferred and fact["inferred"]
            else:
                kept.append(fact)
        self.facts["shell"] = kept
        self._seen.pop(pointer, None)
        self._declared -= {pointer}
        self._add_value(FactKind.COMMAND, text, pointer, PathAccess.UNKNOWN, inferred=inferred)

    def give_up(self, pointer: str) -> None:
        """Add a fact of every kind: from here on values were not looked at."""
        if self._gave_up:
            return
        self._gave_up = True
        self._count = MAX_FACTS
        self.facts["paths"].append(unread("path", pointer))
        self.facts["urls"].append(unread("url", pointer))
        self.facts["shell"].append(unread("shell", pointer))
        self.facts["sql"].append(unread("sql", pointer))

    def trace(
        self,
        arguments: Mapping[str, Any],
        *,
        everything: bool,
        family: str,
        tool: str,
        texts: TextAccounting,
        sources: StatedSources | None = None,
    ) -> None:
        """Add the provenance of arguments.

        Args:
            arguments: the call's arguments.
            everything: whether all texts and numbers are traced, or those that have a fact alone.
            family: within which ids are compared.
            tool: the tool's name.
            texts: which arguments decide nothing, or hold a word that the schema lists.
            sources: where the values of some arguments may come from, where that is stated.
        """
        ledger = self._env.ledger
        if sources is not None:
            values, _ = self._values(arguments, everything=True, texts=texts)
            self._compare(values, ledger, sources, family=family, tool=tool)
        if ledger is None or not ledger.has_evidence:
            return
        values, complete = self._values(arguments, everything=everything, texts=texts)
        found = self.facts["provenance"]
        roles = _roles(values, texts, everything=everything, stated=list(found))
        for value in values:
            role = roles.get(value.pointer)
            if role is None or value.pointer in found:
                continue
            fact = ledger.lookup(
                value.text,
                name=value.name,
                family=family,
                tool=tool,
                role=role,
            )
            if self._is_broken(value):
                fact = {**fact, "broken": True}  # the ledger shares its facts
            found[value.pointer] = fact
        if everything and complete:
            self.facts["traced"] = True
            has_target = ArgumentRole.TARGET in roles.values()
            self.facts["aimed"] = has_target or all(
                texts.is_inert(value.pointer) for value in values
            )

    def _compare(
        self,
        values: Sequence[_Value],
        ledger: Ledger | None,
        sources: StatedSources,
        *,
        family: str,
        tool: str,
    ) -> None:
        """Add the provenance of the values whose sources are stated, compared with these."""
        for value in values:
            stated = sources.of(value.pointer)
            if not stated or not value.is_text:
                continue
            fact = _compared(value, stated, ledger, family=family, tool=tool)
            fact["broken"] = self._is_broken(value)
            self.facts["provenance"][value.pointer] = fact

    def _values(
        self,
        arguments: Mapping[str, Any],
        *,
        everything: bool,
        texts: TextAccounting,
    ) -> tuple[list[_Value], bool]:
        """Return the values of a call, or those that have a fact, and whether these are all."""
        values: list[_Value] = []
        stack = [_Place("", "", arguments, 0)]
        steps = 0
        while stack:
            place = stack.pop()
            steps += 1
            if place.depth > MAX_DEPTH or len(values) >= _MAX_TRACED or steps > _MAX_TRACE_STEPS:
                from agenttool_otel.facts.provenance import UNREADABLE

                self.facts["provenance"][place.pointer] = {**UNREADABLE, "untrusted": False}
                return values, False
            children = self._children(place)
            stack += children
            if children and everything:
                values += _chosen_keys(place, children, texts)
            if children or place.value is None or place.value is arguments:
                continue
            if everything or place.pointer in self._seen:
                values.append(_Value(place.pointer, place.name, place.value))
        return values, True

    def _children(self, place: _Place) -> list[_Place]:
        """Return what lies in an object or a list; nothing of a plain value or an empty one."""
        pointer, name, value, depth = place
        children: list[_Place] = []
        if isinstance(value, Mapping):
            for key, child in value.items():
                below = f"{pointer}/{escape_token(str(key))}"
                children.append(_Place(below, str(key), child, depth + 1))
        elif self._is_list_of_values(pointer, value):
            for index, child in enumerate(value):
                children.append(_Place(f"{pointer}/{index}", name, child, depth + 1))
        return children

    def _is_list_of_values(self, pointer: str, value: Any) -> bool:
        """Return whether a value is a list, and not the words of a command."""
        if isinstance(value, set | frozenset):
            return True
        return isinstance(value, list | tuple) and not self._is_command(pointer)

    def _is_command(self, pointer: str) -> bool:
        return FactKind.COMMAND in self._seen.get(pointer, ())

    def _is_broken(self, value: _Value) -> bool:
        """Return whether a text that should be a single line is more, or has a control
        character.
        """
        if not isinstance(value.text, str) or not is_single_line(value.name):
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

    def _add_value(
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
            self._add_path(value, pointer, access, inferred)
        elif kind is FactKind.URL:
            from agenttool_otel.readers.urls.fact import url_fact

            url = url_fact(
                value,
                argument=pointer,
                surroundings=self._env,
                inferred=inferred,
            )
            self.facts["urls"].append(url)
        elif kind is FactKind.COMMAND:
            self.facts["shell"].append(self._shell_fact(value, pointer, inferred))
        else:
            self.facts["sql"].append(self._sql_fact(value, pointer, inferred))

    def _add_path(self, value: Any, pointer: str, access: PathAccess, inferred: bool) -> None:
        from agenttool_otel.readers.paths.fact import path_fact

        if self._bases is not None:
            value = self._bases.place(value)
            # a key of a store, which is no file
            if value is None:
                return
        path = path_fact(
            value,
            argument=pointer,
            access=access.value,
            surroundings=self._env,
            inferred=inferred,
        )
        self.facts["paths"].append(path)

    def _shell_fact(self, value: Any, pointer: str, inferred: bool) -> ShellFact:
        try:
            from agenttool_otel.readers.shell import shell_fact

            return shell_fact(
                value,
                argument=pointer,
                surroundings=self._env,
                inferred=inferred,
            )
        except Exception:  # a missing grammar, too, must read as "not proven"
            unproven: ShellFact = unread("shell", pointer, inferred=inferred, unparsed="internal")
            return unproven

    def _sql_fact(self, value: Any, pointer: str, inferred: bool) -> SqlFact:
        try:
            from agenttool_otel.readers.sql import sql_fact

            return sql_fact(value, argument=pointer, inferred=inferred)
        except Exception:  # as must a missing sqlglot
            unproven: SqlFact = unread("sql", pointer, inferred=inferred, unparsed="internal")
            return unproven
