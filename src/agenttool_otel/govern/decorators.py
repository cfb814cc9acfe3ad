"""``govern``: put a callable, or a framework's tool object, under governance with one line and no
rewrite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from agenttool_otel.call.runtime import build_default_with
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.govern.default import from_environment
from agenttool_otel.govern.governed import govern_with
from agenttool_otel.govern.typing import Governed, GovernsNext

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

build_default_with(from_environment)  # a program may decorate without ever naming a Governor


@overload
def govern(target: Callable[P, R], /, **options: Unpack[GovernOptions]) -> Governed[P, R]: ...


@overload
def govern(target: T, /, **options: Unpack[GovernOptions]) -> T: ...


@overload
def govern(**options: Unpack[GovernOptions]) -> GovernsNext: ...


def govern(target: Any = None, /, **options: Unpack[GovernOptions]) -> Any:
    """Put a tool under governance: each call is decided by policy and leaves one invocation span.

    Works on functions, coroutine functions, generators, asynchronous generators, methods, class and
    static methods, ``functools.partial`` objects, callable objects and LangChain tools; bare
    (``@govern``), with facts (``@govern(read_only=True)``) and as a call (``govern(tool)``).
    Signature, hints, docstring and schema inference of what is governed stay as they are.

    Args:
        target: the tool.
        options: facts of the tool, by the standard's names, alone (``risk_level="low"``) or grouped
          by record (``permission={"risk_level": "low"}``); see GovernOptions.

    Returns:
        The governed tool, of the same kind; functions gain ``.tool``. Without a target, a
        decorator.

    Raises:
        ConfigurationError: the target or a fact can't be used.
    """
    return govern_with(None, target, options, unpickle=_govern_again)


def _govern_again(wrapped: Any, options: GovernOptions) -> Any:
    """Govern an unpickled callable under the default Governor of this process."""
    return govern(wrapped, **options)
