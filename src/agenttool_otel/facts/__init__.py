"""What an input means: paths, URLs, shell commands, SQL and provenance, established once before
policy.

Facts state what is; they never decide. A fact that could not be established is marked as such, and
is to be treated as dangerous. The parts are imported when first used: a tool without such arguments
should not pay for their parsers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenttool_otel.facts.types import EMPTY_FACTS, FactEnvironment, Facts
from agenttool_otel.readers.types import Resolver
from agenttool_otel.values.lazy import lazy_attributes

if TYPE_CHECKING:
    from agenttool_otel.facts.checked import PathChanged, open_checked
    from agenttool_otel.facts.pinned import AddressChanged, connect_pinned
    from agenttool_otel.facts.plan import FactPlan, plan_facts
    from agenttool_otel.facts.provenance import ProvenanceLedger

_HOMES = {
    "AddressChanged": "pinned",
    "FactPlan": "plan",
    "PathChanged": "checked",
    "ProvenanceLedger": "provenance",
    "connect_pinned": "pinned",
    "open_checked": "checked",
    "plan_facts": "plan",
}

__all__ = [
    "EMPTY_FACTS",
    "AddressChanged",
    "FactEnvironment",
    "FactPlan",
    "Facts",
    "PathChanged",
    "ProvenanceLedger",
    "Resolver",
    "connect_pinned",
    "open_checked",
    "plan_facts",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
