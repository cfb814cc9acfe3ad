"""Tools as tests of judgement state them: a page that anybody may have written, and tools made from
a name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from agenttool_otel import Governor, agent_context

ASSISTANT = {"agenttool": {"settings": {"preset": "assistant"}}}
OPEN: dict[str, Any] = {
    "read_only": True,
    "open_world": True,
    "access_kinds": ["network"],
    "namespace": "web",
}
CLOSED: dict[str, Any] = {"read_only": True, "open_world": False, "access_kinds": []}
WRITES: dict[str, Any] = {
    "read_only": False,
    "destructive": False,
    "open_world": False,
    "access_kinds": [],
    "write_effects": ["remote_mutation"],
    "risk_level": "medium",
}
SENDS: dict[str, Any] = {**WRITES, "open_world": True, "access_kinds": ["network"]}
_SESSIONS = itertools.count()


def tool_of(
    name: str,
    text: str,
    arguments: Mapping[str, str],
    gives: Callable[..., Any] = lambda **_: "done",
) -> Any:
    """Make a function of a name, a docstring and typed arguments, which gives what
    ``gives`` does.
    """
    signature = ", ".join(f"{argument}: {hint}" for argument, hint in arguments.items())
    given = ", ".join(f"{argument}={argument}" for argument in arguments)
    scope: dict[str, Any] = {"_gives": gives}
    exec(f"def {name}({signature}) -> object:\n    {text!r}\n    return _gives({given})", scope)
    return scope[name]


class Desk:
    """A Governor under preset ``assistant`` and one page that its agent reads.

    ``decide`` says what becomes of a call after the user said something and the page was read."""

    def __init__(self, policy: Mapping[str, Any] = ASSISTANT) -> None:
        self.governor = Governor(policy_data=policy, approver=lambda request: True)
        self._page = ""
        self._read = self.governor.govern(
            tool_of("read_page", "Read a page.", {}, lambda: self._page), **OPEN
        )

    def tool(
        self,
        name: str,
        arguments: Mapping[str, str],
        gives: Callable[..., Any] = lambda **_: "done",
        **facts: Any,
    ) -> Any:
        """Govern a tool that is made of its name."""
        return self.governor.govern(
            tool_of(name, name.replace("_", " "), arguments, gives), **facts
        )

    def decide(
        self, said: str, page: str, tool: Any, *before: Callable[[], Any], **given: Any
    ) -> str:
        """Return the behaviour of one call in a session of its own."""
        return str(self.checked(said, page, tool, *before, **given).behavior)

    def checked(
        self, said: str, page: str, tool: Any, *before: Callable[[], Any], **given: Any
    ) -> Any:
        """Return the whole preflight answer."""
        self._page = page
        with agent_context(
            actor="agent:a", session_id=f"d{next(_SESSIONS)}", user_text=said, interactive=True
        ):
            for step in before:
                step()
            if page:
                self._read()
            return tool.tool.check(**given)
