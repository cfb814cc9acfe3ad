"""What ``data.agenttool.settings`` may hold, as a JSON Schema: for the check at load, for people and for editors.

The members are those of the stock defaults; a test keeps the two equal. ``make docs`` writes the schema to
``docs/policy-settings.schema.json``. Any member may be ``null``, which takes the default away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agenttool_otel.names import AccessKind

SETTINGS_SCHEMA_ID: Final = "urn:agenttool-otel:policy-settings:0.2.0"
"""``$id`` of the schema of the settings."""

RULE: Final = "#/$defs/rule"
"""``$ref`` of a member or entry that names one rule."""

RULE_GLOB: Final = "#/$defs/rule_glob"
"""``$ref`` of an entry that names rules by glob."""

_LITERAL: Final = re.compile(r'"rule":\s*"([^"]+)"')
_BLOCKED: Final = re.compile(r':= blocked\("(\w+)"')
_CONCERNS: Final = re.compile(r"^package\s+agenttool\.rules\.(\w+)\s*$", re.MULTILINE)

Schema = dict[str, Any]


def rule_names(modules: Mapping[str, str]) -> frozenset[str]:
    """Collect the names of rules that modules state; the few that the stock bundle puts together are among them."""
    found: set[str] = set()
    for text in modules.values():
        found.update(_LITERAL.findall(text))
        for concern in _CONCERNS.findall(text):
            found.add(f"agenttool.rules.{concern}.unproven")
            found.update(f"agenttool.rules.{concern}.{name}" for name in _BLOCKED.findall(text))
            if concern == "declared":
                found.update(f"agenttool.rules.declared.access_{kind}" for kind in AccessKind)
    return frozenset(found)


def _of(kind: str, **more: Any) -> Schema:
    return {"type": [kind, "null"], **more}


def _words(*words: str) -> Schema:
    return {"enum": [*words, None]}


def _map(value: Schema, **more: Any) -> Schema:
    return _of("object", additionalProperties=value, **more)


def _list(entry: Schema) -> Schema:
    return _of("array", items=entry)


def _closed(**members: Schema) -> Schema:
    return _of("object", properties=members, additionalProperties=False)


_TEXT, _TRUTH, _NUMBER = _of("string"), _of("boolean"), _of("number")
_TEXTS, _FLAGS, _RULES = _list({"type": "string"}), _map(_TRUTH), _list({"$ref": RULE})
_ANSWER, _STRATEGIES = _words("allow", "ask", "deny"), _of("string")
_ROLE = _closed(tools=_TEXTS, access_kinds=_FLAGS, write_effects=_FLAGS, risk_levels=_FLAGS, waives=_RULES)
_OBLIGATIONS = _closed(redact_input=_TEXTS, redact_result=_TEXTS, max_inline_chars=_NUMBER, persistence=_STRATEGIES)
_ENTRY = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"tools": _TEXTS, "rules": _list({"$ref": RULE_GLOB})},
            "required": ["tools", "rules"],
            "additionalProperties": False,
        },
    ]
}
_WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_COMMANDS = _list(_WORDS)
_MEMBERS: Final[dict[str, Schema]] = {
    "effects": _map(_words("allow", "deny"), propertyNames={"$ref": RULE}),
    "alternatives": _map(_list({"type": "object"})),
    "approval": _closed(
        risk_levels=_map(_words("allow", "ask")),
        always_ask=_TEXTS,
        always_allow=_list(_ENTRY),
        unwaivable=_map(_TRUTH, propertyNames={"$ref": RULE}),
        approver_roles=_map(_TEXTS),
        remember=_closed(scopes=_list({"enum": ["session", "actor", "tenant"]}), expires_in=_NUMBER),
        never_remember=_closed(
            tools=_TEXTS,
            risk_levels=_FLAGS,
            access_kinds=_FLAGS,
            write_effects=_FLAGS,
            rules=_map(_TRUTH, propertyNames={"$ref": RULE}),
        ),
        non_interactive=_words("ask", "deny"),
    ),
    "budgets": _closed(
        session=_closed(calls=_NUMBER, tool_calls=_NUMBER, asks=_NUMBER, denials=_NUMBER, result_bytes=_NUMBER),
        tools=_map(_NUMBER),
        asks=_NUMBER,
    ),
    "counterparties": _closed(known=_TEXTS, own=_TEXTS, source_tools=_TEXTS, approved=_TRUTH),
    "dataflow": _closed(
        vouch=_TRUTH,
        trust_inferred=_TRUTH,
        vouched_rules=_FLAGS,
        mild=_FLAGS,
        own_access_kinds=_FLAGS,
        inward_access_kinds=_FLAGS,
        target_names=_FLAGS,
        target_suffixes=_TEXTS,
    ),
    "declared": _closed(
        lifecycles=_map(_ANSWER), access_kinds=_map(_ANSWER), shell_access_kinds=_FLAGS, file_access_kinds=_FLAGS
    ),
    "destructive": _closed(forbidden_tools=_TEXTS, protected_places=_TEXTS, write_effects=_map(_words("allow", "ask"))),
    "evaluation": _closed(
        capability=_TEXT, gates=_TEXTS, statuses=_FLAGS, trends=_FLAGS, next_step=_TEXT, next_steps=_map(_TEXT)
    ),
    "network": _closed(
        schemes=_map(_ANSWER),
        address_classes=_map(_words("allow", "listed", "deny")),
        allowed_hosts=_TEXTS,
        listed_only=_TRUTH,
        blocked_hosts=_TEXTS,
        ports=_FLAGS,
        credentials_in_url=_words("redact", "deny"),
    ),
    "paths": _closed(sensitive=_map(_closed(read=_ANSWER, write=_ANSWER)), temporary=_FLAGS),
    "redaction": _closed(
        nothing=_OBLIGATIONS,
        sensitivities=_map(_TEXT),
        access_kinds=_FLAGS,
        persistence=_map(_STRATEGIES),
        strategies=_map(_NUMBER),
        max_inline_chars=_NUMBER,
        tools=_map(_OBLIGATIONS),
    ),
    "roles": _closed(enforce=_TRUTH, definitions=_map(_ROLE)),
    "shell": _closed(
        critical_programs=_FLAGS,
        critical_targets=_FLAGS,
        categories=_map(_words("allow", "sandbox", "ask")),
        commands=_closed(allow=_COMMANDS, ask=_COMMANDS, deny=_COMMANDS),
        sandboxes=_FLAGS,
        sandbox_modes=_FLAGS,
    ),
    "sql": _closed(statements=_map(_ANSWER), protected_tables=_FLAGS),
    "surface": _closed(lifecycles=_FLAGS, reasons=_map(_TEXT), hidden_tools=_TEXTS),
    "tenancy": _closed(arguments=_TEXTS, cross_tenant_roles=_FLAGS, tools=_map(_TEXTS)),
}


def settings_schema(rules: Iterable[str]) -> dict[str, Any]:
    """Return the schema of the settings (JSON Schema draft 7)."""
    members = dict(_MEMBERS)
    own = r"^(?!agenttool\.)|^agenttool\.custom\."
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SETTINGS_SCHEMA_ID,
        "title": "data.agenttool.settings",
        "type": "object",
        "properties": {
            "preset": _of("string"),
            "modes": _map(_of("string")),
            "presets": _map({"$ref": "#/$defs/preset"}),
            **members,
        },
        "additionalProperties": False,
        "$defs": {
            "preset": _closed(**members),
            "rule": {"anyOf": [{"enum": sorted(rules)}, {"type": "string", "pattern": own}]},
            "rule_glob": {"type": "string"},
        },
    }


def write_settings_schema(path: str | Path, modules: Mapping[str, str]) -> None:
    """Write the schema to a file, as ``docs/policy-settings.schema.json`` is made."""
    text = json.dumps(settings_schema(rule_names(modules)), indent=2, ensure_ascii=False) + "\n"
    Path(path).write_text(text, encoding="utf-8")
