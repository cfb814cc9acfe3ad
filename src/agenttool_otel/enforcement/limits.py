"""What a governed command may use, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

from agenttool_otel.enforcement.types import Violation


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use.

    Attributes:
        seconds: wall time, where the call states no ``timeout`` of its own; ``None`` for no limit.
        memory_bytes: address space of each of its processes; ``None`` for no limit.
        processes: processes at the same time. They are counted several times a second, so a burst
          can be over it for that long.
        output_bytes: what is kept of each of standard output and standard error: half from its
          head, half from its tail.
    """

    seconds: float | None = None
    memory_bytes: int | None = None
    processes: int | None = 512
    output_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended.

    Attributes:
        status: exit status; negative where a signal ended it, as ``subprocess`` has it.
        signal: the signal's number; ``None`` if it exited.
        stdout: standard output, the middle left out where there was more than the limit.
        stderr: standard error, likewise.
        stdout_omitted: bytes that were left out.
        stderr_omitted: bytes that were left out.
        seconds: how long it ran.
        timed_out: whether its time was over.
        profile: the profile that held it; ``None`` for none.
        left: processes that were still there at the end, and were ended. Only counted where they
          stayed in the command's session.
        violations: what was refused, or may have been.
    """

    status: int
    signal: int | None
    stdout: bytes
    stderr: bytes
    stdout_omitted: int
    stderr_omitted: int
    seconds: float
    timed_out: bool
    profile: str | None
    left: int
    violations: tuple[Violation, ...]

    @property
    def text(self) -> str:
        """Standard output and standard error as one text."""
        return (self.stdout + self.stderr).decode("utf-8", "replace")

    @property
    def refusals(self) -> tuple[Violation, ...]:
        """What is known to have been refused: violations that are not only suspected."""
        return tuple(found for found in self.violations if not found.suspected)
