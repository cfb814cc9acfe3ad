"""Checks ``data.agenttool.settings`` before a policy is used: a misspelt setting would silently not
hold.

Rego can't notice it: ``alway_ask`` is merged over the defaults like any other member, and no rule
reads it.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.errors import PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.own_rules import rule_problems
from agenttool_otel.policy.bundles.settings_schema import (
    RULE,
    RULE_GLOB,
    rule_kinds,
    rule_names,
    settings_schema,
)

_logger = logging.getLogger("agenttool_otel.policy")

_PLACE: Final = "data.agenttool.settings"
_QUOTED: Final = re.compile(r'"([^"]+)"')
_TOOL_GLOBS: Final = re.compile(r"\.always_allow\[\d+\](\.tools\[\d+\])?$")
_GLOB_OR_FULL: Final = re.compile(r"[.*?\[{]")
_WAIVES: Final = re.compile(r'^[^#\n]*"waives":\s*\[([^\]]*)\]', re.MULTILINE)
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
    """Return a bundle whose settings are those that its rules read."""
    if problems := settings_problems(bundle) or rule_problems(bundle):
        raise PolicyLoadError("; ".join(problems[:5]))
    return bundle


def settings_problems(bundle: Bundle) -> list[str]:
    """Say what is wrong with a bundle's settings."""
    ours = bundle.data.get("agenttool")
    defaults = ours.get("defaults") if isinstance(ours, Mapping) else None
    if (
        not isinstance(ours, Mapping)
        or not isinstance(defaults, Mapping)
        or "presets" not in defaults
    ):
        return []
    problems = list(_misplaced(bundle, ours, defaults))
    walk = _Walk(bundle.modules)
    for file, text in bundle.modules.items():
        for waives in _WAIVES.finditer(text):
            place = f"{file}:{text.count(chr(10), 0, waives.start(1)) + 1}: waives"
            problems += [
                problem
                for name in _QUOTED.findall(waives[1])
                for problem in walk.answered(name, place)
            ]
    settings = ours.get("settings")
    if settings is None:
        return problems
    if not isinstance(settings, Mapping):
        return [*problems, f"{_PLACE} has to be an object"]
    problems += walk.problems(settings, walk.schema, _PLACE)
    problems += _presets(settings, defaults)
    return problems or [*_examples(settings)]


def _examples(settings: Mapping[str, Any]) -> Iterator[str]:
    """Say which listed commands, or their examples, do not match, or match, as they should."""
    presets = settings.get("presets") or {}
    for place, one in (
        (_PLACE, settings),
        *((f"{_PLACE}.presets.{name}", one or {}) for name, one in presets.items()),
    ):
        for kind, entries in ((one.get("shell") or {}).get("commands") or {}).items():
            for number, entry in enumerate(entries or ()):
                inner = f"{place}.shell.commands.{kind}[{number}]"
                examples = entry if isinstance(entry, Mapping) else {}
                words = list(examples["words"] if examples else entry)
                yield from _misjudged(kind, words, examples, inner)
                if kind in _RESTRICTING:
                    yield from _passed_by(words, examples, inner)


_RESTRICTING: Final = frozenset({"deny", "ask"})


def _misjudged(
    kind: str, words: list[str], examples: Mapping[str, Any], place: str
) -> Iterator[str]:
    for member, wanted in (("match", True), ("not_match", False)):
        for example in examples.get(member) or ():
            if _begins(kind, example, words) is not wanted:
                yield f"{place}.{member}: {example!r} {'has no' if wanted else 'has a'} command that begins so"


def _passed_by(words: list[str], examples: Mapping[str, Any], place: str) -> Iterator[str]:
    """Say behind what a restricted command would run past its entry: a hole is found by the policy
    of its user.
    """
    tried = [f"timeout 1 {line}" for line in (shlex.join(words), *(examples.get("match") or ()))]
    if words[:1] == ["git"] and len(words) > 1 and not words[1].startswith("-"):
        tried.append(shlex.join(["git", "-C", ".", *words[1:]]))
    for line in tried:
        if words and not _begins("deny", line, words):
            yield f"{place}: {line!r} would run past this entry"


def _begins(kind: str, line: str, words: list[str]) -> bool:
    """Return whether a command of a line begins with words, as the rules of the list see it."""
    from agenttool_otel.facts.types import FactEnvironment
    from agenttool_otel.readers.shell import shell_fact

    fact = shell_fact(
        line, argument="", surroundings=FactEnvironment(cwd="/", touch_file_system=False)
    )
    for one in fact["commands"]:
        as_written = [] if one["assignments"] else [one["name"], *one["argv"][1:]]
        readings = one["spellings"] if kind in _RESTRICTING else [as_written, one["plain"]]
        if any(reading[: len(words)] == words for reading in readings):
            return True
    return False


def _misplaced(
    bundle: Bundle, ours: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[str]:
    members = {*defaults, "settings"}
    for name in bundle.data:
        if name == "agenttool" or _read(bundle, f"data.{name}"):
            continue
        if name in members:
            where = "data.agenttool" if name == "settings" else _PLACE
            yield f"data.{name} is read by no rule: it belongs into {where}.{name}"
        elif did_you_mean(name, ["agenttool"], cutoff=0.8):
            yield f"data.{name} is read by no rule{did_you_mean(name, ['agenttool'])}"
    packages = {match for text in bundle.modules.values() for match in _PACKAGE.findall(text)}
    known = {*packages, "defaults", "settings", "custom"}
    for name in ours:
        if name in known or _read(bundle, f"data.agenttool.{name}"):
            continue
        told = (
            f": it belongs into {_PLACE}.{name}" if name in members else did_you_mean(name, known)
        )
        yield f"data.agenttool.{name} is read by no rule{told}"


_PACKAGE: Final = re.compile(r"^package\s+agenttool\.(\w+)", re.MULTILINE)


def _read(bundle: Bundle, path: str) -> bool:
    pattern = re.compile(rf"\b{re.escape(path)}\b")
    return any(pattern.search(text) for text in bundle.modules.values())


def presets_of(bundle: Bundle) -> dict[str, Any]:
    """Return the presets of a bundle and of its settings by name; ``None`` where one was
    taken away.
    """
    ours = bundle.data.get("agenttool")
    parts = (
        [ours.get(name) for name in ("defaults", "settings")] if isinstance(ours, Mapping) else []
    )
    found = [part.get("presets") for part in parts if isinstance(part, Mapping)]
    return {
        name: preset
        for presets in found
        if isinstance(presets, Mapping)
        for name, preset in presets.items()
    }


def _presets(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[str]:
    own = settings.get("presets")
    presets = {**defaults["presets"], **(own if isinstance(own, Mapping) else {})}
    known = sorted(name for name, preset in presets.items() if preset is not None)
    told = f"it is one of {', '.join(known)}"
    preset = settings.get("preset", defaults.get("preset"))
    if isinstance(preset, str) and preset not in known:
        yield f"{_PLACE}.preset can't be {preset!r}{did_you_mean(preset, known)}; {told}"
    modes = settings.get("modes")
    for mode, name in modes.items() if isinstance(modes, Mapping) else ():
        if isinstance(name, str) and name not in known:
            yield f"{_PLACE}.modes.{mode} can't be {name!r}{did_you_mean(name, known)}; {told}"


class _Walk:
    """Follows a value and its schema; knows the few words of JSON Schema that ``settings_schema``
    uses.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self.rules = rule_names(modules)
        self.kinds = rule_kinds(modules)
        self.schema = settings_schema(self.rules)

    def problems(self, value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
        """Say what does not fit."""
        reference = schema.get("$ref")
        if isinstance(value, str) and _TOOL_GLOBS.search(place) and not _GLOB_OR_FULL.search(value):
            _logger.warning(
                "%s: %r fits a tool of this very id alone, never a short name: namespace.name?",
                place,
                value,
            )
        if reference == RULE:
            yield from (
                self.answered(value, place) if ".waives[" in place else self._rule(value, place)
            )
        elif reference == RULE_GLOB:
            yield from self._glob(value, place)
        elif reference is not None:
            yield from self.problems(
                value, self.schema["$defs"][reference.rpartition("/")[2]], place
            )
        elif "anyOf" in schema:
            # the branch of the value's own type says best what is wrong
            branch = next((entry for entry in schema["anyOf"] if _fits(value, entry)), None)
            if branch is None:
                kinds = " or ".join(_TYPES[_kinds(entry)[0]][1] for entry in schema["anyOf"])
                yield f"{place} has to be {kinds}, not {_kind(value)}"
            else:
                yield from self.problems(value, branch, place)
        elif "enum" in schema:
            if value not in schema["enum"] or isinstance(value, bool):
                words = [word for word in schema["enum"] if word is not None]
                shown = repr(value) if isinstance(value, str) else _kind(value)
                yield f"{place} can't be {shown}{did_you_mean(value, words)}; it is one of {', '.join(words)}"
        elif not _fits(value, schema):
            yield f"{place} has to be {_TYPES[_kinds(schema)[0]][1]}, not {_kind(value)}"
        elif isinstance(value, Mapping):
            yield from self._members(value, schema, place)
        elif isinstance(value, (list, tuple)):
            for number, entry in enumerate(value):
                yield from self.problems(entry, schema.get("items", {}), f"{place}[{number}]")

    def _members(
        self, value: Mapping[str, Any], schema: Mapping[str, Any], place: str
    ) -> Iterator[str]:
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place} lacks {name}"
        for name, entry in value.items():
            inner = f"{place}.{name}" if re.fullmatch(r"\w+", name) else f"{place}[{name!r}]"
            if place.endswith(".effects") and entry == "allow":
                yield from self.answered(name, inner)
            elif "propertyNames" in schema:
                yield from self.problems(name, schema["propertyNames"], inner)
            if name in known:
                yield from self.problems(entry, known[name], inner)
            elif others is False:
                told = did_you_mean(name, known) or f"; it is one of {', '.join(sorted(known))}"
                yield f"{inner}: there is no such setting{told}"
            elif isinstance(others, Mapping):
                yield from self.problems(entry, others, inner)

    def answered(self, name: Any, place: str) -> Iterator[str]:
        """Say why naming a rule as answered has no effect."""
        yield from self._rule(name, place)
        kinds = self.kinds.get(str(name), {"ask"})
        if str(name).endswith((".unproven", ".uncertain")):
            yield f"{place}: only a person can answer {name!r}"
        elif kinds == {"deny"}:
            yield f"{place}: {name!r} only denies, and a denial can't be softened"
        elif kinds <= {"allow", "allowed", "remembered"}:
            yield f"{place}: {name!r} is no question"

    def _rule(self, name: Any, place: str) -> Iterator[str]:
        if not isinstance(name, str):
            yield f"{place} has to be the name of a rule, not {_kind(name)}"
        elif (
            name not in self.rules
            and name.startswith("agenttool.")
            and not name.startswith("agenttool.custom.")
        ):
            yield f"{place}: there is no rule {name!r}{did_you_mean(name, self.rules)}"
        elif name not in self.rules and not name.startswith("agenttool."):
            near = did_you_mean(name, self.rules, cutoff=0.9)
            # a rule of one's own may put its name together, so an unknown name alone is no error
            if near:
                yield f"{place}: there is no rule {name!r}{near}"

    def _glob(self, pattern: Any, place: str) -> Iterator[str]:
        if not isinstance(pattern, str):
            yield f"{place} has to be a glob of rules, not {_kind(pattern)}"
        elif pattern.startswith("agenttool.rules."):
            found = [rule for rule in self.rules if fnmatchcase(rule, pattern)]
            if not found:
                yield f"{place}: {pattern!r} is the name of no rule{did_you_mean(pattern, self.rules)}"
            elif all(any(self.answered(rule, place)) for rule in found):
                yield from self.answered(found[0], place)


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds = _kinds(schema)
    if isinstance(value, bool):
        return not kinds or "boolean" in kinds
    return not kinds or any(isinstance(value, _TYPES[kind][0]) for kind in kinds)


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return next((name for type_, name in _TYPES.values() if isinstance(value, type_)), "null")
