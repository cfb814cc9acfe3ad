"""What the other arguments of a call do to its command: a command is only proven where every text
beside it is known.

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
    if not isinstance(siblings, Mapping) or not isinstance(siblings.get(key), str):
        return []
    given = [name for name in words_of_command(siblings, key) if siblings[name]]
    if len(given) != 1:
        return []  # in which order several are appended is not known: they stay unread
    words = siblings[given[0]]
    if isinstance(words, str):
        words = [words]
    if not isinstance(words, (list, tuple)):
        return []
    if not all(isinstance(word, (str, int, float)) for word in words):
        return []
    command = siblings[key]
    texts = [str(word) for word in words]
    beside = "/".join(escape_token(token) for token in ("", *parents, given[0]))
    return [
        (pointer, f"{command} {shlex.join(texts)}"),
        (beside, f"{command} {' '.join(texts)}"),
    ]


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
        return _tokens(name)
    return tuple(
        part
        for part in name.replace("[]", ".*").replace("[", ".").replace("]", "").split(".")
        if part
    )


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
        self._commands = [_tokens(pointer) for pointer, kind, _ in followed if kind == "command"]
        self._inert = [pointer_tokens(name) for name in inert]
        self._known = [_tokens(pointer) for pointer, _, _ in followed] + self._inert
        listed = dict(_listed_arguments(schema, schema, (), 0))
        self._names = set(listed)
        self._closed = {tokens: words for tokens, words in listed.items() if words is not None}

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
        """Return whether a value is one of the words that the schema lists there: the developer
        wrote it.
        """
        if not self._closed or not isinstance(value, str):
            return False
        return self._is_closed_word(_tokens(pointer), value)

    def _is_closed_word(self, tokens: _Tokens, value: str) -> bool:
        patterns = [pattern for pattern, words in self._closed.items() if value in words]
        return any(_is(pattern, tokens) for pattern in patterns)

    def is_inert(self, pointer: str) -> bool:
        """Return whether the declaration says that a value decides nothing."""
        if not self._inert:
            return False
        tokens = _tokens(pointer)
        return any(_covers(pattern, tokens) for pattern in self._inert)

    def role(self, pointer: str, name: str) -> ArgumentRole:
        """Return what a value does in a call, as the declaration or else its name tells."""
        if self.is_inert(pointer):
            return ArgumentRole.CONTENT
        if self._destroys and tier_of_name(name) == 0:
            return ArgumentRole.TARGET  # what is deleted by its title is not carried
        return role_of_name(name)

    def tier(self, pointer: str, name: str, value: Any) -> int:
        """Return when a value becomes a target for lack of any (``tier_of_name``)."""
        return 1 if self.is_listed_word(pointer, value) else tier_of_name(name)

    def is_chosen_key(self, pointer: str, name: str, key: str) -> bool:
        """Return whether a key is a value rather than a field's name: an address, or a member of
        ``users``.
        """
        if self._is_listed(_tokens(pointer), []):
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
        known += [_tokens(fact["argument"]) for fact in commands if fact["argument"]]
        stack: list[tuple[_Tokens, Any]] = [((), arguments)]
        while stack:
            tokens, value = stack.pop()
            if _is_textless(value):
                continue
            if tokens and any(_covers(pattern, tokens) for pattern in known):
                continue
            if isinstance(value, Mapping):
                children = [((*tokens, str(key)), child) for key, child in value.items()]
                if tokens and not all(self._is_listed(place, known) for place, _ in children):
                    return True  # a key that no schema lists is a text, too
                stack += children
            elif isinstance(value, (list, tuple)):
                stack += [((*tokens, str(index)), child) for index, child in enumerate(value)]
            elif not isinstance(value, str) or not self._is_closed_word(tokens, value):
                return True
        return False

    def _is_listed(self, place: _Tokens, known: Sequence[_Tokens]) -> bool:
        if any(_is(name, place) for name in self._names):
            return True
        return any(_covers(pattern, place) for pattern in known)


def _is_textless(value: Any) -> bool:
    return value is None or value == "" or isinstance(value, (bool, int, float))


def _tokens(pointer: str) -> _Tokens:
    return tuple(unescape_token(token) for token in pointer.split("/")[1:])


def _covers(pattern: _Tokens, tokens: _Tokens) -> bool:
    """Tell whether a place is what a pattern names or below it; positions in a list need
    not be named.
    """
    if not pattern or not tokens:
        return not pattern
    if pattern[0] in ("*", tokens[0]) and _covers(pattern[1:], tokens[1:]):
        return True
    return tokens[0].isdecimal() and _covers(pattern, tokens[1:])


def _is(pattern: _Tokens, tokens: _Tokens) -> bool:
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
    if isinstance(node.get("$ref"), str):
        return _forms(resolved(schema, node["$ref"]), schema, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(node.get(keyword), list):
            return [form for branch in node[keyword] for form in _forms(branch, schema, depth + 1)]
    if isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
        return _forms(node["allOf"][0], schema, depth + 1)
    return [node]


def _words(form: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that a form lists, if it lists them all."""
    if isinstance(form.get("enum"), list):
        values: list[Any] = form["enum"]
        return values
    if "const" in form:
        return [form["const"]]
    return None


def _may_carry_text(node: Any, schema: Mapping[str, Any], depth: int) -> bool:
    for form in _forms(node, schema, depth):
        kinds = types_of(form)
        if kinds == {"array"} and _has_items(form) and depth < _MAX_SCHEMA_DEPTH:
            if _may_carry_text(form["items"], schema, depth + 1):
                return True
        elif _words(form) is None and not (kinds and kinds <= _TEXTLESS):
            return True
    return False


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
        if types_of(form) and types_of(form) <= _TEXTLESS:
            continue  # a number carries no text
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
        words = _words(form)
        if words is None:
            return None
        found.update(word for word in words if isinstance(word, str))
    return frozenset(found)
