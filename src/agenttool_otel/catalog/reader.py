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
        self._validator = validator
        self.by_name = by_name

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call:
        """Return the arguments as the function gets them.

        Args:
            args: those by position.
            kwargs: those by name.

        Raises:
            pydantic.ValidationError: they are refused.
        """
        from pydantic_core import ArgsKwargs

        given = ArgsKwargs(args, dict(kwargs))
        return cast(_Call, self._validator.validate_python(given))

    def read_json(self, arguments: Mapping[str, Any]) -> _Call:
        """Return a model's arguments as the function gets them; a strict reader, too, takes a date
        from its JSON text.

        Args:
            arguments: JSON data by name.

        Raises:
            pydantic.ValidationError: they are refused.
        """
        text = json.dumps(dict(arguments))
        return cast(_Call, self._validator.validate_json(text))


def call_reader(function: Any, *, drop_first: bool) -> CallReader | None:
    """Return the reader of a callable, or ``None`` where it has none.

    Args:
        function: the callable.
        drop_first: its first parameter is an instance or class, which no caller gives.
    """
    validated = _validated(function)
    if validated is None:
        return None
    parameters = list(inspect.signature(validated.function).parameters.values())
    if drop_first or validated.is_bound:
        parameters = parameters[1:]
    return _reader(validated, parameters)


def _reader(validated: _Validated, parameters: Sequence[inspect.Parameter]) -> CallReader | None:
    """Return what reads some parameters of a function."""

    def return_arguments(*args: Any, **kwargs: Any) -> _Call:
        return args, kwargs

    function = validated.function
    if isinstance(function, functools.partial):
        function = function.func
    # pydantic takes its hints, and would look through __wrapped__ for the signature
    functools.update_wrapper(return_arguments, function)
    del return_arguments.__dict__["__wrapped__"]
    return_arguments.__dict__["__signature__"] = inspect.Signature(parameters)
    checker = copy.copy(validated.checker)
    try:
        checker.function = return_arguments
        checker.validate_return = False
        checker._create_validators()
        validator = checker.__pydantic_validator__
    except Exception:
        # another pydantic, or hints that it can't resolve yet: the call itself reports what is wrong
        return None
    by_name = all(p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) for p in parameters)
    return CallReader(validator, by_name=by_name)


def below_reader(function: Any) -> Callable[..., Any]:
    """Return what runs when the arguments have been read: the function below ``validate_call``.

    Args:
        function: the callable, bound to its instance.
    """
    validated = _validated(function)
    if validated is None:
        return cast(Callable[..., Any], function)
    body = validated.function
    if validated.is_bound:
        body = functools.partial(body, validated.instance)
    check = validated.checker.__return_pydantic_validator__
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
    instance = None
    is_bound = False
    if not inspect.isroutine(function):
        function = getattr(function, "__call__", None)  # noqa: B004
    if inspect.ismethod(function):
        instance = function.__self__
        is_bound = True
        function = function.__func__
    # what validate_call returns is a function with ``raw_function``
    if not inspect.isfunction(function) or not hasattr(function, "raw_function"):
        return None
    from pydantic._internal._validate_call import ValidateCallWrapper

    checker = _closed_over(function, "wrapper")
    if not isinstance(checker, ValidateCallWrapper):
        return None
    if not checker.__pydantic_complete__:
        checker._create_validators()
    return _Validated(checker.function, checker, instance, is_bound)


def _closed_over(function: Any, name: str) -> Any:
    """Return whose method a function has in a variable of its closure; ``None`` where it has no
    such variable.
    """
    variables = function.__code__.co_freevars
    if name not in variables:
        return None
    cell = function.__closure__[variables.index(name)]
    return getattr(cell.cell_contents, "__self__", None)


def _partly(function: functools.partial[Any]) -> _Validated | None:
    """Return a partial of a validated function as a validated partial, whose own arguments are read
    once, here.
    """
    validated = _validated(function.func)
    if validated is None:
        return None
    below = validated.function
    if validated.is_bound:
        below = functools.partial(below, validated.instance)
    try:
        signature = inspect.signature(below)
        given = signature.bind_partial(*function.args, **function.keywords).arguments
        parameters = []
        for name, parameter in signature.parameters.items():
            if name not in given:
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                return None
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        reader = _reader(validated, parameters)
        read: dict[str, Any] = {}
        if reader is not None:
            _, read = reader.read((), given)
    except (TypeError, ValueError):  # it can't be called: a caller gets pydantic's error
        return None
    if read.keys() != given.keys():
        return None
    names = list(given)[: len(function.args)]
    by_position = [read[name] for name in names]
    by_name = {name: read[name] for name in function.keywords}
    body = functools.partial(below, *by_position, **by_name)
    return validated._replace(function=body, instance=None, is_bound=False)
