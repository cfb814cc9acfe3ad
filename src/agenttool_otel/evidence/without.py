"""A policy without one of its parts: what would be decided if a setting, or what a rule waives, were
not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from agenttool_otel.policy.bundles.bundle import Bundle, digest_of
from agenttool_otel.policy.bundles.own_rules import CUSTOM
from agenttool_otel.policy.rego.syntax import Rule, parse_program

_WAIVES: Final = re.compile(r'("waives":\s*)\[[^\]]*\]')
_NAME: Final = re.compile(r'"rule":\s*"([^"]+)"')

_Place = tuple[str | int, ...]
"""Where a setting stands: names of members and numbers of entries, from the outermost on."""


class Without(NamedTuple):
    """A policy without one part."""

    part: str  # which: a setting's place, or the rule that waives
    bundle: Bundle


def without_each_part(bundle: Bundle) -> Iterator[Without]:
    """Yield a policy without each of its settings, and without what each of its rules waives.

    Args:
        bundle: the policy.
    """
    settings = _settings(bundle.data)
    for place in _places(settings):
        yield _without_setting(bundle, place)
    for rule in _waiving(bundle):
        found = _without_waives(bundle, rule)
        if found is not None:
            yield found


def _settings(data: Any) -> Any:
    """Return the settings of a bundle's data."""
    return data.get("agenttool", {}).get("settings") or {}


def _places(settings: Any) -> Iterator[_Place]:
    """Yield the places of single settings.

    ``{"network": {"allowed_hosts": ["a", "b"]}}`` has two: each entry of a list can be taken out.
    """
    for name, value in settings.items():
        yield from _places_in(value, (name,))


def _places_in(value: Any, place: _Place) -> Iterator[_Place]:
    inner = _inner(value, place)
    if not inner:
        yield place
    for step, item in inner:
        yield from _places_in(item, (*place, step))


def _inner(value: Any, place: _Place) -> list[tuple[str | int, Any]]:
    """Return what stands inside of a setting, where it is not one setting as a whole."""
    # ["git", "push"] in a list of commands: one setting, not two
    if isinstance(place[-1], int):
        return []
    if isinstance(value, dict):
        return list(value.items())
    # a list right below the settings is of no concern's own: it is one setting
    if isinstance(value, list) and len(place) > 1:
        return list(enumerate(value))
    return []


def _without_setting(bundle: Bundle, place: _Place) -> Without:
    """Return a policy without a setting."""
    data = bundle.data  # a fresh copy each time
    holder: Any = _settings(data)
    for step in place[:-1]:
        holder = holder[step]
    del holder[place[-1]]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    digest = digest_of((bundle.digest, text))
    reduced = replace(bundle, data_json=text, digest=digest)
    return Without(f"settings{_shown(place)}", reduced)


def _shown(place: _Place) -> str:
    """Return a place as it is written: ``.network.allowed_hosts[1]``."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}"
    return text


def _waiving(bundle: Bundle) -> Iterator[Rule]:
    """Yield the rules of extensions that may waive something."""
    own: dict[str, str] = {}
    for file, text in bundle.modules.items():
        if '"waives"' in text:
            own[file] = text
    if not own:
        return
    for rule in parse_program(own).rules:
        is_custom = rule.path[: len(CUSTOM)] == CUSTOM
        if is_custom and rule.path[-1] == "allow" and "Spec" in rule.node:
            yield rule


def _without_waives(bundle: Bundle, rule: Rule) -> Without | None:
    """Return a policy in which one rule waives nothing; ``None`` where its list is computed, or it
    has none.
    """
    span = rule.node["Spec"]["span"]
    start, end = span["start"], span["end"]
    text = bundle.modules[rule.file].encode()  # the parser counts bytes
    body = text[start:end].decode()
    changed, count = _WAIVES.subn(r"\1[]", body, count=1)
    if not count:
        return None
    whole = text[:start] + changed.encode() + text[end:]
    modules = MappingProxyType({**bundle.modules, rule.file: whole.decode()})
    digest = digest_of((bundle.digest, rule.file, str(rule.line)))
    reduced = replace(bundle, modules=modules, digest=digest)
    name = _NAME.search(body)
    title = name[1] if name else rule.name
    return Without(f"waives of {title} ({rule.file}:{rule.line})", reduced)
