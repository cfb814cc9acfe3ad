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

__all__ = ["RULE", "RULE_GLOB", "SETTINGS_SCHEMA_ID", "rule_names", "settings_schema", "write_settings_schema"]

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
    """Collect the names of rules that modules state; the few that the stock bundle puts together are among them.

    Args:
        modules: Rego texts by file.
    """
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


def _members() -> dict[str, Schema]:
    text, truth, number = _of("string"), _of("boolean"), _of("number")
    texts, flags, rules = _list({"type": "string"}), _map(truth), _list({"$ref": RULE})
    answer, strategies = _words("allow", "ask", "deny"), _of("string")
    role = _closed(tools=texts, access_kinds=flags, write_effects=flags, risk_levels=flags, waives=rules)
    obligations = _closed(redact_input=texts, redact_result=texts, max_inline_chars=number, persistence=strategies)
    entry = {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"tools": texts, "rules": _list({"$ref": RULE_GLOB})},
                "required": ["tools", "rules"],
                "additionalProperties": False,
            },
        ]
    }
    return {
        "effects": _map(_words("allow", "deny"), propertyNames={"$ref": RULE}),
        "alternatives": _map(_list({"type": "object"})),
        "approval": _closed(
            risk_levels=_map(_words("allow", "ask")),
            always_ask=texts,
            always_allow=_list(entry),
            unwaivable=_map(truth, propertyNames={"$ref": RULE}),
            approver_roles=_map(texts),
            remember=_closed(scopes=_list({"enum": ["session", "actor", "tenant"]}), expires_in=number),
            never_remember=_closed(
                tools=texts,
                risk_levels=flags,
                access_kinds=flags,
                write_effects=flags,
                rules=_map(truth, propertyNames={"$ref": RULE}),
            ),
            non_interactive=_words("ask", "deny"),
        ),
        "budgets": _closed(
            session=_closed(calls=number, tool_calls=number, asks=number, denials=number, result_bytes=number),
            tools=_map(number),
            asks=number,
        ),
        "dataflow": _closed(inward_access_kinds=flags, target_names=flags, target_suffixes=texts),
        "declared": _closed(
            lifecycles=_map(answer), access_kinds=_map(answer), shell_access_kinds=flags, file_access_kinds=flags
        ),
        "destructive": _closed(
            forbidden_tools=texts, protected_places=texts, write_effects=_map(_words("allow", "ask"))
        ),
        "evaluation": _closed(
            capability=text, gates=texts, statuses=flags, trends=flags, next_step=text, next_steps=_map(text)
        ),
        "network": _closed(
            schemes=_map(answer),
            address_classes=_map(_words("allow", "listed", "deny")),
            allowed_hosts=texts,
            listed_only=truth,
            blocked_hosts=texts,
            ports=flags,
            credentials_in_url=_words("redact", "deny"),
        ),
        "paths": _closed(sensitive=_map(_closed(read=answer, write=answer))),
        "redaction": _closed(
            nothing=obligations,
            sensitivities=_map(text),
            access_kinds=flags,
            persistence=_map(strategies),
            strategies=_map(number),
            max_inline_chars=number,
            tools=_map(obligations),
        ),
        "roles": _closed(enforce=truth, definitions=_map(role)),
        "shell": _closed(critical_programs=flags, critical_targets=flags, fetchers=flags, interpreters=flags),
        "sql": _closed(statements=_map(answer), protected_tables=flags),
        "surface": _closed(lifecycles=flags, reasons=_map(text), hidden_tools=texts),
        "tenancy": _closed(arguments=texts, cross_tenant_roles=flags, tools=_map(texts)),
    }


def settings_schema(rules: Iterable[str]) -> dict[str, Any]:
    """Return the schema of the settings (JSON Schema draft 7).

    Args:
        rules: the names of rules that there are.
    """
    members = _members()
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
    """Write the schema to a file, as ``docs/policy-settings.schema.json`` is made.

    Args:
        path: the file.
        modules: the stock bundle's Rego texts by file.

    Raises:
        OSError: the file can't be written.
    """
    text = json.dumps(settings_schema(rule_names(modules)), indent=2, ensure_ascii=False) + "\n"
    Path(path).write_text(text, encoding="utf-8")
