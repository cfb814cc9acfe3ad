"""An index inside ``every``: the compiled form would let everything pass, so such rules are
interpreted.
"""

from __future__ import annotations

import pytest

from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.samples import sample_documents

POLICY = """package agenttool.permission

decision := {"behavior": "allow"} if {
	every role in input.actor.roles { %s }
} else := {"behavior": "deny"}

table := {"reader": "allow", "intruder": "deny"}
"""


@pytest.mark.parametrize(
    "body", ['data.agenttool.permission.table[role] == "allow"', 'table[role] == "allow"']
)
def test_every_member_is_really_looked_up(body: str) -> None:
    files = {"p.rego": (POLICY % body).encode()}
    engine = EmbeddedEngine(bundle_from_files(files, origin="t"))
    assert "every" in engine.interpreted_because
    document = next(iter(sample_documents(engine._compiled.program, 1)))
    for roles, expected in (
        (["reader"], "allow"),
        (["reader", "intruder"], "deny"),
        (["intruder"], "deny"),
    ):
        asked = {**document, "actor": {**document["actor"], "roles": roles}}
        assert (
            engine.evaluate(EntryPoint.DECISION, asked, timeout=5.0).value["behavior"] == expected
        )
