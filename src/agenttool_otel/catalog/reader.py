"""The reader of a function under pydantic's ``validate_call``: what it makes of a call is decided,
and is what runs.

Pydantic validates and calls in one step. Here the two are apart: the arguments are read first, the
decision is about what was read, and then the function below ``validate_call`` gets exactly that.
Read a second time, a validator that adds, resolves or looks something up could make something else
of it.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

_Call = tuple[tuple[Any, ...], dict[str, Any]]


class _Validated(NamedTuple):
    """A function under ``validate_call``."""

    function: Callable[..., Any]  # what pydantic calls
    checker: Any  # pydantic's own object
    instance: Any  # what it is bound to
    is_bound: bool  # whether it is bound at all


_partials: weakref.WeakKeyDictionary[functools.partial[Any], _Validated | None] = (
    weakref.WeakKeyDictionary()
)
"""What was found at a partial: its own arguments are read once, not in each call."""


class CallReader:
    """Reads the arguments of one function as its ``validate_call`` does.

    Args:
        validator: pydantic's validator of a call; it calls something that returns the arguments.
        by_name: whether each argument can be given by its name, so that a JSON object is a whole
          call.
    """

    __slots__ = ("_validator", "by_name")

    def __init__(self, validator: Any, *, by_name: bool) -> None:
        self._validator, self.by_name = validator, by_name

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call:
        """Return the arguments as the function gets them.

        Args:
            args: those by position.
            kwargs: those by name.

        Raises:
            pydantic.ValidationError: they are refused.
        """
        from pydantic_core import ArgsKwargs

        return cast(_Call, self._validator.validate_python(ArgsKwargs(args, dict(kwargs))))

    def read_json(self, arguments: Mapping[str, Any]) -> _Call:
        """Return a model's arguments as the function gets them; a strict reader, too, takes a date
        from its JSON text.

        Args:
            arguments: JSON data by name.

        Raises:
            pydantic.ValidationError: they are refused.
        """
        return cast(_Call, self._validator.validate_json(json.dumps(dict(arguments))))


def call_reader(function: Any, *, drop_first: bool) -> CallReader | None:
    """Return the reader of a callable, or ``None`` where it has none.

    Args:
        function: the callable.
        drop_first: its first parameter is an instance or class, which no caller gives.
    """
    if (found := _validated(function)) is None:
        return None

    signature = inspect.signature(found.function)
    parameters = list(signature.parameters.values())[1 if drop_first or found.is_bound else 0 :]
    return _reader(found, parameters)


def _reader(found: _Validated, parameters: Sequence[inspect.Parameter]) -> CallReader | None:
    """Return what reads some parameters of a function."""

    def taken(*args: Any, **kwargs: Any) -> _Call:
        return args, kwargs

    under = found.function.func if isinstance(found.function, functools.partial) else found.function
    functools.update_wrapper(taken, under)
    del taken.__dict__["__wrapped__"]
    taken.__dict__["__signature__"] = inspect.Signature(parameters)
    checker = copy.copy(found.checker)
    try:
        checker.function, checker.validate_return = taken, False
        checker._create_validators()
        validator = checker.__pydantic_validator__
    except Exception:
        # another pydantic, or hints that it can't resolve yet: the call itself says what is wrong
        return None
    by_name = all(p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) for p in parameters)
    return CallReader(validator, by_name=by_name)


def below_reader(function: Any) -> Callable[..., Any]:
    """Return what runs when the arguments have been read: the function below ``validate_call``.

    Args:
        function: the callable, bound to its instance.
    """
    if (found := _validated(function)) is None:
        return cast(Callable[..., Any], function)
    body = found.function
    if found.is_bound:
        body = functools.partial(body, found.instance)
    check = found.checker.__return_pydantic_validator__
    if check is None:
        return body

    def checked(*args: Any, **kwargs: Any) -> Any:
        return check(body(*args, **kwargs))

    return checked


def _validated(function: Any) -> _Validated | None:
    """Look for ``validate_call`` at a callable: at a function, a method, or an object's
    ``__call__``.
    """
    if isinstance(function, functools.partial):
        if function not in _partials:
            _partials[function] = _partly(function)
        return _partials[function]
    instance, is_bound = None, False
    if not inspect.isroutine(function):
        function = getattr(function, "__call__", None)  # noqa: B004
    if inspect.ismethod(function):
        instance, is_bound, function = function.__self__, True, function.__func__
    if not inspect.isfunction(function) or not hasattr(function, "raw_function"):
        return None
    from pydantic._internal._validate_call import ValidateCallWrapper

    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    checker = (
        getattr(cells["wrapper"].cell_contents, "__self__", None) if "wrapper" in cells else None
    )
    if not isinstance(checker, ValidateCallWrapper):
        return None
    if not checker.__pydantic_complete__:
        checker._create_validators()
    return _Validated(checker.function, checker, instance, is_bound)


def _partly(function: functools.partial[Any]) -> _Validated | None:
    """Return a partial of a validated function as a validated partial, whose own arguments are read
    once, here.
    """
    if (found := _validated(function.func)) is None:
        return None
    below = functools.partial(found.function, found.instance) if found.is_bound else found.function
    try:
        signature = inspect.signature(below)
        given = signature.bind_partial(*function.args, **function.keywords).arguments
        parameters = [one for name, one in signature.parameters.items() if name in given]
        if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in parameters):
            return None
        reader = _reader(found, [one.replace(kind=one.KEYWORD_ONLY) for one in parameters])
        read = reader.read((), given)[1] if reader is not None else {}
    except (TypeError, ValueError):  # it can't be called: whoever does gets pydantic's error
        return None
    if read.keys() != given.keys():
        return None
    by_position = [read[name] for name in list(given)[: len(function.args)]]
    by_name = {name: read[name] for name in function.keywords}
    return found._replace(
        function=functools.partial(below, *by_position, **by_name), instance=None, is_bound=False
    )
