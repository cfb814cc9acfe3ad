"""What a type checker sees of a governed function: its own signature, and ``tool``.

At run time these are wrappers (`decorators.py`) that look like the function to every inspection; no
such class exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from agenttool_otel.call.tool import GovernedTool

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Governed(Protocol[P, R_co]):
    """A callable under governance."""

    __name__: str  # as the function's
    __qualname__: str  # as the function's

    @property
    def __wrapped__(self) -> Callable[P, R_co]:
        """The function itself, which nothing decides about."""

    @property
    def tool(self) -> GovernedTool:
        """The governed tool: ``invoke``, ``ainvoke``, ``check`` and the records."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call it: allowed, it returns and raises what the function does."""

    def __get__(self, instance: Any, owner: type | None = None, /) -> GovernedMethod[P, R_co]:
        """Find it on an instance or a class."""


class GovernedMethod(Protocol[P, R_co]):
    """A governed function that was found on an instance or a class.

    Type checkers don't show a decorator whether a function in a class body is a method, a class
    method or a static one. So arguments are right where they fit either what is left without the
    first parameter, or all of them.
    """

    __name__: str
    __qualname__: str

    @property
    def tool(self) -> GovernedTool:
        """The governed tool, bound as the method is."""

    @overload
    def __call__(
        self: GovernedMethod[Concatenate[Any, Q], R], *args: Q.args, **kwargs: Q.kwargs
    ) -> R: ...

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class GovernsNext(Protocol):
    """A decorator: ``govern`` with facts, and without a target yet."""

    @overload
    def __call__(self, target: Callable[P, R], /) -> Governed[P, R]: ...

    @overload
    def __call__(self, target: T, /) -> T: ...
