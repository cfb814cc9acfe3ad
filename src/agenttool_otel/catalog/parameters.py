"""A callable's parameters as data: from a call to arguments by name, to what a model sees of them,
and back to a call.

Binding is on the path of every call, so it is done with plain dictionaries;
``inspect.Signature.bind`` serves only the rare shapes and the error messages. The way back gives
exactly what was bound: an argument never comes to stand for another one, because what stands for it
was decided (``signature.py`` reads a callable into this form).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from agenttool_otel.catalog.reader import CallReader
from agenttool_otel.values.copying import NotCopyable
from agenttool_otel.values.snapshot import snapshot

EMPTY: Final[Any] = inspect.Parameter.empty
"""Stands for a default that there is not."""

_VAR_POSITIONAL: Final = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD: Final = inspect.Parameter.VAR_KEYWORD
_POSITIONAL_ONLY: Final = inspect.Parameter.POSITIONAL_ONLY
_POSITIONAL: Final = (_POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_POSITION: Final = (_POSITIONAL_ONLY, _VAR_POSITIONAL)
_SIMPLE: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _can_change(default: Any) -> bool:
    """Return whether a default is of those that are shown by their content and copied."""
    try:
        return snapshot(default) is not default
    except NotCopyable:
        return True  # the call that leaves it out is refused


class Argument(NamedTuple):
    """One parameter."""

    name: str  # its name
    kind: Any  # its ``inspect`` kind
    default: Any  # its default, or ``inspect.Parameter.empty``
    # no model may produce it: injected, private, or of a type that JSON Schema can't describe
    internal: bool
    # pydantic's reader of its type; ``None`` where JSON data needs no conversion
    adapter: TypeAdapter[Any] | None


@dataclass(slots=True)
class Parameters:
    """All parameters of one callable."""

    arguments: dict[str, Argument]  # the parameters by name, in order
    schema: dict[str, Any]  # model-facing JSON Schema
    signature: inspect.Signature  # the signature without ``self``
    internal: frozenset[str]  # names that are not model-facing
    defaults: dict[str, Any]  # JSON-able defaults of model-facing parameters
    # whether the callable's first parameter, ``self`` or ``cls``, was left out: without its
    # instance it must not be called, because each argument would come to stand for the one before
    # it
    receiver: bool = False
    # whether the schema is one of plain types: valid, and seen by nobody else
    is_plain: bool = False
    # the callable, whose defaults may be changed after they were read
    function: Any = field(default=None, repr=False)
    # the callable's own reader of its arguments
    reader: CallReader | None = field(default=None, repr=False)
    # name of the ``**kwargs`` parameter, or ``None``
    rest: str | None = field(default=None, init=False)
    _positional: tuple[str, ...] = field(default=(), init=False, repr=False)
    _required: frozenset[str] = field(default=frozenset(), init=False, repr=False)
    _keywords: frozenset[str] = field(default=frozenset(), init=False, repr=False)
    _positional_only: frozenset[str] = field(default=frozenset(), init=False, repr=False)
    _simple: bool = field(default=False, init=False, repr=False)
    _changeable: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _shown: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    _defaults: Any = field(default=None, init=False, repr=False)
    _keyword_defaults: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        values = self.arguments.values()
        self._simple = all(argument.kind in _SIMPLE for argument in values)
        self._positional = tuple(
            a.name for a in values if a.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        self._positional_only = frozenset(a.name for a in values if a.kind in _BY_POSITION)
        self._required = frozenset(a.name for a in values if a.default is EMPTY)
        self._keywords = frozenset(self.arguments)
        self.rest = next((a.name for a in values if a.kind is _VAR_KEYWORD), None)
        self._shown = {
            a.name: a.default
            for a in values
            if a.default is not EMPTY
            and not a.internal
            and a.kind not in (_VAR_POSITIONAL, _VAR_KEYWORD)
        }
        self._changeable = {
            name: default for name, default in self._shown.items() if _can_change(default)
        }
        self.function = self.function if inspect.isfunction(self.function) else None
        if self.function is not None:
            self._defaults = self.function.__defaults__
            self._keyword_defaults = dict(self.function.__kwdefaults__ or {})

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given arguments by name; defaults are not filled in.

        Raises:
            TypeError: they don't fit the signature.
        """
        if self._simple and len(args) <= len(self._positional):
            bound = dict(zip(self._positional, args, strict=False))
            is_plain = kwargs.keys() <= self._keywords
            if not kwargs.keys().isdisjoint(bound):
                is_plain = False  # f(1, a=1) gives ``a`` twice
            bound.update(kwargs)
            if is_plain and self._required <= bound.keys():
                return bound
        # the slow way, which raises what a call raises
        return dict(self.signature.bind(*args, **kwargs).arguments)

    def fill(self, bound: dict[str, Any]) -> list[str]:
        """Add the defaults that may have changed since they were read, so that what is shown of
        them is what runs.

        A default that can't change is left to the callable, which fills in the very object that was
        read.
        """
        defaults = self._shown if self._replaced() else self._changeable
        if not defaults:
            return []
        added = [name for name in defaults if name not in bound]
        for name in added:
            bound[name] = defaults[name]
        return added

    def _replaced(self) -> bool:
        """Return whether code gave the callable other defaults after they were read."""
        if (function := self.function) is None:
            return False
        if function.__defaults__ is not self._defaults:
            return True
        if not self._keyword_defaults:
            return bool(function.__kwdefaults__)
        now = function.__kwdefaults__ or {}
        return any(
            now.get(name, EMPTY) is not default for name, default in self._keyword_defaults.items()
        )

    def unbind(self, bound: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Turn arguments by name back into what a call takes; the inverse of ``bind``.

        What can only be given by position moves up when something before it is left out. So what
        was left out is then filled with its default, which is what was decided.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        skipped: list[Argument] = []
        for name, argument in self.arguments.items():
            if name in bound:
                self._give(argument, bound[name], args, kwargs, skipped)
            elif argument.kind in _POSITIONAL:
                skipped.append(argument)
        return tuple(args), kwargs

    def _give(
        self,
        argument: Argument,
        value: Any,
        args: list[Any],
        kwargs: dict[str, Any],
        skipped: list[Argument],
    ) -> None:
        """Give one argument, by position as long as nothing before it was left out."""
        kind = argument.kind
        if kind is _VAR_KEYWORD:
            kwargs.update(value)
        elif kind is _VAR_POSITIONAL:
            if value:
                self._fill(args, kwargs, skipped)
                args.extend(value)
        elif kind is _POSITIONAL_ONLY:
            self._fill(args, kwargs, skipped)
            args.append(value)
        elif kind in _POSITIONAL and not skipped:
            args.append(value)
        else:
            kwargs[argument.name] = value

    def _fill(self, args: list[Any], kwargs: dict[str, Any], skipped: list[Argument]) -> None:
        """Give everything before this place by position."""
        if not skipped:
            return
        missing = {argument.name: argument for argument in skipped}
        positional = [
            argument.name for argument in self.arguments.values() if argument.kind in _POSITIONAL
        ]
        for name in positional[len(args) :]:
            if name in kwargs:
                args.append(kwargs.pop(name))
            elif name not in missing:
                break  # the place itself
            elif missing[name].default is EMPTY:
                raise TypeError(f"missing a required argument: {name!r}")
            else:
                args.append(missing[name].default)
        skipped.clear()

    def spread(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Bring a model's argument object to the form of ``bind``: unknown keys go to ``**kwargs``
        if there is one.
        """
        rest = self.rest
        bound: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for name, value in arguments.items():
            # a key that happens to have the name of ``**kwargs`` itself is one more of them
            if name in self.arguments and name != rest:
                bound[name] = value
            else:
                extra[name] = value
        if rest is not None and extra:
            bound[rest] = extra
        return bound

    def flatten(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model-facing arguments of a bound call: no internal ones, ``**kwargs``
        laid open.
        """
        if self._simple and not self.internal:
            return dict(bound)
        flat: dict[str, Any] = {}
        for name, value in bound.items():
            argument = self.arguments.get(name)
            if argument is not None and argument.kind is _VAR_KEYWORD:
                if not self._positional_only.isdisjoint(value):
                    raise ValueError(
                        "a keyword has the name of a parameter that is given by position"
                    )
                flat.update(value)
            elif name not in self.internal:
                flat[name] = list(value) if argument and argument.kind is _VAR_POSITIONAL else value
        return flat

    def coerce(self, name: str, value: Any) -> Any:
        """Turn one JSON value into what the parameter's annotation asks for."""
        argument = self.arguments.get(name)
        if argument is None or argument.adapter is None:
            return value
        return argument.adapter.validate_python(value)

    def accepts(self, name: str, value: Any) -> bool:
        """Return whether a Python value fits the annotation as it is, without conversion."""
        argument = self.arguments.get(name)
        if argument is None or argument.adapter is None:
            return False
        try:
            argument.adapter.validate_python(value, strict=True)
        except Exception:
            return False
        return True
