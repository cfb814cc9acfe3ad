"""Gathers the facts of one call: each value once, the first word about it counting, and only so many in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from agenttool_otel.facts.argument_names import FactKind
from agenttool_otel.facts.types import EMPTY_FACTS, FactEnvironment, Facts, unread
from agenttool_otel.names import PathAccess
from agenttool_otel.values.pointers import escape_token

if TYPE_CHECKING:
    from agenttool_otel.facts.accounting import TextAccounting

MAX_DEPTH: Final = 64
"""Deeper values are not followed; a fact says so."""

MAX_FACTS: Final = 500
"""More values are not looked at; a fact says so."""

_MAX_TRACED: Final = 500
_MAX_STEPS: Final = 100_000


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
        self.facts: Facts = {**EMPTY_FACTS, "paths": [], "urls": [], "shell": [], "sql": [], "provenance": {}}

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
        """Say that all declared arguments are in: from now on, nothing is added to where one of them is."""
        self._declared = frozenset(self._seen)

    def add(self, kind: FactKind, value: Any, pointer: str, access: PathAccess, *, inferred: bool) -> None:
        """Add the facts of one value, or of each element of a list."""
        if isinstance(value, list | tuple | set | frozenset) and not self._is_argv(kind, value, pointer):
            self._mark(kind, pointer)
            for index, element in enumerate(value):
                if self.full:
                    self.give_up(pointer)
                    return
                self._add_one(kind, element, f"{pointer}/{index}", access, inferred=inferred)
            return
        self._add_one(kind, value, pointer, access, inferred=inferred)

    def replace_command(self, pointer: str, text: str) -> None:
        """Put the fact of a command, joined with the words beside it, in place of an argument's own."""
        kept = [fact for fact in self.facts["shell"] if not f"{fact['argument']}/".startswith(f"{pointer}/")]
        inferred = all(fact["inferred"] for fact in self.facts["shell"] if fact not in kept)
        self.facts["shell"] = kept
        self._seen.pop(pointer, None)
        self._declared -= {pointer}
        self._add_one(FactKind.COMMAND, text, pointer, PathAccess.UNKNOWN, inferred=inferred)

    def give_up(self, pointer: str) -> None:
        """Say in facts of every kind that from here on values were not looked at."""
        if self._gave_up:
            return
        self._gave_up = True
        self._count = MAX_FACTS
        found: dict[str, list[Any]] = cast("dict[str, Any]", self.facts)
        for name, kind in (("paths", "path"), ("urls", "url"), ("shell", "shell"), ("sql", "sql")):
            found[name].append(unread(kind, pointer))

    def trace(self, arguments: Mapping[str, Any], *, everything: bool, family: str, texts: TextAccounting) -> None:
        """Add provenance: of all texts and numbers among the arguments, or of those that there is a fact about."""
        from agenttool_otel.facts.paths.fact import path_text_of
        from agenttool_otel.facts.provenance import UNREADABLE

        ledger = self._env.ledger
        if ledger is None or not ledger.speaks:
            return
        found = self.facts["provenance"]
        stack: list[tuple[str, str, Any, int]] = [("", "", arguments, 0)]
        steps = 0
        while stack:
            pointer, name, value, depth = stack.pop()
            steps += 1
            if depth > MAX_DEPTH or len(found) >= _MAX_TRACED or steps > 20 * _MAX_TRACED:
                found[pointer] = {**UNREADABLE, "untrusted": False}
                return
            is_list = isinstance(value, list | tuple | set | frozenset)
            if isinstance(value, Mapping):
                children = ((str(key), child) for key, child in value.items())
                stack += [(f"{pointer}/{escape_token(key)}", key, child, depth + 1) for key, child in children]
            elif is_list and not (isinstance(value, list | tuple) and FactKind.COMMAND in self._seen.get(pointer, ())):
                stack += [(f"{pointer}/{index}", name, child, depth + 1) for index, child in enumerate(value)]
            elif value is None or isinstance(value, bool) or not (everything or pointer in self._seen):
                continue
            elif not texts.is_listed_word(pointer, value):
                text = list(value) if is_list else path_text_of(value)
                role = texts.role(pointer, name)
                found[pointer] = ledger.lookup(value if text is None else text, name=name, family=family, role=role)

    def _is_argv(self, kind: FactKind, value: Any, pointer: str) -> bool:
        """Return whether a list is the words of one command rather than several commands."""
        name = pointer.rpartition("/")[2].lower()
        many = name.endswith("s") and not name.endswith("args")
        return kind is FactKind.COMMAND and isinstance(value, list | tuple) and not many

    def _mark(self, kind: FactKind, pointer: str) -> bool:
        """Note that a value has its fact; return whether it had one of that kind already, or a declared one."""
        kinds = self._seen.setdefault(pointer, set())
        known = kind in kinds or pointer in self._declared
        kinds.add(kind)
        return known

    def _add_one(self, kind: FactKind, value: Any, pointer: str, access: PathAccess, *, inferred: bool) -> None:
        if self._count >= MAX_FACTS:
            self.give_up(pointer)
            return
        if self._mark(kind, pointer):
            return
        self._count += 1
        if kind is FactKind.PATH:
            from agenttool_otel.facts.paths.fact import path_fact

            fact = path_fact(value, argument=pointer, access=access.value, env=self._env, inferred=inferred)
            self.facts["paths"].append(fact)
        elif kind is FactKind.URL:
            from agenttool_otel.facts.urls.fact import url_fact

            self.facts["urls"].append(url_fact(value, argument=pointer, env=self._env, inferred=inferred))
        else:
            self._add_parsed("shell" if kind is FactKind.COMMAND else "sql", value, pointer, inferred)

    def _add_parsed(self, kind: str, value: Any, pointer: str, inferred: bool) -> None:
        found: list[Any] = cast("dict[str, Any]", self.facts)[kind]
        try:
            from agenttool_otel.facts.shell import shell_fact
            from agenttool_otel.facts.sql import sql_fact

            if kind == "sql":
                found.append(sql_fact(value, argument=pointer, inferred=inferred))
            else:
                found.append(shell_fact(value, argument=pointer, env=self._env, inferred=inferred))
        except Exception:  # a missing grammar, too, must read as "not proven"
            found.append(unread(kind, pointer, inferred=inferred, unparsed="internal"))
