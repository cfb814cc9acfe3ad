"""The governed tool behind a LangChain tool object, whose calls begin at that object alone."""

from __future__ import annotations

from agenttool_otel.binding import bind_json, rebind_python
from agenttool_otel.invocation import Invocation
from agenttool_otel.pipeline import Target
from agenttool_otel.tool import GovernedTool

__all__ = ["LangChainHandle"]


class LangChainHandle(GovernedTool):
    """What is known of a LangChain tool; it checks calls, and leaves running them to the tool object.

    LangChain's validation, injection and callbacks are on the way to the tool's body, so a call of JSON arguments that
    starts here would either go round them or be governed a second time on its way.
    """

    __slots__ = ()

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return what a JSON call checks; one that would run is refused before anything is decided or claimed.

        Args:
            preflight: nobody will run it.
        """
        return Target(self.function, _bind, rebind_python, is_async=self.is_async)


def _bind(call: Invocation) -> None:
    if not call.preflight:
        raise TypeError(
            f"{call.spec.name} is a LangChain tool: call the tool object; an approved call of it goes on in the "
            "process that asked, or in its LangGraph thread"
        )
    bind_json(call)
