"""Changes of shared context that a tool returns beside its value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ContextModifier:
    """What a tool returns that wants something changed which other calls see too.

    Attributes:
        value: what the tool returns.
        apply: makes the change; called once, where the scheduler policy lets it, else never.
    """

    value: Any
    apply: Callable[[], Any]
