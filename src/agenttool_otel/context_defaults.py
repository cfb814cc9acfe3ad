"""What a context of a call leaves open, filled with the settings' defaults."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from agenttool_otel.config import Settings
from agenttool_otel.context import AgentContext

__all__ = ["ContextDefaults"]

_KEPT: Final = 64


class ContextDefaults:
    """Fills contexts; the same context gives the same filled one, while it is in use.

    Args:
        settings: roots, actor and roles for calls without their own.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._filled: OrderedDict[int, tuple[AgentContext, AgentContext]] = OrderedDict()

    def fill(self, context: AgentContext) -> AgentContext:
        """Return the context with nothing left open that a setting states.

        Args:
            context: the context in force.
        """
        settings = self._settings
        if (context.roots or not settings.roots) and (context.actor or not (settings.actor or settings.roles)):
            return context
        known = self._filled.get(id(context))
        if known is not None and known[0] is context:
            return known[1]
        filled = replace(
            context,
            roots=context.roots or settings.roots,
            actor=context.actor or settings.actor,
            roles=context.roles or (() if context.actor else settings.roles),
        )
        self._filled[id(context)] = (context, filled)
        while len(self._filled) > _KEPT:
            self._filled.popitem(last=False)
        return filled
