"""What a check of words finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Slip(NamedTuple):
    """One thing that is wrong, or looks like it."""

    file: str  # its file
    line: int  # its line
    message: str  # what is wrong
    certain: bool = True  # it can't be meant; else it is a warning


@dataclass(slots=True)
class Slips:
    """Slips in the order in which they were found, each once."""

    found: dict[Slip, None] = field(default_factory=dict)

    def add(self, slip: Slip) -> None:
        """Add one."""
        self.found.setdefault(slip)

    def __iter__(self) -> Iterator[Slip]:
        return iter(self.found)
