"""``make bench``: the bars of the design, as ratios in one interleaved run, and what the parts and
the peers cost.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import matrix
from benchmarks.call_path import measure
from benchmarks.peers import PEERS, measure_peer
from benchmarks.timing import interleaved

PARTS = (
    "import_cost",
    "facts_paths_urls",
    "facts_shell_sql",
    "redaction",
    "results",
    "policy",
    "decision_cache",
    "batches",
    "rehearsals",
)


def main(arguments: list[str]) -> int:
    """Measure and print; ``--no-matrix``, ``--no-parts`` and ``--no-peers`` leave those
    tables out.
    """
    console = Console(width=None if sys.stdout.isatty() else 130)
    load = os.getloadavg()[0]
    console.print(
        f"[dim]{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores"
        f" ({platform.machine()}), load {load:.1f}; CPU time, medians of interleaved rounds[/]"
    )
    measured = None if "--no-matrix" in arguments else matrix.measure(rounds=7, calls=40)
    bars = Table(title="Bars of the design (ratios, unless another unit is named)")
    for heading in ("what", "measured", "bar", "times"):
        bars.add_column(heading, justify="left" if heading in {"what", "times"} else "right")
    rows = [*measure(), *_extra_bars(), *(matrix.bars(measured) if measured else [])]
    for name, ratio, bar, times in rows:
        style = "green" if ratio <= bar else "red"
        bars.add_row(name, f"[{style}]{ratio:.2f}[/]", f"<= {bar:g}", times)
    console.print(bars)
    if measured:
        console.print(matrix.table(measured))
    if "--no-parts" not in arguments:
        console.print(_parts())
    if "--no-peers" not in arguments:
        console.print(_peers())
    return 0


def _extra_bars() -> list[tuple[str, float, float, str]]:
    """Bars that other modules measure, if they offer ``bars()``; a skipped one says why on standard
    error.
    """
    found: list[tuple[str, float, float, str]] = []
    for module in PARTS:
        bars: Callable[[], list[tuple[str, float, float, str]]] | None = getattr(
            importlib.import_module(f"benchmarks.{module}"), "bars", None
        )
        if bars is not None:
            found += bars()
    return found


def _parts() -> Table:
    table = Table(title="What the parts cost")
    table.add_column("part")
    table.add_column("µs", justify="right")
    for module in PARTS:
        rows = dict(importlib.import_module(f"benchmarks.{module}").rows())
        for name, time in interleaved(rows, rounds=7, calls=20).items():
            table.add_row(f"{module}: {name}", f"{time:,.1f}")
    return table


def _peers() -> Table:
    table = Table(
        title="Peers that only trace a tool, against hand-written code in the same process"
    )
    for heading in ("peer", "ratio", "µs"):
        table.add_column(heading, justify="left" if heading == "peer" else "right")
    for name in PEERS:
        measured = measure_peer(name)
        if isinstance(measured, str):
            table.add_row(name, f"[dim]{measured}[/]", "")
        else:
            table.add_row(name, f"{measured[1]:.1f} x", f"{measured[0]:.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
