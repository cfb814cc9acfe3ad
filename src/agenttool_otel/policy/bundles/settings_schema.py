"""What ``data.agenttool.settings`` may hold, as a JSON Schema: for the check at load, for people
and for editors.

The members are those of the stock defaults; a test keeps the two equal. ``make docs`` writes the
schema, with the names of the rules, to ``docs/policy-settings.schema.json``. Any member may be
``null``, which takes the default away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agenttool_otel.names import AccessKind
from agenttool_otel.values.tables import load_table

RULE: Final = "#/$defs/rule"
"""``$ref`` of a member or entry that names one rule."""

RULE_GLOB: Final = "#/$defs/rule_glob"
"""``$ref`` of an entry that names rules by glob."""

TOOL: Final = "#/$defs/tool"
"""``$ref`` of a member or entry that names tools by glob, by any of their names."""

EXACT_TOOL: Final = "#/$defs/exact_tool"
"""``$ref`` of one that names them by id or ``namespace.name`` alone."""

_LITERAL: Final = re.compile(r'"rule":\s*"([^"]+)"')
_BODIES: Final = re.compile(
    r"^(\w+)\b(.*(?:\n(?![\w#]).*)*)", re.MULTILINE
)  # a rule's head and what is indented under it
_BLOCKED: Final = re.compile(r':= blocked\("(\w+)"')
_CONCERNS: Final = re.compile(r"^package\s+agenttool\.rules\.(\w+)\s*$", re.MULTILINE)


def rule_names(modules: Mapping[str, str]) -> frozenset[str]:
    """Collect the names of rules that modules state; the few that the stock bundle puts together
    are among them.
    """
    found: set[str] = set()
    for text in modules.values():
        found.update(_LITERAL.findall(text))
        for concern in _CONCERNS.findall(text):
            package = f"agenttool.rules.{concern}"
            found.add(f"{package}.unproven")
            for name in _BLOCKED.findall(text):
                found.add(f"{package}.{name}")
            if concern != "declared":
                continue
            for kind in AccessKind:
                found.add(f"{package}.access_{kind}")
    return frozenset(found)


def rule_kinds(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the sets, ``deny``, ``ask`` and others, in which modules state each rule by its whole
    name.
    """
    found: dict[str, set[str]] = {}
    for text in modules.values():
        for head, body in _BODIES.findall(text):
            for name in _LITERAL.findall(body):
                found.setdefault(name, set()).add(head)
    return found


def settings_schema(rules: Iterable[str]) -> dict[str, Any]:
    """Return the schema of the settings (JSON Schema draft 7).

    Args:
        rules: the names of rules that the settings may name, beside those of one's own.
    """
    schema: dict[str, Any] = load_table("agenttool_otel.policy.bundles", "settings.schema.json")
    # a preset holds all settings but the choice of a preset
    members = dict(schema["properties"])
    for name in ("preset", "modes", "presets"):
        del members[name]
    own = r"^(?!agenttool\.)|^agenttool\.custom\."
    schema["$defs"] |= {
        "preset": {
            "type": ["object", "null"],
            "properties": members,
            "additionalProperties": False,
        },
        "rule": {
            "anyOf": [
                {"enum": sorted(rules)},
                {"type": "string", "pattern": own},
            ],
        },
    }
    return schema


def member_place(place: str, name: str) -> str:
    """Return the place of an object's member as a message names it: ``shell.commands``, or
    ``effects['git push']`` where the name is no word.
    """
    if re.fullmatch(r"\w+", name):
        return f"{place}.{name}"
    return f"{place}[{name!r}]"
