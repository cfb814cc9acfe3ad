"""The 17 acceptance scenarios of the standard, each with its own words as the title.

``scenarios.toml`` has the steps of each, and its expectations: Rego over what the four functions
returned and recorded, and over nothing else.
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

# the form of a GitHub token, in parts: scanners of secrets read this file, too
_SECRET: Final = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA2bC5"
_FUNCTIONS: Final = ("run", "validate")


def _read() -> Mapping[str, Any]:
    text = resources.files(__package__).joinpath("scenarios.toml").read_text("utf-8")
    return tomllib.loads(text.replace("<secret>", _SECRET))


def _run(script: Mapping[str, Any], rules: str, subject: Subject) -> None:
    """Run one scenario; raise AssertionError where an expectation does not hold."""
    bodies = Bodies()
    declared: list[Any] = []
    surfaces: list[Any] = []
    calls: list[Any] = []
    results: list[Any] = []
    for step in script["steps"]:
        # {"invoke": {"calls": [...]}}
        [(function, request)] = step.items()
        if function == "declare":
            declared += subject.declare(_setup(request, bodies))
        elif function == "surface":
            surfaces.append(subject.surface(request))
        else:
            calls += request["calls"]
            results += subject.invoke(request)
    seen = {
        "declared": declared,
        "surfaces": surfaces,
        "calls": calls,
        "results": results,
        "ran": bodies.ran,
        "records": list(subject.records()),
    }
    _expect(script["expect"], rules, seen)


def _setup(request: Mapping[str, Any], bodies: Bodies) -> dict[str, Any]:
    """The argument of ``declare``: tools and hooks with the functions that the table names."""
    tools: list[dict[str, Any]] = []
    for stated in request["tools"]:
        tools += _tools(stated, bodies)
    hooks = {}
    for name, hook in request.get("input_hooks", {}).items():
        hooks[name] = getattr(bodies, hook)
    return {
        **request,
        "tools": tools,
        "input_hooks": hooks,
    }


def _tools(stated: Mapping[str, Any], bodies: Bodies) -> list[dict[str, Any]]:
    run = getattr(bodies, stated["run"])
    tool = {
        "name": stated["run"],
        "namespace": "conformance",
        "description": run.__doc__,
        **stated,
    }
    for field in _FUNCTIONS:
        if field in stated:
            tool[field] = getattr(bodies, stated[field])
    # { run = "echo", name = "ledger", count = 30 }: ledger_0 to ledger_29
    count = tool.pop("count", 0)
    if not count:
        return [tool]
    tools = []
    for number in range(count):
        tools.append({**tool, "name": f"{tool['name']}_{number}"})
    return tools


def _expect(expected: Mapping[str, str], rules: str, seen: Mapping[str, Any]) -> None:
    """Fail at the first expectation that does not hold; what is undefined does not hold."""
    module = [rules]
    for words, rule in expected.items():
        module.append(f"holds contains {json.dumps(words)} if {{ {rule} }}")
    engine = new_engine()
    engine.add_policy("scenario.rego", "\n".join(module))
    engine.set_input_json(json.dumps(seen))
    holds = json.loads(engine.eval_rule_as_json("data.scenario.holds"))
    for words, rule in expected.items():
        if words not in holds:
            on_one_line = " ".join(rule.split())
            raise AssertionError(f"{words}: {on_one_line}")


_TABLE: Final = _read()
SCENARIOS: Final[list[Scenario]] = [
    Scenario(number, script["title"], partial(_run, script, _TABLE["rules"]))
    for number, script in enumerate(_TABLE["scenarios"], 1)
]
