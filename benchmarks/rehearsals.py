"""What a rehearsal costs against its bars; run as ``python -m benchmarks.rehearsals``.

CPU time of this process and of all that it waits for. A ratio is the part of its bar that a figure takes. Where this
host can't rehearse, there are no rows, and the reason is on standard error.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from agenttool_otel.enforcement.rehearsal import Rehearsals, RehearsalUnavailable

ROUNDS = 15
FILES = 1000


def _cpu() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    waited = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime


def _took(function: Callable[[], object]) -> float:
    start = _cpu()
    function()
    return _cpu() - start


def empty_command(rehearsals: Rehearsals, root: Path) -> float:
    """CPU seconds that a rehearsal adds to a command that does nothing."""

    def plain() -> None:
        subprocess.run(["/bin/true"], cwd=root, check=True, capture_output=True)

    def rehearsed() -> None:
        with rehearsals.open([root]) as layer:
            layer.run(["/bin/true"], cwd=root)
            layer.finish().discard()

    rehearsed()
    rounds = [_took(rehearsed) - _took(plain) for _ in range(ROUNDS)]
    return statistics.median(rounds)


def many_files(rehearsals: Rehearsals, root: Path) -> float:
    """CPU seconds until a thousand changed files are committed."""
    line = f"for i in $(seq {FILES}); do echo changed > f$i; done"
    times = []
    for _ in range(5):
        for number in range(1, FILES + 1):
            (root / f"f{number}").write_text("before")
        with rehearsals.open([root]) as layer:
            layer.run(["sh", "-c", line], cwd=root)
            sealed = layer.finish()
        times.append(_took(partial(sealed.commit, sealed.digest)))
    return statistics.median(times)


def measured() -> Iterator[tuple[str, float, float]]:
    """Yield what is measured, its seconds and its bar."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir()
        rehearsals = Rehearsals(Path(folder, "state"))
        try:
            yield "rehearsal: added to an empty command", empty_command(rehearsals, root), 0.010
            yield "commit of 1,000 changed files", many_files(rehearsals, root), 0.5
        except RehearsalUnavailable as unavailable:
            print(f"no rehearsal on this host: {unavailable.reason}", file=sys.stderr)


def bars() -> list[tuple[str, float, float, str]]:
    """Rows of the table of bars."""
    return [
        (name, seconds / bar, 1.0, f"{seconds * 1e3:.3g} ms of {bar * 1e3:g} ms")
        for name, seconds, bar in measured()
    ]


def rows() -> list[tuple[str, Callable[[], object]]]:
    """No parts of its own."""
    return []


if __name__ == "__main__":
    for title, ratio, _, times in bars():
        print(f"{title:38} {ratio:6.2f} of its bar ({times})")
