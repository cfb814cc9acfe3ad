"""How the arguments of a Python call and of a model's JSON call get to the tool: what runs is exactly what was decided.

A Python call is copied first and shown to the policy from the copy. A model's JSON is read as the annotations ask for,
and what is decided is the form that was read, because that is what runs.
"""

from __future__ import annotations

from typing import Any

from agenttool_otel.invocation import Invocation
from agenttool_otel.pipeline.inputs import differs
from agenttool_otel.records.values import snapshot, to_json_value

__all__ = ["bind_json", "bind_python", "rebind_python"]

_IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), complex})


def bind_python(call: Invocation) -> None:
    """Bind the arguments of a Python call: ``model_input`` is their JSON form, ``bound`` a copy of what will run.

    Args:
        call: the call with ``call_args`` and ``call_kwargs``.

    Raises:
        TypeError: the arguments don't fit the signature.
    """
    parameters = call.spec.parameters
    if parameters is None:
        raise TypeError("this tool takes no positional call")
    bound = parameters.bind(call.call_args, call.call_kwargs)
    flat = parameters.flatten(bound)
    call.model_input = to_json_value(flat)  # type: ignore[assignment]
    call.bound = bound
    for value in bound.values():
        if type(value) not in _IMMUTABLE:
            # what runs is what was decided, even if the caller changes its list in the meantime
            internal = parameters.internal
            call.bound = {name: v if name in internal else snapshot(v) for name, v in bound.items()}
            call.call_args, call.call_kwargs = parameters.unbind(call.bound)
            return


def bind_json(call: Invocation) -> None:
    """Bind a model's JSON arguments: internal ones are refused, the others become what the annotations ask for.

    Args:
        call: the call, whose ``call_kwargs`` are the JSON arguments.

    Raises:
        ValueError: an argument is internal, or can't be read as its annotation.
    """
    spec = call.spec
    parameters = spec.parameters
    arguments = to_json_value(call.call_kwargs)
    if not isinstance(arguments, dict):
        raise ValueError("arguments are not an object")
    call.model_input = arguments
    if parameters is None:
        call.bound = snapshot(arguments)
        return
    if not parameters.internal.isdisjoint(arguments):
        raise ValueError("an internal argument was given")
    call.bound = {}
    if not spec.check.is_valid(arguments):
        return  # the pipeline says what is wrong
    call.bound = {name: parameters.coerce(name, value) for name, value in parameters.spread(arguments).items()}
    call.call_args, call.call_kwargs = parameters.unbind(call.bound)


def rebind_python(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Put a changed JSON input into the Python arguments: what did not change stays the object it was.

    Args:
        call: the call.
        before: permission input before the change.
        after: permission input after it.

    Raises:
        ValueError: a changed value can't be read as its annotation.
    """
    parameters = call.spec.parameters
    if parameters is None:
        call.bound = call.call_kwargs = snapshot(after)
        return
    rest, present = parameters.rest, call.bound
    bound = {name: value for name, value in present.items() if name in parameters.internal and name != rest}
    for name, value in parameters.spread(after).items():
        if name == rest:
            kept = present.get(rest, {})
            given = parameters.coerce(rest, value)
            bound[rest] = {
                n: kept[n] if n in kept and n in before and not differs(before[n], value[n]) else given[n]
                for n in given
            }
        elif name in present and name in before and not differs(before[name], value):
            bound[name] = present[name]
        else:
            bound[name] = parameters.coerce(name, value)
    call.bound = bound
    call.call_args, call.call_kwargs = parameters.unbind(bound)
