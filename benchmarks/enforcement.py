"""What the profile ``read`` adds to a function and to a command.

``python -m benchmarks.enforcement`` prints CPU time of this process, with its threads, and of its
children, as means of interleaved rounds: a thread that ends takes its own clock along.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from agenttool_otel.enforcement import available, hold, oblige_commands, run_command

_ROUNDS, _CALLS = 30, 20


def _spent() -> float:
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _nothing() -> None: ...


def _command(context: Callable[[], AbstractContextManager[None]]) -> Callable[[], object]:
    def run() -> object:
        with context():
            return run_command(["/bin/true"])

    return run


def rows() -> list[tuple[str, Callable[[], object]]]:
    """Return what is measured."""
    plain = [
        ("subprocess.run(['/bin/true'])", lambda: subprocess.run(["/bin/true"], check=False)),
        ("run_command(['/bin/true'])", _command(nullcontext)),
    ]
    if not available()["read"].proven:
        return plain
    return [
        *plain,
        ("the same under read", _command(lambda: oblige_commands("read"))),
        ("a function under read", lambda: hold("read", _nothing)),
    ]


def main() -> int:
    """Measure and print."""
    found: dict[str, list[float]] = {}
    for name, run in rows() * _ROUNDS:
        before = _spent()
        for _ in range(_CALLS):
            run()
        found.setdefault(name, []).append((_spent() - before) / _CALLS)
    for name, times in found.items():
        print(f"{name:32} {statistics.median(times) * 1000:.2f} ms CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
