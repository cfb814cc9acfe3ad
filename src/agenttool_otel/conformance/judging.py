"""Judge what was observed: Rego rules over what a subject returned and recorded, and over nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from agenttool_otel.conformance.scenarios import Expectation
from agenttool_otel.policy.rego.native import new_engine
from agenttool_otel.records.base import JsonObject

_RULES: Final = "scenarios/rules.rego"


def failures(expectations: Sequence[Expectation], observed: JsonObject) -> list[str]:
    """Return the expectations that do not hold; what is undefined does not hold.

    Args:
        expectations: what has to hold.
        observed: the input of the rules.
    """
    if not expectations:
        return []
    engine = new_engine()
    engine.add_policy("scenario.rego", rego_of(expectations))
    engine.set_input_json(json.dumps(observed))
    found = []
    for number, expectation in enumerate(expectations):
        if not _holds(engine, number):
            found.append(_shown(expectation))
    return found


def rego_of(expectations: Sequence[Expectation]) -> str:
    """Return a Rego module in which the rule ``holds_N`` is expectation N, from 0.

    Args:
        expectations: what has to hold.
    """
    module = [_shared_rules()]
    for number, expectation in enumerate(expectations):
        module.append(f"default holds_{number} := false\n")
        module.append(f"holds_{number} if {{\n{expectation.rule}\n}}\n")
    return "\n".join(module)


@lru_cache
def _shared_rules() -> str:
    return resources.files(__package__).joinpath(_RULES).read_text("utf-8")


def _holds(engine: Any, number: int) -> bool:
    # another implementation may record anything: a text where a rule counts is an error of the rule
    try:
        value = engine.eval_rule_as_json(f"data.scenario.holds_{number}")
    except Exception:
        return False
    holds: bool = json.loads(value) is True
    return holds


def _shown(expectation: Expectation) -> str:
    on_one_line = "; ".join(line.strip() for line in expectation.rule.splitlines())
    return f"{expectation.words}: {on_one_line}"
