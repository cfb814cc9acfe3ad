"""What the other arguments of a call do to its command: a command counts as proven only where every
text beside it is accounted for.

Words that are given beside a command (``args``, ``flags``, ``options``) are read as part of it. Any
other text is accounted for when it is a command, path, SQL or URL by declaration, format or name,
when it is declared inert (``inert_args``), or when it is one of a closed set of words. Numbers and
booleans carry no text. What is guessed from a value alone accounts for nothing: a guess is no
proof.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agenttool_otel.facts.argument_names import (
    FactKind,
    is_command_word,
    names_identity,
    role_of_name,
    tier_of_name,
)
from agenttool_otel.facts.schema_nodes import resolved, types_of
from agenttool_otel.names import ArgumentRole
from agenttool_otel.readers.types import ShellFact
from agenttool_otel.values.pointers import escape_token, unescape_token

_Tokens = tuple[str, ...]
_TEXTLESS: Final = frozenset({"integer", "number", "boolean", "null"})
_MAX_SCHEMA_DEPTH: Final = 6


def words_of_command(siblings: Mapping[str, Any], command: str) -> list[str]:
    """Return the names of the arguments beside a command that are appended to it."""
    return [name for name in siblings if name != command and is_command_word(str(name))]


def joined_commands(pointer: str, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a command and the words that are given beside it as one, by the pointer that each
    reading is the fact of: as an argument list, and as shell text.
    """
    *parents, key = pointer_tokens(pointer) or ("",)
    siblings = _value_at(parents, arguments)
    if not isinstance(siblings, Mapping):
        return []
    command = siblings.get(key)
    if not isinstance(command, str):
        return []
    given = [name for name in words_of_command(siblings, key) if siblings[name]]
    if len(given) != 1:
        return []  # {"args": ["-x"], "flags": ["-y"]}: their order is unknown, so they stay unread
    name = given[0]
    words = _words_given(siblings[name])
    if words is None:
        return []
    place = ["", *parents, name]
    beside = "/".join(map(escape_token, place))
    as_list = f"{command} {shlex.join(words)}"
    as_shell_text = f"{command} {' '.join(words)}"
    return [(pointer, as_list), (beside, as_shell_text)]


def _words_given(value: Any) -> list[str] | None:
    """Return the words of a text or a list, ``None`` of anything else."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)):
        return None
    words: list[str] = []
    for word in value:
        if not isinstance(word, (str, int, float)):
            return None
        words.append(str(word))
    return words


def _value_at(tokens: Sequence[str], arguments: Mapping[str, Any]) -> Any:
    """Return the value at a place, ``None`` where there is none."""
    value: Any = arguments
    for token in tokens:
        if isinstance(value, Mapping):
            value = value.get(token)
        elif isinstance(value, (list, tuple)) and token.isdecimal():
            value = value[int(token)]
        else:
            return None
    return value


def pointer_tokens(name: str) -> tuple[str, ...]:
    """Return keys and list positions of a name, a dotted name or a JSON pointer; ``*`` stands for
    each element.
    """
    if name.startswith("/"):
        return place_of(name)
    # files[].path is files.*.path, and files[0].path is files.0.path
    dotted = name.replace("[]", ".*").replace("[", ".").replace("]", "")
    return tuple(part for part in dotted.split(".") if part)


class TextAccounting:
    """The arguments of one tool whose texts are accounted for; made once, at decoration."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        followed: Sequence[tuple[str, str, bool]],
        inert: Sequence[str],
        *,
        destroys: bool = False,
    ) -> None:
        self._schema = schema
        self._destroys = destroys
        self._inert = [pointer_tokens(name) for name in inert]
        self._commands: list[_Tokens] = []
        self._known = list(self._inert)  # places whose texts are accounted for
        for pointer, kind, _ in followed:
            tokens = place_of(pointer)
            self._known.append(tokens)
            if kind == FactKind.COMMAND:
                self._commands.append(tokens)
        listed = dict(_listed_arguments(schema, schema, (), 0))
        self._names = set(listed)  # places that the schema lists
        # the words of those that take listed words alone
        self._closed: dict[_Tokens, frozenset[str]] = {}
        for tokens, words in listed.items():
            if words is not None:
                self._closed[tokens] = words

    def unread_arguments(self) -> list[str]:
        """Return the arguments beside a command that may carry a text which nothing
        accounts for.
        """
        if not self._commands:
            return []
        properties = self._schema.get("properties")
        if not isinstance(properties, Mapping):
            return []
        words: set[str] = set()
        for tokens in self._commands:
            words.update(words_of_command(properties, tokens[-1]))
        unread: list[str] = []
        for name, node in properties.items():
            if name in words or self._is_accounted(name):
                continue
            if _may_carry_text(node, self._schema, 0):
                unread.append(name)
        return unread

    def _is_accounted(self, name: str) -> bool:
        """Return whether an argument is known as a whole, or takes listed words alone."""
        if (name,) in self._closed or (name, "*") in self._closed:
            return True
        return any(known[0] in (name, "*") for known in self._known if known)

    def is_listed_word(self, pointer: str, value: Any) -> bool:
        """Return whether a value is a word that the schema lists there: the developer wrote it."""
        return bool(self._closed) and self._is_closed_word(place_of(pointer), value)

    def _is_closed_word(self, tokens: _Tokens, value: Any) -> bool:
        if not isinstance(value, str):
            return False
        patterns = [pattern for pattern, words in self._closed.items() if value in words]
        return any(_matches(pattern, tokens) for pattern in patterns)

    def is_inert(self, pointer: str) -> bool:
        """Return whether a value is declared inert: it decides nothing."""
        if not self._inert:
            return False
        tokens = place_of(pointer)
        return any(covers(pattern, tokens) for pattern in self._inert)

    def role(self, pointer: str, name: str) -> ArgumentRole:
        """Return what a value does in a call, by the declaration or else by its name."""
        if self.is_inert(pointer):
            return ArgumentRole.CONTENT
        if self._destroys and tier_of_name(name) == 0:
            return ArgumentRole.TARGET  # delete_note(title=...): the title is no content
        return role_of_name(name)

    def tier(self, pointer: str, name: str, value: Any) -> int:
        """Return when a value becomes a target for lack of any (``tier_of_name``)."""
        if self.is_listed_word(pointer, value):
            return 1
        return tier_of_name(name)

    def is_chosen_key(self, pointer: str, name: str, key: str) -> bool:
        """Return whether a key is a value rather than a field's name: an address, or a member of
        ``users``.
        """
        if self._is_listed(place_of(pointer), []):
            return False
        return not key.isidentifier() or names_identity(name)

    def withhold_proof(self, arguments: Mapping[str, Any], commands: Sequence[ShellFact]) -> None:
        """Let no command count as proven where a text beside it is not accounted for."""
        if not commands or not self._has_unread(arguments, commands):
            return
        for fact in commands:
            fact["parsed"] = False
            fact["unparsed"] = "other_arguments"
            fact["read_only"] = fact["complete"] = False
            fact["writes"] = fact["executes"] = fact["network"] = True

    def _has_unread(self, arguments: Mapping[str, Any], commands: Sequence[ShellFact]) -> bool:
        # words that are given beside a command are read as part of it: its fact names them
        known = list(self._known)
        for fact in commands:
            if fact["argument"]:
                known.append(place_of(fact["argument"]))
        stack: list[tuple[_Tokens, Any]] = [((), arguments)]
        while stack:
            tokens, value = stack.pop()
            if _is_textless(value) or _is_covered(tokens, known):
                continue
            children = _children(tokens, value)
            if children is None:
                if not self._is_closed_word(tokens, value):
                    return True
                continue
            if tokens and isinstance(value, Mapping) and self._has_unlisted(children, known):
                return True
            stack += children
        return False

    def _has_unlisted(
        self,
        members: list[tuple[_Tokens, Any]],
        known: Sequence[_Tokens],
    ) -> bool:
        """Return whether an object has a key that no schema lists: such a key is a text, too."""
        return not all(self._is_listed(place, known) for place, _ in members)

    def _is_listed(self, place: _Tokens, known: Sequence[_Tokens]) -> bool:
        """Return whether a key is in the schema, or lies in what is accounted for."""
        if any(_matches(name, place) for name in self._names):
            return True
        return _is_covered(place, known)


def _is_textless(value: Any) -> bool:
    return value is None or value == "" or isinstance(value, (bool, int, float))


def _children(tokens: _Tokens, value: Any) -> list[tuple[_Tokens, Any]] | None:
    """Return what lies in an object or a list, by its place; ``None`` for a plain value."""
    children: list[tuple[_Tokens, Any]] = []
    if isinstance(value, Mapping):
        for key, child in value.items():
            children.append(((*tokens, str(key)), child))
        return children
    if isinstance(value, (list, tuple)):
        for index, child in enumerate(value):
            children.append(((*tokens, str(index)), child))
        return children
    return None


def place_of(pointer: str) -> tuple[str, ...]:
    """Return the keys and positions that a JSON pointer leads through."""
    tokens = pointer.split("/")[1:]
    return tuple(map(unescape_token, tokens))


def _is_covered(tokens: _Tokens, patterns: Sequence[_Tokens]) -> bool:
    return any(covers(pattern, tokens) for pattern in patterns)


def covers(pattern: _Tokens, tokens: _Tokens) -> bool:
    """Return whether a place is what a pattern names or below it; positions in a list need
    not be named: ``files/path`` covers ``files/0/path``.
    """
    if not pattern or not tokens:
        return not pattern
    if pattern[0] in ("*", tokens[0]) and covers(pattern[1:], tokens[1:]):
        return True
    return tokens[0].isdecimal() and covers(pattern, tokens[1:])


def _matches(pattern: _Tokens, tokens: _Tokens) -> bool:
    """Return whether a place is just what a pattern names."""
    if len(pattern) != len(tokens):
        return False
    pairs = zip(pattern, tokens, strict=True)
    return all(wanted in ("*", token) for wanted, token in pairs)


def _forms(node: Any, schema: Mapping[str, Any], depth: int) -> list[Mapping[str, Any]]:
    """Return the forms that a schema node allows; an unreadable one is ``{}``, which allows
    anything.
    """
    if not isinstance(node, Mapping) or depth > _MAX_SCHEMA_DEPTH:
        return [{}]
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _forms(resolved(schema, reference), schema, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        branches = node.get(keyword)
        if not isinstance(branches, list):
            continue
        forms: list[Mapping[str, Any]] = []
        for branch in branches:
            forms += _forms(branch, schema, depth + 1)
        return forms
    parts = node.get("allOf")
    if isinstance(parts, list) and len(parts) == 1:
        return _forms(parts[0], schema, depth + 1)
    return [node]


def _listed_values(form: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that a form takes, where it lists them all."""
    values = form.get("enum")
    if isinstance(values, list):
        return values
    if "const" in form:
        return [form["const"]]
    return None


def _may_carry_text(node: Any, schema: Mapping[str, Any], depth: int) -> bool:
    for form in _forms(node, schema, depth):
        is_list = types_of(form) == {"array"} and _has_items(form)
        if is_list and depth < _MAX_SCHEMA_DEPTH:
            if _may_carry_text(form["items"], schema, depth + 1):
                return True
        elif _listed_values(form) is None and not _has_textless_type(form):
            return True
    return False


def _has_textless_type(form: Mapping[str, Any]) -> bool:
    """Return whether a form takes numbers, booleans and null alone."""
    types = types_of(form)
    return bool(types) and types <= _TEXTLESS


def _has_items(form: Mapping[str, Any]) -> bool:
    """Return whether one schema stands for every element of a list."""
    return "items" in form and "prefixItems" not in form


def _listed_arguments(
    node: Any,
    schema: Mapping[str, Any],
    tokens: _Tokens,
    depth: int,
) -> Iterator[tuple[_Tokens, frozenset[str] | None]]:
    """Find the arguments that a schema lists, each with its words where it may have these alone."""
    forms: list[Mapping[str, Any]] = []
    for form in _forms(node, schema, depth):
        if not _has_textless_type(form):
            forms.append(form)
    words = _words_of_all(forms)
    yield tokens, words
    if words is not None or len(forms) != 1 or depth > _MAX_SCHEMA_DEPTH:
        return
    properties = forms[0].get("properties")
    if isinstance(properties, Mapping):
        for name, child in properties.items():
            yield from _listed_arguments(child, schema, (*tokens, name), depth + 1)
    if _has_items(forms[0]):
        yield from _listed_arguments(forms[0]["items"], schema, (*tokens, "*"), depth + 1)


def _words_of_all(forms: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """Return the words of several forms, ``None`` where one of them may have others."""
    if not forms:
        return None
    found: set[str] = set()
    for form in forms:
        values = _listed_values(form)
        if values is None:
            return None
        found.update(value for value in values if isinstance(value, str))
    return frozenset(found)
