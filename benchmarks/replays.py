"""What real programs pay: their recorded calls, ungoverned, traced by hand, and governed, in one
interleaved run.

Two programs: a coding agent's shell tool, given the commands of a corpus one after the other (where
that is not at hand, nothing of it is measured), and a support agent's tools in LangGraph's
``ToolNode``, whose ``invoke`` runs each call in a thread of its own. The hand-written code records
what a governed call of the same tool records (its span with all attributes, its events, its
metrics), decides nothing, keeps nothing and redacts nothing.

``python -m benchmarks.replays`` prints medians and 99th percentiles of the CPU time of the whole
process for each call, the part of the decisions that the cache had, and how often the compiled form
answered.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agenttool_otel import Governor, TelemetrySettings, agent_context
from agenttool_otel.errors import AgentToolError
from agenttool_otel.testing import capture
from benchmarks.agent_commands import SHELL, corpus
from benchmarks.matrix import READS, _providers
from benchmarks.reference import Same
from benchmarks.support import conversations

_COMMANDS = Path(__file__).resolve().parents[2] / "shared" / "corpora" / "agent_commands.jsonl.gz"
_WRITES: dict[str, Any] = {**READS, "read_only": False}
_SUPPORT: dict[str, dict[str, Any]] = {
    "customer": {**READS, "access_kinds": ["file_read"], "tool_kind": "retrieval"},
    "orders": {**READS, "access_kinds": ["file_read"], "tool_kind": "retrieval"},
    "order": {**READS, "access_kinds": ["file_read"], "tool_kind": "retrieval"},
    "search": {**READS, "access_kinds": ["file_read"], "tool_kind": "retrieval"},
    "note": {**_WRITES, "access_kinds": ["file_write"], "write_effects": ["remote_mutation"]},
    "reply": {**_WRITES, "access_kinds": ["external_send"], "write_effects": ["remote_mutation"]},
}
_SETTINGS = {
    "agenttool": {"settings": {"approval": {"always_allow": ["bench.note", "bench.reply"]}}}
}


def customer(email: str) -> str:
    """Find a customer."""
    return f'{{"email": "{email}", "id": "C-{sum(map(ord, email))}", "since": 2019}}'


def orders(customer_id: str) -> str:
    """List a customer's orders."""
    return f'[{{"customer": "{customer_id}", "state": "shipped"}}]'


def order(order_id: str) -> str:
    """Show an order."""
    return f'{{"id": "{order_id}", "items": 2, "total": "84.50"}}'


def search(query: str) -> str:
    """Search the help pages."""
    return (
        "Parcels are traced for five days. A replacement is sent when the carrier has confirmed the loss. "
        * 6
    )


def note(order_id: str, text: str) -> str:
    """Add a note to an order."""
    return "noted"


def reply(customer_id: str, text: str) -> str:
    """Write to the customer."""
    return "sent"


def run(command: str) -> str:
    """Run a shell command."""
    return ""


_Step = Callable[[], Any]


def support() -> tuple[dict[str, list[_Step]], Governor]:
    """The steps of the conversations for each contestant."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    functions = (customer, orders, order, search, note, reply)
    tracers, meters = _providers()
    governor = Governor(
        policy_data=_SETTINGS,
        telemetry=TelemetrySettings(tracer_provider=tracers, meter_provider=meters),
    )
    example = {name: arguments for talk in conversations() for name, arguments in talk}

    def by_hand(function: Callable[..., str]) -> Any:
        name = function.__name__
        with (
            capture(policy_data=_SETTINGS) as captured,
            agent_context(actor="agent:support", session_id="s"),
        ):
            captured.governor.govern(function, **_SUPPORT[name])(**example[name])
            record = Same(captured, *_providers())

        def traced(**arguments: Any) -> str:
            return str(record(lambda: function(**arguments)))

        made = tool(function)
        made.func = traced
        return made

    def graph(tools: list[Any]) -> Any:
        built = StateGraph(MessagesState)
        built.add_node("tools", ToolNode(tools))
        built.add_edge(START, "tools")
        built.add_edge("tools", END)
        return built.compile()

    graphs = {
        "ungoverned": graph([tool(function) for function in functions]),
        "hand-written": graph([by_hand(function) for function in functions]),
        "governed": graph(
            [governor.govern(tool(one), **_SUPPORT[one.__name__]) for one in functions]
        ),
    }

    def step(compiled: Any, session: int, name: str, arguments: dict[str, Any]) -> _Step:
        call = {
            "name": name,
            "args": arguments,
            "id": f"call-{session}-{random.randrange(10**9)}",
            "type": "tool_call",
        }
        message = AIMessage(content="", tool_calls=[call])

        def taken() -> Any:
            with agent_context(actor="agent:support", session_id=f"talk-{session}"):
                return compiled.invoke({"messages": [message]})["messages"][-1]

        return taken

    steps = {
        contestant: [
            step(compiled, session, name, arguments)
            for session, talk in enumerate(conversations())
            for name, arguments in talk
        ]
        for contestant, compiled in graphs.items()
    }
    for made in steps.values():
        assert made[0]().status == "success"
    return steps, governor


def commands(path: Path, limit: int) -> tuple[dict[str, list[_Step]], Governor]:
    """The first commands of the corpus for each contestant, in its order."""
    tracers, meters = _providers()
    governor = Governor(
        policy_data={"agenttool": {"settings": {"preset": "coding"}}},
        telemetry=TelemetrySettings(tracer_provider=tracers, meter_provider=meters),
    )
    governed = governor.govern(run, **SHELL)
    with (
        capture() as captured,
        agent_context(actor="agent:bench", session_id="s", roots=["/srv"], cwd="/srv"),
    ):
        captured.governor.govern(run, **SHELL)("ls -la")
        record = Same(captured, *_providers())
    given = list(corpus(path).elements())[:: max(1, sum(corpus(path).values()) // limit)][:limit]

    def step(cwd: str, command: str) -> _Step:
        def taken() -> Any:
            with (
                agent_context(actor="agent:bench", session_id="s", roots=[cwd], cwd=cwd),
                contextlib.suppress(AgentToolError),
            ):
                return governed(command)

        return taken

    return {
        "ungoverned": [(lambda command=command: run(command)) for _, command in given],
        "hand-written": [
            (lambda command=command: record(lambda: run(command))) for _, command in given
        ],
        "governed": [step(cwd, command) for cwd, command in given],
    }, governor


def measure(
    steps: dict[str, list[_Step]], governor: Governor, rounds: int
) -> dict[str, tuple[float, float]]:
    """Median and 99th percentile, in microseconds, of each contestant's calls.

    Each round is the whole replay, with an empty decision cache.
    """
    found: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for _ in range(rounds):
        random.shuffle(names)
        for name in names:
            gc.collect()
            if governor.decider._cache is not None:
                governor.decider._cache.clear()
            for step in steps[name]:
                started = time.process_time_ns()
                step()
                found[name].append((time.process_time_ns() - started) / 1000)
    return {
        name: (statistics.median(times), statistics.quantiles(times, n=100)[98])
        for name, times in found.items()
    }


def table(rounds: int = 3, limit: int = 400) -> Table:
    """Both replays."""
    shown = Table(title="Replays: µs of CPU time for each call (median / 99th percentile)")
    for heading in (
        "program",
        "ungoverned",
        "hand-written",
        "governed",
        "decisions from the cache",
    ):
        shown.add_column(heading)
    programs: dict[str, tuple[dict[str, list[_Step]], Governor]] = {
        "support conversations, LangGraph": support()
    }
    path = Path(os.environ.get("AGENTTOOL_AGENT_COMMANDS") or _COMMANDS)
    if path.exists():
        programs["a coding agent's commands"] = commands(path, limit)
    for name, (steps, governor) in programs.items():
        # the replay as it happens once: what the cache knows is from this program alone
        for step in steps["governed"]:
            step()
        counted = governor.decider.describe()["cache"]
        asked = counted["hits"] + counted["misses"] + counted["uncacheable"]
        found = measure(steps, governor, rounds)
        cells = [f"{median:,.0f} / {worst:,.0f}" for median, worst in (found[one] for one in steps)]
        shown.add_row(name, *cells, f"{counted['hits'] / asked:.0%} of {asked}")
    return shown


if __name__ == "__main__":
    Console(width=None if sys.stdout.isatty() else 130).print(table())
