"""Which Rego builtins the embedded engine has with OPA's answers: measured, not claimed.

``builtin_probes.json`` is written by ``tools/builtin_table.py``, which runs each probe on the
engine and on a real OPA. Another wheel that offers ``regorus``, or another version, is held to the
same answers when it loads a bundle: the probes of the builtins that the bundle uses run once per
process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from agenttool_otel.errors import PolicyUnsupported
from agenttool_otel.policy.rego.native import UNDEFINED, is_panic, new_engine, regorus_version
from agenttool_otel.values.tables import load_table

_TABLE: Final[dict[str, dict[str, Any]]] = load_table(__package__, "builtin_probes.json")[
    "builtins"
]

OPA_BUILTINS: Final = frozenset(_TABLE)
"""Every builtin of the OPA that the table was made with."""

EMBEDDED_BUILTINS: Final = frozenset(
    name for name, row in _TABLE.items() if row["state"] == "agrees"
)
"""Builtins that a bundle may use on the embedded engine."""

REFUSED_BUILTINS: Final = frozenset(
    name for name, row in _TABLE.items() if row["state"] == "refused"
)
"""Builtins that are refused on purpose: a decision must depend on its input and on its
bundle alone.
"""

NONDETERMINISTIC: Final = frozenset(
    name for name, row in _TABLE.items() if row["nondeterministic"]
) | {
    "trace",
    "print",
}
"""Builtins whose answer depends on more than their arguments; a policy that uses one is not cached.
"""

_verified: set[str] = set()


def verify_builtins(names: Iterable[str]) -> None:
    """Check that the installed engine gives the recorded answers for the named builtins."""
    for name in sorted(set(names) - _verified):
        for expression, expected in _TABLE.get(name, {"probes": []})["probes"]:
            if _answer(expression) != expected:
                raise PolicyUnsupported(
                    f"{name} does not give OPA's answer on the installed {regorus_version()}"
                )
        _verified.add(name)


def _answer(expression: str) -> Any:
    engine = new_engine()
    try:
        engine.add_policy("probe.rego", f"package probe\n\nresult := {expression}\n")
        value = json.loads(engine.eval_rule_as_json("data.probe.result"))
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        return "PANIC" if is_panic(error) else "ERR"
    return "ERR" if value == UNDEFINED else {"value": value}
