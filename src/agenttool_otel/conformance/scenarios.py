"""The 17 acceptance scenarios of the standard, each with its own words as the title.

``scenarios.toml`` has what each declares and asks, and what is to hold then: Rego over what the
four functions returned and recorded, and nothing else.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any, Final

from agenttool_otel.conformance.bodies import Bodies
from agenttool_otel.conformance.checking import Scenario
from agenttool_otel.conformance.subject import Subject
from agenttool_otel.policy.rego.native import new_engine

_SECRET: Final = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA2bC5"
_FUNCTIONS: Final = ("run", "validate")


def _read() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("scenarios.toml").read_text("utf-8")
    return tomllib.loads(text.replace("<secret>", _SECRET))


def _run(script: Mapping[str, Any], rules: str, subject: Subject) -> None:
    bodies = Bodies()
    seen: dict[str, list[Any]] = {"declared": [], "surfaces": [], "calls": [], "results": []}
    for step in script["steps"]:
        [(function, request)] = step.items()
        if function == "declare":
            seen["declared"] += subject.declare(_setup(request, bodies))
        elif function == "surface":
            seen["surfaces"].append(subject.surface(request))
        else:
            seen["calls"] += request["calls"]
            seen["results"] += subject.invoke(request)
    _expect(
        script["expect"], rules, {**seen, "ran": bodies.ran, "records": list(subject.records())}
    )


def _setup(request: Mapping[str, Any], bodies: Bodies) -> dict[str, Any]:
    tools = []
    for stated in request["tools"]:
        run = getattr(bodies, stated["run"])
        tool = {
            "name": stated["run"],
            "namespace": "conformance",
            "description": run.__doc__,
            **stated,
        }
        tool |= {field: getattr(bodies, stated[field]) for field in _FUNCTIONS if field in stated}
        count = tool.pop("count", 0)
        tools += (
            [{**tool, "name": f"{tool['name']}_{number}"} for number in range(count)]
            if count
            else [tool]
        )
    hooks = {name: getattr(bodies, hook) for name, hook in request.get("input_hooks", {}).items()}
    return {**request, "tools": tools, "input_hooks": hooks}


def _expect(expected: Mapping[str, str], rules: str, seen: Mapping[str, Any]) -> None:
    """Fail at the first expectation that does not hold; what is undefined does not hold."""
    engine = new_engine()
    held = [
        f"holds contains {json.dumps(words)} if {{ {rule} }}" for words, rule in expected.items()
    ]
    engine.add_policy("scenario.rego", "\n".join([rules, *held]))
    engine.set_input_json(json.dumps(seen))
    holds = json.loads(engine.eval_rule_as_json("data.scenario.holds"))
    for words, rule in expected.items():
        if words not in holds:
            raise AssertionError(f"{words}: {' '.join(rule.split())}")


_TABLE: Final = _read()
SCENARIOS: Final[list[Scenario]] = [
    Scenario(number, script["title"], partial(_run, script, _TABLE["rules"]))
    for number, script in enumerate(_TABLE["scenarios"], 1)
]
