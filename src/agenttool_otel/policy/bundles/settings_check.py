"""Checks ``data.agenttool.settings`` before a policy is used: a misspelt setting would silently not
hold.

Rego can't notice it: ``alway_ask`` is merged over the defaults like any other member, and no rule
reads it.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.own_rules import rule_problems
from agenttool_otel.policy.bundles.settings_schema import (
    RULE,
    RULE_GLOB,
    member_place,
    rule_kinds,
    rule_names,
    settings_schema,
)

_logger = logging.getLogger("agenttool_otel.policy")

_Object = Mapping[str, Any]
"""An object of JSON."""

_PLACE: Final = "data.agenttool.settings"
_QUOTED: Final = re.compile(r'"([^"]+)"')
_TOOL_GLOBS: Final = re.compile(r"\.always_allow\[\d+\](\.tools\[\d+\])?$")
_GLOB_OR_FULL: Final = re.compile(r"[.*?\[{]")
_WAIVES: Final = re.compile(r'^[^#\n]*"waives":\s*\[(?P<names>[^\]]*)\]', re.MULTILINE)
_TYPES: Final[Mapping[str, tuple[Any, str]]] = {
    "object": (Mapping, "an object"),
    "array": ((list, tuple), "a list"),
    "string": (str, "a text"),
    "boolean": (bool, "true or false"),
    "number": ((int, float), "a number"),
    "null": (type(None), "null"),
}
"""By JSON type, what a value of it is in Python, and how it is called."""


def check_settings(bundle: Bundle) -> Bundle:
    """Return a bundle whose settings are those that its rules read.

    Raises:
        PolicyLoadError: they are not; the first five problems.
    """
    problems = settings_problems(bundle) or rule_problems(bundle)
    if problems:
        raise PolicyLoadError("; ".join(problems[:5]))
    return bundle


def settings_problems(bundle: Bundle) -> list[str]:
    """Return what is wrong with a bundle's settings, one sentence a problem.

    A bundle whose data has no ``agenttool.defaults.presets`` is not built on the stock rules, so its
    settings may hold anything: the list is empty.
    """
    ours = bundle.data.get("agenttool")
    if not isinstance(ours, Mapping):
        return []
    defaults = ours.get("defaults")
    if not isinstance(defaults, Mapping) or "presets" not in defaults:
        return []
    problems = list(_misplaced(bundle, ours, defaults))
    walk = _Walk(bundle.modules)
    problems += _waived_problems(bundle, walk)
    settings = ours.get("settings")
    if settings is None:
        return problems
    if not isinstance(settings, Mapping):
        return [*problems, f"{_PLACE} has to be an object"]
    problems += walk.problems(settings, walk.schema, _PLACE)
    problems += _presets(settings, defaults)
    if problems:
        # the examples are read by their schema, so only settings that fit it can be tried
        return problems
    return list(_examples(settings))


def _waived_problems(bundle: Bundle, walk: _Walk) -> Iterator[str]:
    """Yield the problems of the rules that an allow rule's own text waives."""
    for file, text in bundle.modules.items():
        for waives in _WAIVES.finditer(text):
            line = text.count("\n", 0, waives.start("names")) + 1
            for name in _QUOTED.findall(waives["names"]):
                yield from walk.answered(name, f"{file}:{line}: waives")


def answer_problems(bundle: Bundle) -> Callable[[str], Iterator[str]]:
    """Return what yields why waiving a rule of a name has no effect."""
    walk = _Walk(bundle.modules)
    return lambda name: walk.answered(name, "waives")


def _examples(settings: _Object) -> Iterator[str]:
    """Yield which listed commands, or their examples, do not match, or match, as they should."""
    yield from _examples_of(settings, _PLACE)
    presets = settings.get("presets") or {}
    for name, preset in presets.items():
        # "presets": {"strict": null} takes a preset away
        yield from _examples_of(preset or {}, f"{_PLACE}.presets.{name}")


def _examples_of(settings: _Object, place: str) -> Iterator[str]:
    shell = settings.get("shell") or {}
    lists = shell.get("commands") or {}
    for kind, entries in lists.items():
        for number, entry in enumerate(entries or ()):
            inner = f"{place}.shell.commands.{kind}[{number}]"
            yield from _problems_of_entry(kind, entry, inner)


def _problems_of_entry(kind: str, entry: Any, place: str) -> Iterator[str]:
    examples: _Object = {}
    words = list(entry)
    if isinstance(entry, Mapping):
        # {"words": ["git", "push"], "match": ["git push -f"]}
        examples = entry
        words = list(entry.get("words", ()))
    yield from _misjudged(kind, words, examples, place)
    if kind in _RESTRICTING:
        matching = examples.get("match") or ()
        yield from _passed_by(words, matching, place)


_RESTRICTING: Final = frozenset({"deny", "ask"})


def _misjudged(kind: str, words: list[str], entry: _Object, place: str) -> Iterator[str]:
    for example in entry.get("match") or ():
        if not _begins(kind, example, words):
            yield f"{place}.match: {example!r} has no command that begins so"
    for example in entry.get("not_match") or ():
        if _begins(kind, example, words):
            yield f"{place}.not_match: {example!r} has a command that begins so"


def _passed_by(words: list[str], examples: Iterable[str], place: str) -> Iterator[str]:
    """Yield behind what a restricted command would run past its entry, so that its user finds the
    hole before a model does.
    """
    if not words:
        return
    for line in _disguised(words, examples):
        if not _begins("deny", line, words):
            yield f"{place}: {line!r} would run past this entry"


def _disguised(words: list[str], examples: Iterable[str]) -> Iterator[str]:
    """Yield lines that run a command behind another one's name or options."""
    # "timeout 1 git push" runs what ["git", "push"] denies
    command = shlex.join(words)
    yield f"timeout 1 {command}"
    for line in examples:
        yield f"timeout 1 {line}"
    program, *rest = words
    if program == "git" and rest and not rest[0].startswith("-"):
        # "git -C . push" is "git push"
        yield shlex.join(["git", "-C", ".", *rest])


def _begins(kind: str, line: str, words: list[str]) -> bool:
    """Return whether a command of a line begins with words, as the rules of the list read it."""
    from agenttool_otel.facts.types import FactEnvironment
    from agenttool_otel.readers.shell import shell_fact

    environment = FactEnvironment(cwd="/", read_file_system=False)
    fact = shell_fact(line, argument="", surroundings=environment)
    for command in fact["commands"]:
        if kind in _RESTRICTING:
            readings = command["spellings"]
        elif command["assignments"]:
            # "LD_PRELOAD=x.so git status" is not the "git status" of an allow list
            readings = [[], command["plain"]]
        else:
            readings = [[command["name"], *command["argv"][1:]], command["plain"]]
        for reading in readings:
            if reading[: len(words)] == words:
                return True
    return False


def _misplaced(bundle: Bundle, ours: _Object, defaults: _Object) -> Iterator[str]:
    """Yield the members of the data that lie where no rule reads them."""
    members = {*defaults, "settings"}
    yield from _misplaced_beside(bundle, members)
    known = {"defaults", "settings", "custom"}
    for text in bundle.modules.values():
        known.update(_PACKAGE.findall(text))
    for name in ours:
        if name in known or _read(bundle, f"data.agenttool.{name}"):
            continue
        if name in members:
            hint = f": it belongs into {_PLACE}.{name}"
        else:
            hint = did_you_mean(name, known)
        yield f"data.agenttool.{name} is read by no rule{hint}"


def _misplaced_beside(bundle: Bundle, members: Collection[str]) -> Iterator[str]:
    """Yield what lies beside ``data.agenttool`` and belongs into it."""
    for name in bundle.data:
        if name == "agenttool" or _read(bundle, f"data.{name}"):
            continue
        unread = f"data.{name} is read by no rule"
        near = did_you_mean(name, ["agenttool"], cutoff=0.8)
        if name == "settings":
            yield f"{unread}: it belongs into {_PLACE}"
        elif name in members:
            yield f"{unread}: it belongs into {_PLACE}.{name}"
        elif near:
            yield f"{unread}{near}"


_PACKAGE: Final = re.compile(r"^package\s+agenttool\.(\w+)", re.MULTILINE)


def _read(bundle: Bundle, path: str) -> bool:
    pattern = re.compile(rf"\b{re.escape(path)}\b")
    return any(pattern.search(text) for text in bundle.modules.values())


def presets_of(bundle: Bundle) -> dict[str, Any]:
    """Return the presets of a bundle and of its settings by name; ``None`` where one was
    taken away.
    """
    presets: dict[str, Any] = {}
    ours = bundle.data.get("agenttool")
    if not isinstance(ours, Mapping):
        return presets
    for part in (ours.get("defaults"), ours.get("settings")):
        named = part.get("presets") if isinstance(part, Mapping) else None
        if isinstance(named, Mapping):
            presets.update(named)
    return presets


def _presets(settings: _Object, defaults: _Object) -> Iterator[str]:
    """Yield each choice of a preset that there is not."""
    presets = dict(defaults["presets"])
    own = settings.get("presets")
    if isinstance(own, Mapping):
        presets.update(own)
    known = sorted(name for name, preset in presets.items() if preset is not None)
    preset = settings.get("preset", defaults.get("preset"))
    yield from _unknown_preset(preset, known, f"{_PLACE}.preset")
    modes = settings.get("modes")
    if isinstance(modes, Mapping):
        for mode, name in modes.items():
            yield from _unknown_preset(name, known, f"{_PLACE}.modes.{mode}")


def _unknown_preset(name: Any, known: Sequence[str], place: str) -> Iterator[str]:
    if isinstance(name, str) and name not in known:
        hint = did_you_mean(name, known)
        choices = ", ".join(known)
        yield f"{place} can't be {name!r}{hint}; it is one of {choices}"


class _Walk:
    """Follows a value and its schema, in the few words of JSON Schema that ``settings_schema`` uses."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.rules = rule_names(modules)
        self.kinds = rule_kinds(modules)
        self.schema = settings_schema(self.rules)

    def problems(self, value: Any, schema: _Object, place: str) -> Iterator[str]:
        """Yield what does not fit.

        Args:
            value: a part of the settings.
            schema: the schema of that part.
            place: where the part is, as the message names it: ``data.agenttool.settings.shell``.
        """
        _warn_of_bare_name(value, place)
        reference = schema.get("$ref")
        if reference is not None:
            yield from self._referred(value, reference, place)
        elif "anyOf" in schema:
            yield from self._any_of(value, schema["anyOf"], place)
        elif "enum" in schema:
            yield from _not_among(value, schema["enum"], place)
        elif not _fits(value, schema):
            yield f"{place} has to be {_type_name(schema)}, not {_kind(value)}"
        elif isinstance(value, Mapping):
            yield from self._members(value, schema, place)
        elif isinstance(value, (list, tuple)):
            items = schema.get("items", {})
            for number, entry in enumerate(value):
                yield from self.problems(entry, items, f"{place}[{number}]")

    def _referred(self, value: Any, reference: str, place: str) -> Iterator[str]:
        """Yield what does not fit a definition such as ``#/$defs/rule``."""
        if reference == RULE_GLOB:
            yield from self._glob(value, place)
        elif reference != RULE:
            name = reference.rpartition("/")[2]
            definition = self.schema["$defs"][name]
            yield from self.problems(value, definition, place)
        elif ".waives[" in place:
            yield from self.answered(value, place)
        else:
            yield from self._rule(value, place)

    def _any_of(self, value: Any, branches: Sequence[_Object], place: str) -> Iterator[str]:
        for branch in branches:
            if _fits(value, branch):
                # the branch of the value's own type names best what is wrong
                yield from self.problems(value, branch, place)
                return
        kinds = " or ".join(_type_name(branch) for branch in branches)
        yield f"{place} has to be {kinds}, not {_kind(value)}"

    def _members(self, value: _Object, schema: _Object, place: str) -> Iterator[str]:
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place} lacks {name}"
        for name, entry in value.items():
            inner = member_place(place, name)
            if place.endswith(".effects") and entry == "allow":
                yield from self.answered(name, inner)
            elif "propertyNames" in schema:
                yield from self.problems(name, schema["propertyNames"], inner)
            yield from self._member(name, entry, schema, inner)

    def _member(self, name: str, entry: Any, schema: _Object, place: str) -> Iterator[str]:
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        if name in known:
            yield from self.problems(entry, known[name], place)
        elif others is False:
            hint = _removed(place) or did_you_mean(name, known)
            if not hint:
                choices = ", ".join(sorted(known))
                hint = f"; it is one of {choices}"
            yield f"{place}: there is no such setting{hint}"
        elif isinstance(others, Mapping):
            yield from self.problems(entry, others, place)

    def answered(self, name: Any, place: str) -> Iterator[str]:
        """Yield why naming a rule as answered has no effect."""
        yield from self._rule(name, place)
        text = str(name)
        kinds = self.kinds.get(text, {"ask"})
        if text.endswith((".unproven", ".uncertain")):
            yield f"{place}: only a person can answer {name!r}"
        elif kinds == {"deny"}:
            yield f"{place}: {name!r} only denies, and a denial can't be softened"
        elif kinds <= {"allow", "allowed", "remembered"}:
            yield f"{place}: {name!r} is no question"

    def _rule(self, name: Any, place: str) -> Iterator[str]:
        if not isinstance(name, str):
            yield f"{place} has to be the name of a rule, not {_kind(name)}"
            return
        if name in self.rules or name.startswith("agenttool.custom."):
            return
        if name.startswith("agenttool."):
            yield f"{place}: there is no rule {name!r}{did_you_mean(name, self.rules)}"
            return
        # a rule of one's own may put its name together, so an unknown name alone is no error
        near = did_you_mean(name, self.rules, cutoff=0.9)
        if near:
            yield f"{place}: there is no rule {name!r}{near}"

    def _glob(self, pattern: Any, place: str) -> Iterator[str]:
        if not isinstance(pattern, str):
            yield f"{place} has to be a glob of rules, not {_kind(pattern)}"
            return
        if not pattern.startswith("agenttool.rules."):
            return
        found = [rule for rule in self.rules if fnmatchcase(rule, pattern)]
        if not found:
            hint = did_you_mean(pattern, self.rules)
            yield f"{place}: {pattern!r} is the name of no rule{hint}"
        elif all(any(self.answered(rule, place)) for rule in found):
            yield from self.answered(found[0], place)


_REMOVED: Final = {
    ".shell.sandboxes": (
        " any more: what a tool states of a sandbox counts for nothing. Where this host can hold"
        " commands, sandbox.answers has the questions that need nobody (docs/enforcement.md)"
    ),
}
"""Settings of earlier versions, by how their place ends, and what there is instead."""


def _removed(place: str) -> str:
    for ending, instead in _REMOVED.items():
        if place.endswith(ending):
            return instead
    return ""


def _warn_of_bare_name(value: Any, place: str) -> None:
    if not isinstance(value, str) or not _TOOL_GLOBS.search(place):
        return
    if not _GLOB_OR_FULL.search(value):  # "read_file", where "fs.read_file" or "*" is meant
        _logger.warning(
            "%s: %r fits a tool of this very id alone, never a short name: namespace.name?",
            place,
            value,
        )


def _not_among(value: Any, choices: Sequence[Any], place: str) -> Iterator[str]:
    # True == 1, so that true would pass for a choice of 1
    if value in choices and not isinstance(value, bool):
        return
    words = [word for word in choices if word is not None]
    shown = _kind(value)
    if isinstance(value, str):
        shown = repr(value)
    hint = did_you_mean(value, words)
    yield f"{place} can't be {shown}{hint}; it is one of {', '.join(words)}"


def _fits(value: Any, schema: _Object) -> bool:
    kinds = _kinds(schema)
    if not kinds:
        return True
    if isinstance(value, bool):  # which isinstance takes for a number
        return "boolean" in kinds
    return any(isinstance(value, _TYPES[kind][0]) for kind in kinds)


def _kinds(schema: _Object) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    if isinstance(kinds, str):
        return (kinds,)
    return tuple(kinds)


def _type_name(schema: _Object) -> str:
    first = _kinds(schema)[0]
    return _TYPES[first][1]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    for type_, name in _TYPES.values():
        if isinstance(value, type_):
            return name
    return "null"
