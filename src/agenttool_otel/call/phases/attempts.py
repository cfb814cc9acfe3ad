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
    {
        dict,
        list,
        set,
        tuple,
        frozenset,
        bytearray,
        deque,
        OrderedDict,
        defaultdict,
    }
)
"""What may be copied of a tool without a signature."""


def unchanged_arguments(call: Invocation) -> Arguments:
    """Keep a copy of a call's model-facing arguments before its first attempt, for the attempts
    after it.

    Args:
        call: the call, bound.

    Returns:
        What gives a new copy for each attempt. What a host injects stays the object that it is: it
        is no part of what was decided.
    """
    copier = _Copier(call)
    args = copier.positional(call.call_args)
    kwargs = copier.named(call.call_kwargs)
    return lambda: (copier.positional(args), copier.named(kwargs))


class _Copier:
    """Copies the arguments that a model gave."""

    def __init__(self, call: Invocation) -> None:
        self._has_signature = call.spec.parameters is not None
        self._decided = call.inputs.permission_input
        self._internal = set(call.spec.declaration.input_contract.internal_only_fields)
        if call.internal is not None:
            self._internal.update(call.internal)
        if call.spec.parameters is not None:
            self._internal.update(call.spec.parameters.internal)
        bound = call.inputs.bound
        # a host's session object may be passed by position, where only its identity marks it
        self._injected = {id(bound[name]) for name in self._internal if name in bound}

    def positional(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        copies = []
        for value in args:
            # without a signature a framework's own request object may stand here, which nobody may
            # copy
            may_copy = self._has_signature or type(value) in _CONTAINERS
            copies.append(self._copied(value) if may_copy else value)
        return tuple(copies)

    def named(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        copies = {}
        for name, value in kwargs.items():
            given = self._has_signature or name in self._decided
            may_copy = given and name not in self._internal
            copies[name] = self._copied(value) if may_copy else value
        return copies

    def _copied(self, value: Any) -> Any:
        return value if id(value) in self._injected else snapshot(value)
