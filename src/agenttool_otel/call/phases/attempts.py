"""The arguments of each attempt of a call: what was decided, whatever an earlier attempt did to its
own.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.values.snapshot import snapshot

Arguments = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
"""Gives the positional and keyword arguments of one attempt."""

_CONTAINERS: Final = frozenset(
    {dict, list, set, tuple, frozenset, bytearray, deque, OrderedDict, defaultdict}
)


def unchanged_arguments(call: Invocation) -> Arguments:
    """Keep a copy of a call's model-facing arguments before its first attempt, for the attempts
    after it.

    What a host injects stays the object that it is: it is no part of what was decided.
    """
    parameters = call.spec.parameters
    internal = {*(call.internal or ()), *call.spec.declaration.input_contract.internal_only_fields}
    if parameters is not None:
        internal.update(parameters.internal)
    injected = {id(call.inputs.bound[name]) for name in internal if name in call.inputs.bound}

    def positional(value: Any) -> Any:
        # without a signature a framework's own request object may stand here, which nobody may copy
        known = parameters is not None or type(value) in _CONTAINERS
        return snapshot(value) if known and id(value) not in injected else value

    def named(name: str, value: Any) -> Any:
        known = name not in internal and (
            parameters is not None or name in call.inputs.permission_input
        )
        return snapshot(value) if known and id(value) not in injected else value

    def copied(
        args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(positional(value) for value in args), {
            name: named(name, v) for name, v in kwargs.items()
        }

    kept = copied(call.call_args, call.call_kwargs)
    return lambda: copied(*kept)
