"""The methods by which LangChain calls a tool, and tool classes that go their own way in them.

A governed tool is decided in ``_run`` and ``_arun``, where LangChain's own outer methods end. What a class does in an
outer method of its own can't be decided: nobody can tell beforehand whether it ends there too.
"""

from __future__ import annotations

from typing import Final

from langchain_core.tools import BaseTool

from agenttool_otel.errors import ConfigurationError

__all__ = ["BODIES", "DOORS", "defining_class", "from_langchain", "refuse_own_doors"]

DOORS: Final = (
    "invoke", "ainvoke", "run", "arun", "batch", "abatch", "batch_as_completed", "abatch_as_completed",
    "stream", "astream", "transform", "atransform",
)  # fmt: skip
"""The methods that lead to a tool's body."""

BODIES: Final = ("_run", "_arun")
"""The methods that are a tool's body."""


def defining_class(cls: type, name: str) -> type:
    """Return the class whose method of that name an object of a class has.

    Args:
        cls: the class.
        name: the method.
    """
    return next((base for base in cls.__mro__ if name in base.__dict__), object)


def from_langchain(cls: type) -> bool:
    """Tell whether a class is LangChain's own.

    Args:
        cls: the class.
    """
    return cls.__module__.partition(".")[0] == "langchain_core"


def refuse_own_doors(cls: type[BaseTool]) -> None:
    """Refuse a tool class that replaces one of LangChain's outer methods.

    Args:
        cls: the class of a tool object.

    Raises:
        ConfigurationError: it does.
    """
    own = [name for name in DOORS if not from_langchain(defining_class(cls, name))]
    if own:
        raise ConfigurationError(
            f"{cls.__qualname__} replaces LangChain's own {', '.join(own)}, so its calls can't be governed: "
            "do the work in _run and _arun, or govern the function that does it"
        )
