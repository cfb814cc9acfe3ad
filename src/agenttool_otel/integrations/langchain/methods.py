"""The methods by which LangChain calls a tool, and tool classes that replace them.

A governed tool is decided in ``_run`` and ``_arun``, where LangChain's own outer methods end. What a class does in an
outer method of its own can't be decided: nobody can tell beforehand whether it ends there too. (The instrumentor needs
this file while LangChain's tool classes are being defined, so it imports none but the first.)
"""

from __future__ import annotations

from typing import Final

from langchain_core.tools import BaseTool

from agenttool_otel.errors import ConfigurationError

ENTRY_METHODS: Final = (
    "invoke", "ainvoke", "run", "arun", "batch", "abatch", "batch_as_completed", "abatch_as_completed",
    "stream", "astream", "transform", "atransform",
)  # fmt: skip
"""The methods that lead to a tool's body."""

BODY_METHODS: Final = ("_run", "_arun")
"""The methods that are a tool's body."""


def defining_class(cls: type, name: str) -> type:
    """Return the class whose method of that name an object of a class has."""
    return next((base for base in cls.__mro__ if name in base.__dict__), object)


def is_langchain_class(cls: type) -> bool:
    """Tell whether a class is LangChain's own."""
    return cls.__module__.partition(".")[0] == "langchain_core"


def refuse_replaced_methods(cls: type[BaseTool]) -> None:
    """Refuse a tool class that replaces one of LangChain's outer methods."""
    own = [name for name in ENTRY_METHODS if not is_langchain_class(defining_class(cls, name))]
    if own:
        raise ConfigurationError(
            f"{cls.__qualname__} replaces LangChain's own {', '.join(own)}, so its calls can't be governed: "
            "do the work in _run and _arun, or govern the function that does it"
        )
