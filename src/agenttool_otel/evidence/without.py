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
_SETTINGS: Final = ("agenttool", "settings")


class Without(NamedTuple):
    """A policy without one part."""

    part: str  # which: a setting's place, or the rule that waives
    bundle: Bundle


def without_each_part(bundle: Bundle) -> Iterator[Without]:
    """Yield a policy without each of its settings, and without what each of its rules waives.

    Args:
        bundle: the policy.
    """
    yield from _without_settings(bundle)
    yield from _without_waives(bundle)


def _without_settings(bundle: Bundle) -> Iterator[Without]:
    settings = bundle.data.get("agenttool", {}).get("settings") or {}
    for place in _places(settings, ()):
        data = bundle.data  # a fresh copy each time
        holder: Any = data
        for step in (*_SETTINGS, *place[:-1]):
            holder = holder[step]
        del holder[place[-1]]
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        digest = digest_of((bundle.digest, text))
        yield Without(f"settings{_shown(place)}", replace(bundle, data_json=text, digest=digest))


def _places(value: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the places of single settings: the members of objects, and the entries of lists."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list) and len(above) > 1:
        inner = list(enumerate(value))
    if above and (not inner or _is_entry(above)):
        yield above
        return
    for step, item in inner:
        yield from _places(item, (*above, step))


def _is_entry(place: tuple[Any, ...]) -> bool:
    """Return whether a place is an entry of a list: ``["git", "push"]`` of commands is one setting."""
    return isinstance(place[-1], int)


def _shown(place: tuple[Any, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


def _without_waives(bundle: Bundle) -> Iterator[Without]:
    own = {file: text for file, text in bundle.modules.items() if '"waives"' in text}
    for module in parse_program(own).modules if own else ():
        if module.package[: len(CUSTOM)] != CUSTOM:
            continue
        for rule in module.rules:
            found = _without_waives_of(bundle, rule)
            if found is not None:
                yield found


def _without_waives_of(bundle: Bundle, rule: Rule) -> Without | None:
    """Return a policy in which one rule waives nothing; ``None`` where it does not, or its list is
    computed.
    """
    if rule.path[-1] != "allow" or "Spec" not in rule.node:
        return None
    text = bundle.modules[rule.file].encode()
    span = rule.node["Spec"]["span"]
    body = text[span["start"] : span["end"]].decode()
    changed, count = _WAIVES.subn(r"\1[]", body, count=1)
    if not count:
        return None
    whole = text[: span["start"]] + changed.encode() + text[span["end"] :]
    modules = MappingProxyType({**bundle.modules, rule.file: whole.decode()})
    digest = digest_of((bundle.digest, rule.file, str(rule.line)))
    name = _NAME.search(body)
    part = f"waives of {name[1] if name else rule.name} ({rule.file}:{rule.line})"
    return Without(part, replace(bundle, modules=modules, digest=digest))
