"""Which arguments of a tool are paths, URLs, commands and SQL: settled once, at decoration, and
used at every call.

The declaration counts most, then the schema's formats, then the arguments' names; a fact from a
guess is ``inferred``. Lists and nested values are followed, and so is data whose keys no schema
lists. In tools that use files or the network, the remaining texts are looked at when it is called
(``guesses.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.accounting import TextAccounting, joined_commands, pointer_tokens
from agenttool_otel.facts.argument_names import FactKind, is_about_sql, names_content
from agenttool_otel.facts.collect import MAX_DEPTH, Collector
from agenttool_otel.facts.guesses import kind_of_value, starts_like_path
from agenttool_otel.facts.path_base import PathBases
from agenttool_otel.facts.schema_nodes import (
    ABSENT,
    FREE,
    Effects,
    Node,
    accepts,
    compile_schema,
    is_nullable,
    is_useful,
)
from agenttool_otel.facts.sources import StatedSources, read_sources
from agenttool_otel.facts.types import EMPTY_FACTS, FactEnvironment, Facts
from agenttool_otel.names import PathAccess
from agenttool_otel.values.pointers import escape_token


class PlannedArgument(NamedTuple):
    """One argument of the declaration that is followed."""

    tokens: tuple[str, ...]  # keys and list positions from the top; ``*`` for each element
    kind: FactKind  # what it is
    access: PathAccess  # what is done with it, when it is a path
    # the schema's default, which the function uses when the argument is left out
    default: Any = ABSENT
    nullable: bool = False  # whether ``None`` stands for no value


class FactPlan:
    """How the arguments of one tool become facts; made by ``plan_facts``, immutable, safe
    to share.
    """

    __slots__ = (
        "_bases",
        "_declared",
        "_effects",
        "_family",
        "_probing",
        "_root",
        "_sending",
        "_sources",
        "_texts",
        "_tool",
    )

    def __init__(
        self,
        declared: tuple[PlannedArgument, ...],
        root: Node | None,
        effects: Effects,
        *,
        schema: Mapping[str, Any],
        inert: Sequence[str],
        family: str = "",
        tool: str = "",
        destroys: bool = False,
        sources: StatedSources | None = None,
        bases: PathBases | None = None,
    ) -> None:
        self._bases = bases
        self._sources = sources
        self._family = family
        self._tool = tool
        self._declared = declared
        self._root = root
        self._effects = effects
        self._probing = effects.files or effects.network
        self._sending = effects.sending
        self._texts = TextAccounting(schema, self.describe(), inert, destroys=destroys)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{pointer}: {kind}" for pointer, kind, _ in self.describe())
        return f"<FactPlan {kinds}>"

    def describe(self) -> list[tuple[str, str, bool]]:
        """Return what is followed, for people: pattern of the pointer, kind, and whether it was
        inferred.
        """
        found: list[tuple[str, str, bool]] = []
        for entry in self._declared:
            found.append(("/" + "/".join(entry.tokens), entry.kind.value, False))
        for pointer, node in self._places():
            if node.kind is not None:
                found.append((pointer, node.kind.value, True))
        return sorted(dict.fromkeys(found))

    def _places(self) -> Iterator[tuple[str, Node]]:
        """Return the nodes of the schema, each once, with the pattern of its pointer."""
        stack: list[tuple[str, Node]] = []
        if self._root is not None:
            stack.append(("", self._root))
        seen: set[int] = set()
        while stack:
            pointer, node = stack.pop()
            if id(node) in seen:
                continue  # a recursive schema: a folder of folders
            seen.add(id(node))
            yield pointer, node
            stack += node.places(pointer)

    @property
    def source_tools(self) -> list[str]:
        """Return the globs of the tools that its arguments may come from."""
        return [] if self._sources is None else self._sources.tools

    def unread_arguments(self) -> list[str]:
        """Return the arguments beside a command whose texts nothing accounts for."""
        return self._texts.unread_arguments()

    def establish(
        self,
        arguments: Mapping[str, Any],
        env: FactEnvironment,
        misfits: Collection[str] = (),
    ) -> Facts:
        """Return the facts of one call; never raises, and takes bounded time on any arguments.

        Args:
            arguments: the arguments.
            env: the call's surroundings.
            misfits: those whose values are not as the schema describes them.
        """
        collector = Collector(env, self._bases)
        try:
            self._collect(arguments, collector)
            for name in misfits:
                self._walk_misfit(name, arguments, collector)
        except Exception:  # what could not be followed must look dangerous, not stop the decision
            collector.give_up("")
        facts = collector.facts
        if env.ledger is not None or self._sources is not None:
            try:
                collector.trace(
                    arguments,
                    everything=self._sending,
                    family=self._family,
                    tool=self._tool,
                    texts=self._texts,
                    sources=self._sources,
                )
            except Exception:
                from agenttool_otel.facts.provenance import UNREADABLE

                facts["provenance"][""] = UNREADABLE
                facts["traced"] = facts["aimed"] = False
        return EMPTY_FACTS if facts == EMPTY_FACTS else facts

    def _collect(self, arguments: Mapping[str, Any], collector: Collector) -> None:
        for entry in self._declared:
            self._follow(entry, entry.tokens, arguments, "", collector)
        if self._declared:
            collector.close_declared()
        if self._root is not None:
            self._walk(self._root, arguments, "", collector, 0)
        if collector.facts["shell"]:
            for pointer in [fact["argument"] for fact in collector.facts["shell"]]:
                for place, text in joined_commands(pointer, arguments):
                    collector.replace_command(place, text)
            self._texts.withhold_proof(arguments, collector.facts["shell"])

    def _walk_misfit(
        self,
        name: str,
        arguments: Mapping[str, Any],
        collector: Collector,
    ) -> None:
        """Look at an argument as at data of no schema; a text that can't be seen may name
        anything.
        """
        if name not in arguments:
            return
        pointer, value = f"/{escape_token(name)}", arguments[name]
        node = self._named(name)
        self._walk(node, value, pointer, collector, 0)
        if node.probe and _is_hidden(value):
            collector.give_up(pointer)

    def _follow(
        self,
        entry: PlannedArgument,
        tokens: tuple[str, ...],
        value: Any,
        pointer: str,
        collector: Collector,
    ) -> None:
        """Find the values of a declared argument below a value."""
        if not tokens:
            if value is not None or not entry.nullable:
                collector.add(entry.kind, value, pointer, entry.access, inferred=False)
            return
        if isinstance(value, Mapping):
            self._follow_key(entry, tokens, value, pointer, collector)
        elif _is_list(value):
            self._follow_list(entry, tokens, value, pointer, collector)
        elif value is not None:
            # Where the declaration expects an object or a list there is something else: not
            # skipped, but noted.
            collector.add(entry.kind, ABSENT, pointer, entry.access, inferred=False)

    def _follow_key(
        self,
        entry: PlannedArgument,
        tokens: tuple[str, ...],
        value: Mapping[Any, Any],
        pointer: str,
        collector: Collector,
    ) -> None:
        key, *rest = tokens
        if key == "*":
            for name, child in value.items():
                place = f"{pointer}/{escape_token(str(name))}"
                self._follow(entry, tuple(rest), child, place, collector)
            return
        place = f"{pointer}/{escape_token(key)}"
        if key in value:
            self._follow(entry, tuple(rest), value[key], place, collector)
        elif not rest and entry.default is not ABSENT and entry.default is not None:
            collector.add(entry.kind, entry.default, place, entry.access, inferred=False)

    def _follow_list(
        self,
        entry: PlannedArgument,
        tokens: tuple[str, ...],
        value: Any,
        pointer: str,
        collector: Collector,
    ) -> None:
        key = tokens[0]
        chosen = list(enumerate(value))
        if key.isdecimal() and key.isascii():
            tokens = tokens[1:]
            # a position of thousands of digits, which no list has, may not be converted
            index = int(key) if len(key) < 10 else len(chosen)
            chosen = chosen[index : index + 1]
        elif key == "*":
            tokens = tokens[1:]
        for index, child in chosen:
            place = f"{pointer}/{index}"
            if collector.full:
                collector.add(entry.kind, None, place, entry.access, inferred=False)
                return
            self._follow(entry, tokens, child, place, collector)

    def _walk(
        self,
        node: Node,
        value: Any,
        pointer: str,
        collector: Collector,
        depth: int,
    ) -> None:
        """Find the values whose kind the schema or a name determines."""
        if depth > MAX_DEPTH or not collector.step():
            collector.give_up(pointer)
            return
        if value is None and node.nullable:
            return
        if node.kind is not None:
            collector.add(node.kind, value, pointer, node.access, inferred=True)
        elif node.probe and isinstance(value, str):
            self._probe(value, pointer, node, collector)
        if node.variants:
            self._walk_variants(node, value, pointer, collector, depth)
        if type(value) in _LEAVES:
            return  # asking an abstract class about it costs more than all before
        if isinstance(value, Mapping):
            self._walk_mapping(node, value, pointer, collector, depth)
        elif node.kind is None and _is_list(value):
            self._walk_list(node, value, pointer, collector, depth)

    def _walk_variants(
        self,
        node: Node,
        value: Any,
        pointer: str,
        collector: Collector,
        depth: int,
    ) -> None:
        """Walk along the variants that take a value, or all where none does."""
        fitting = [variant for variant in node.variants if accepts(variant, value)]
        for variant in fitting or node.variants:
            self._walk(variant, value, pointer, collector, depth + 1)

    def _walk_list(
        self,
        node: Node,
        value: Any,
        pointer: str,
        collector: Collector,
        depth: int,
    ) -> None:
        unlisted = _PROBED if node.probe else FREE
        for index, child in enumerate(value):
            below = node.prefix[index] if index < len(node.prefix) else node.items
            place = f"{pointer}/{index}"
            is_container = isinstance(child, Mapping) or _is_list(child)
            if below is not None:
                self._walk(below, child, place, collector, depth + 1)
            elif node.free and (is_container or node.probe):
                self._walk(unlisted, child, place, collector, depth + 1)
            if collector.full:
                return

    def _walk_mapping(
        self,
        node: Node,
        value: Mapping[Any, Any],
        pointer: str,
        collector: Collector,
        depth: int,
    ) -> None:
        for name, child in node.properties.items():
            below = value.get(name, child.default)
            if name not in value and (below is ABSENT or below is None):
                continue
            token = name if name.isidentifier() else escape_token(name)
            self._walk(child, below, f"{pointer}/{token}", collector, depth + 1)
        if node.others is not None or node.free:
            self._walk_others(node, value, pointer, collector, depth)

    def _walk_others(
        self,
        node: Node,
        value: Mapping[Any, Any],
        pointer: str,
        collector: Collector,
        depth: int,
    ) -> None:
        """Walk along the keys that the schema does not list."""
        for key, below in value.items():
            if key in node.properties:
                continue
            place = f"{pointer}/{escape_token(str(key))}"
            if node.others is not None:
                self._walk(node.others, below, place, collector, depth + 1)
            if node.free:
                self._walk(self._named(str(key)), below, place, collector, depth + 1)

    def _probe(
        self,
        value: str,
        pointer: str,
        node: Node,
        collector: Collector,
    ) -> None:
        """Take a text for what it looks like."""
        text = str.__str__(value)
        access = node.access
        if node.placed and starts_like_path(text):
            collector.add(FactKind.PATH, text, pointer, access, inferred=True)
            return
        guess = kind_of_value(
            text,
            files=self._effects.files,
            network=self._effects.network,
            env=collector.env,
        )
        if guess is not None:
            collector.add(guess[0], guess[1], pointer, access, inferred=True)

    def _named(self, name: str) -> Node:
        """Return the node of an argument or key that no schema describes."""
        kind = self._effects.kind(name)
        placed = self._effects.places(name)
        if kind is None and not placed and (not self._probing or names_content(name)):
            return FREE
        access = self._effects.access(name)
        if kind is not None:
            return Node(kind=kind, access=access, nullable=True, free=True)
        return Node(access=access, free=True, probe=True, placed=placed)


_LEAVES: Final = frozenset({str, int, float, bool, type(None)})

_PROBED: Final = Node(free=True, probe=True)
"""Data whose keys no schema lists, in a tool that uses files or the network."""


def _is_hidden(value: Any) -> bool:
    """Return whether a part of a value is shown by its type or as bytes alone."""
    stack = [value]
    while stack:
        found = stack.pop()
        if isinstance(found, Mapping):
            if not found.keys().isdisjoint(("$type", "$bytes")):
                return True
            stack += found.values()
        elif _is_list(found):
            stack += found
    return False


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def plan_facts(
    *,
    schema: Mapping[str, Any],
    path_args: Sequence[str] = (),
    url_args: Sequence[str] = (),
    command_args: Sequence[str] = (),
    sql_args: Sequence[str] = (),
    inert_args: Sequence[str] = (),
    write_effects: Sequence[str] = (),
    access_kinds: Sequence[str] = (),
    read_only: bool = False,
    tool_kind: str = "",
    family: str = "",
    file_access: bool = True,
    tool: str = "",
    destroys: bool = False,
    sources: Mapping[str, Sequence[str]] | None = None,
    path_base: str | Mapping[str, str] | None = None,
) -> FactPlan | None:
    """Return the plan for a tool, or ``None`` when it has no argument that a fact could be about.

    Declared arguments are named as in the schema, or by a dotted name (``files.path``) or JSON
    pointer (``/files/0/path``, ``/files/*/path``) for nested ones; lists are followed without being
    named.

    Args:
        schema: the JSON schema of the arguments.
        path_args: the arguments that are paths.
        url_args: those that are URLs or hosts.
        command_args: those that are command lines.
        sql_args: those that are SQL.
        inert_args: those that decide nothing of what the tool does.
        write_effects: of the declaration, as are the access kinds, read_only and tool_kind.
        access_kinds: what the tool uses.
        read_only: whether it changes nothing.
        tool_kind: what the tool is.
        family: the tools within which an id means the same.
        file_access: whether the tool may open files; in another only a text that starts like a
            path is taken for one.
        tool: the tool's name.
        destroys: whether the tool may delete, so that a title names what is deleted.
        sources: where the value of an argument may come from: ``user``, ``counterparties``, and
            globs of tools, by the argument's name.
        path_base: the directory that the tool's own paths begin at, or directories by their
            beginnings; ``nowhere`` for paths that name no file.

    Raises:
        ConfigurationError: a declared or inert argument is not in the schema, or a source or a
            directory can't be one.
    """
    effects = Effects(
        tuple(map(str, write_effects)),
        tuple(map(str, access_kinds)),
        read_only,
        bool(sql_args) or is_about_sql(schema),
        tool_kind,
        file_access,
    )
    declared = tuple(
        _declared(name, kind, schema, effects)
        for kind, names in (
            (FactKind.PATH, path_args),
            (FactKind.URL, url_args),
            (FactKind.COMMAND, command_args),
            (FactKind.SQL, sql_args),
        )
        for name in names
    )
    _check_named("inert_args", inert_args, schema)
    _check_named("sources", sources or (), schema)
    stated = read_sources(sources or {}, family)
    root: Node | None = compile_schema(schema, effects)
    if root is not None and not is_useful(root):
        root = None
    if not declared and root is None and not effects.sending and stated is None:
        return None
    return FactPlan(
        declared,
        root,
        effects,
        schema=schema,
        inert=inert_args,
        family=family,
        tool=tool,
        destroys=destroys,
        sources=stated,
        bases=None if path_base is None else PathBases(path_base),
    )


def _check_named(option: str, names: Iterable[str], schema: Mapping[str, Any]) -> None:
    """Check that the arguments that an option names exist."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or _may_have_others(schema):
        return
    for name in names:
        tokens = pointer_tokens(name)
        if not tokens or (tokens[0] not in properties and tokens[0] != "*"):
            raise ConfigurationError(
                f"{option}: the tool has no argument {name!r}; it has {', '.join(properties)}"
            )


def _may_have_others(schema: Mapping[str, Any]) -> bool:
    """Return whether arguments may be given that a schema does not list."""
    return schema.get("additionalProperties") not in (None, False)


def _declared(
    name: str,
    kind: FactKind,
    schema: Mapping[str, Any],
    effects: Effects,
) -> PlannedArgument:
    properties = schema.get("properties")
    known: Mapping[str, Any] = {}
    if isinstance(properties, Mapping):
        known = properties
    tokens = (name,) if name in known else pointer_tokens(name)
    if not tokens or not all(tokens):
        raise ConfigurationError(f"{kind.value}_args: {name!r} names no argument")
    argument = tokens[0]
    entry = known.get(argument)
    if entry is None and known and argument != "*" and not _may_have_others(schema):
        raise ConfigurationError(f"{kind.value}_args: the tool has no argument {argument!r}")
    access = effects.access(_last_name(tokens))
    if len(tokens) > 1:
        return PlannedArgument(tokens, kind, access, nullable=True)
    top = entry if isinstance(entry, Mapping) else {}
    return PlannedArgument(
        tokens,
        kind,
        access,
        default=top.get("default", ABSENT),
        nullable=is_nullable(top),
    )


def _last_name(tokens: Sequence[str]) -> str:
    """Return the name that a value stands under: ``path`` of ``files/*/path``."""
    for key in reversed(tokens):
        if key != "*" and not key.isdecimal():
            return key
    return tokens[0]
