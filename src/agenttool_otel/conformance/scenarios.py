"""The 17 acceptance scenarios of the standard: the files of the folder ``scenarios``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from agenttool_otel.records.base import JsonObject

_FOLDER: Final = "scenarios"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What has to hold after a scenario's steps."""

    words: str  # what it is, in a few words
    rule: str  # body of a Rego rule
    source: str = ""  # the sentence of the standard


@dataclass(frozen=True, slots=True)
class Scenario:
    """One of the standard's acceptance scenarios."""

    number: int  # its number in the standard, from 1
    title: str  # its sentence in the standard
    steps: Sequence[JsonObject]  # each {"invoke": {...}} and the like
    standard: Sequence[Expectation]  # what the standard asks for
    ours: Sequence[Expectation] = ()  # what this package does beyond it
    canaries: Sequence[str] = field(default=())  # texts that may be in no record and no span


def read_scenarios() -> list[Scenario]:
    """Read the scenarios that ship with the package, in the standard's order."""
    found = []
    folder = resources.files(__package__).joinpath(_FOLDER)
    for file in folder.iterdir():
        if file.name.endswith(".json"):
            found.append(parse_scenario(json.loads(file.read_text("utf-8"))))
    return sorted(found, key=lambda scenario: scenario.number)


def parse_scenario(document: Mapping[str, Any]) -> Scenario:
    """Return the scenario of a file.

    Args:
        document: the file's content, which fits scenario.schema.json.
    """
    plain = _joined(document)
    expected = plain["expect"]
    return Scenario(
        number=plain["number"],
        title=plain["title"],
        steps=[_expanded(step) for step in plain["steps"]],
        standard=_expectations(expected["standard"]),
        ours=_expectations(expected.get("ours", {})),
        canaries=plain.get("canaries", ()),
    )


def _expectations(stated: Mapping[str, JsonObject]) -> list[Expectation]:
    found = []
    for words, expectation in stated.items():
        rule = "\n".join(expectation["rule"])
        found.append(Expectation(words, rule, expectation.get("source", "")))
    return found


def _joined(value: Any) -> Any:
    """Put the texts in the place of their parts: {"join": ["gh", "p_"]}."""
    if isinstance(value, list):
        return [_joined(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"join"}:
        return "".join(value["join"])
    return {name: _joined(item) for name, item in value.items()}


def _expanded(step: JsonObject) -> JsonObject:
    """Put 30 tools in the place of {"name": "ledger", "count": 30}."""
    if "declare" not in step:
        return step
    tools = []
    for tool in step["declare"]["tools"]:
        count = tool.pop("count", None)
        if count is None:
            tools.append(tool)
            continue
        for number in range(count):
            tools.append({**tool, "name": f"{tool['name']}_{number}"})
    return {"declare": {**step["declare"], "tools": tools}}
