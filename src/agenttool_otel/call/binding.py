"""How the arguments of a Python call and of a model's JSON call get to the tool: what runs is
exactly what was decided.

A Python call is copied first and shown to the policy from the copy. A model's JSON is read as the
annotations ask for, and what is decided is the form that was read, because that is what runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from agenttool_otel.call.invocation import NOT_READ, Invocation
from agenttool_otel.call.phases.in_place import keep_originals
from agenttool_otel.call.phases.inputs import differs, is_partial
from agenttool_otel.catalog.parameters import Parameters
from agenttool_otel.values.conversion import quick_object
from agenttool_otel.values.inspection import Kind, kind_of
from agenttool_otel.values.policy_value import decided_form, to_policy_value
from agenttool_otel.values.snapshot import snapshot

_IMMUTABLE = frozenset({str, int, float, bool, bytes, type(None), complex})
_TAGS = frozenset({"$truncated", "$error"})
_EXACT_NUMBERS = frozenset({Kind.DECIMAL, Kind.FRACTION})


def bind_python(call: Invocation) -> None:
    """Bind a Python call's arguments: ``bound`` is a copy of what was given, ``model_input`` its
    JSON form.
    """
    if (parameters := call.spec.parameters) is None:
        raise TypeError("this tool takes no positional call")
    asked = _read(call, parameters) if parameters.reader is not None else None
    _bind_read(call, parameters)
    call.inputs.unchecked = True
    if asked is not None:
        if call.inputs.observable_input is NOT_READ:
            call.inputs.observable_input = call.inputs.model_input
        call.inputs.model_input = asked
        call.inputs.validated = True


def bind_read(call: Invocation) -> None:
    """Bind the arguments of a Python call that was paused: its reader has read them before
    the pause.
    """
    if (parameters := call.spec.parameters) is None:
        raise TypeError("this tool takes no positional call")
    _bind_read(call, parameters)
    call.inputs.unchecked = True


def _read(call: Invocation, parameters: Parameters) -> dict[str, Any]:
    """Let the callable's own reader read the arguments; return what was given, as JSON."""
    args = call.call_args
    kwargs = call.call_kwargs
    try:
        given = parameters.flatten(parameters.bind(args, kwargs))
    except (TypeError, ValueError):  # an alias is no parameter's name
        given = dict(kwargs)
    visible = {}
    for name, value in given.items():
        if name not in parameters.internal:
            visible[name] = value
    asked = to_policy_value(visible)
    if parameters.reader is not None:
        call.call_args, call.call_kwargs = parameters.reader.read(args, kwargs)
    if isinstance(asked, dict):
        return asked
    return {}


def _bind_read(call: Invocation, parameters: Parameters) -> None:
    """Bind arguments as the callable gets them."""
    bound = parameters.bind(call.call_args, call.call_kwargs)
    added = parameters.fill(bound)
    if added or not _IMMUTABLE.issuperset(map(type, bound.values())):
        # copied before it is shown: another thread may change it between the two
        originals = {}
        for name, value in bound.items():
            if name not in added:
                originals[name] = value
        bound = _copied(parameters, bound)
        call.call_args, call.call_kwargs = parameters.unbind(bound)
        call.inputs.bound = bound
        keep_originals(call, originals)
    call.inputs.bound = bound
    flat = parameters.flatten(bound)
    shown: Any = quick_object(flat)
    if shown is None:
        shown = to_policy_value(flat)
    call.inputs.model_input = shown
    if added:
        call.inputs.observable_input = {**parameters.defaults, **shown}
        asked = {}
        for name, value in shown.items():
            if name not in added:
                asked[name] = value
        call.inputs.model_input = asked


class PlainArguments(NamedTuple):
    """The arguments of a Python call that can't change."""

    bound: dict[str, Any]  # by name
    shown: dict[str, Any]  # their JSON form
    small: bool  # whether they are few plain values, see ``quick_object``


def plain_arguments(
    parameters: Parameters, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> PlainArguments | None:
    """Bind the arguments of a Python call that can't change.

    ``None`` where one may have to be copied, or is shown only in part.

    Raises:
        TypeError: they don't fit the signature.
    """
    bound = parameters.bind(args, kwargs)
    if parameters.fill(bound) or not _IMMUTABLE.issuperset(map(type, bound.values())):
        return None
    return _shown_whole(bound, parameters.flatten(bound))


def plain_values(bound: dict[str, Any]) -> PlainArguments | None:
    """The same of arguments that a framework has bound."""
    if not _IMMUTABLE.issuperset(map(type, bound.values())):
        return None
    return _shown_whole(bound, bound)


def json_values(arguments: dict[str, Any]) -> PlainArguments | None:
    """The same of JSON arguments, lists and objects among them: what is shown is a copy, and what
    runs is another.
    """
    read = _shown_whole(arguments, arguments)
    return None if read is None else read._replace(bound=snapshot(read.shown))


def _shown_whole(bound: dict[str, Any], flat: dict[str, Any]) -> PlainArguments | None:
    shown: Any = quick_object(flat)
    if shown is not None and _TAGS.isdisjoint(shown):
        return PlainArguments(bound, shown, small=True)
    shown = to_policy_value(flat)
    if not isinstance(shown, dict) or is_partial(shown):
        return None
    return PlainArguments(bound, shown, small=False)


def bind_json(call: Invocation) -> None:
    """Bind a model's JSON arguments: internal ones are refused, the others become what the
    annotations ask for.
    """
    spec = call.spec
    parameters = spec.parameters
    arguments = to_policy_value(call.call_kwargs)
    if not isinstance(arguments, dict):
        raise ValueError("arguments are not an object")
    call.inputs.model_input = arguments
    if parameters is None:
        call.inputs.bound = snapshot(arguments)
        return
    if not parameters.internal.isdisjoint(arguments):
        raise ValueError("an internal argument was given")
    call.inputs.bound = {}
    if parameters.reader is not None:
        _bind_json_read(call, parameters, arguments)
        return
    if not spec.check.is_valid(arguments):
        return  # the pipeline reports what is wrong
    given = parameters.spread(arguments)
    # Decimal("0.1") of a program is read as it is: as a number of JSON it may have lost digits
    for name, value in call.call_kwargs.items():
        if name in given and kind_of(value) in _EXACT_NUMBERS:
            given[name] = value
    bound = {}
    as_given = True
    for name, value in given.items():
        bound[name] = parameters.coerce(name, value)
        if not _is_as_given(bound[name], value):
            as_given = False
    added = parameters.fill(bound)
    if added or not as_given:
        bound = _copied(parameters, bound)
        call.inputs.observable_input = {
            **parameters.defaults,
            **decided_form(parameters.flatten(bound), arguments),
        }
    call.inputs.bound = bound
    call.call_args, call.call_kwargs = parameters.unbind(bound)


def _bind_json_read(call: Invocation, parameters: Parameters, arguments: dict[str, Any]) -> None:
    """Let the callable's own reader read a model's arguments; what it gives is decided."""
    if parameters.reader is None:
        return
    given = {name: call.call_kwargs.get(name) for name in arguments}
    plain = not any(kind_of(value) in _EXACT_NUMBERS for value in given.values())
    known = parameters.spread(arguments if plain else given)
    if plain and parameters.reader.by_name:
        args, kwargs = parameters.reader.read_json(arguments)
    else:
        args, kwargs = parameters.unbind(known)
        if parameters.rest is None:
            # the reader refuses a name that no field has: it may be an alias
            for name, value in arguments.items():
                if name not in known:
                    kwargs[name] = value
        args, kwargs = parameters.reader.read(args, kwargs)
    bound = parameters.bind(args, kwargs)
    parameters.fill(bound)
    bound = _copied(parameters, bound)
    call.inputs.bound = bound
    call.call_args, call.call_kwargs = parameters.unbind(bound)
    call.inputs.observable_input = {
        **parameters.defaults,
        **decided_form(parameters.flatten(bound), arguments),
    }
    call.inputs.unchecked = True
    call.inputs.validated = True


def bind_again(call: Invocation) -> None:
    """Bind the arguments that a JSON call of this process had when it paused; they are not
    read again.
    """
    parameters = call.spec.parameters
    ticket = call.ticket
    if ticket is None:
        raise ValueError("nothing was paused")
    asked = ticket.original_arguments
    if parameters is None:
        # a tool that is declared by a schema: its arguments were read as they are
        call.inputs.model_input = asked
        call.inputs.bound = snapshot(asked)
        return
    bound = parameters.bind(call.call_args, call.call_kwargs)
    call.inputs.model_input = asked
    call.inputs.bound = bound
    call.inputs.observable_input = {
        **parameters.defaults,
        **decided_form(parameters.flatten(bound), asked),
    }
    if differs(call.inputs.observable_input, asked):
        raise ValueError("the arguments are not what was asked for")
    call.inputs.validated = True


def bind_permitted(call: Invocation) -> None:
    """Bind the JSON arguments that another process permitted a call with; what can't be read as
    before stays JSON.
    """
    parameters = call.spec.parameters
    given = call.inputs.permission_input
    call.inputs.bound = {}
    try:
        if parameters is None:
            call.inputs.bound = snapshot(given)
            return
        bound = {}
        for name, value in parameters.spread(given).items():
            bound[name] = parameters.coerce(name, value)
        call.inputs.bound = bound
    except (TypeError, ValueError):
        return


def rebind_python(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Put a changed JSON input into the Python arguments: what did not change stays the
    object it was.
    """
    if (parameters := call.spec.parameters) is None:
        call.inputs.bound = call.call_kwargs = snapshot(after)
        return
    rest = parameters.rest
    present = call.inputs.bound
    bound = {}
    for name, value in present.items():
        if name in parameters.internal and name != rest:
            bound[name] = value
    for name, value in parameters.spread(after).items():
        if name == rest:
            options = parameters.coerce(name, value)
            bound[name] = _unchanged_kept(options, present.get(name, {}), before, value)
        elif name in present and name in before and not differs(before[name], value):
            bound[name] = present[name]
        else:
            bound[name] = parameters.coerce(name, value)
    parameters.fill(bound)
    call.inputs.bound = _copied(parameters, bound)
    call.call_args, call.call_kwargs = parameters.unbind(call.inputs.bound)
    read = {**parameters.defaults, **decided_form(parameters.flatten(call.inputs.bound), after)}
    if differs(read, after):
        call.inputs.permission_input = read


def _unchanged_kept(
    options: dict[str, Any],
    present: dict[str, Any],
    before: dict[str, Any],
    after: dict[str, Any],
) -> dict[str, Any]:
    """Return the arguments of ``**options``, those that did not change as the objects they were."""
    kept = dict(options)
    for name in options:
        if name in present and name in before and not differs(before[name], after[name]):
            kept[name] = present[name]
    return kept


def _is_as_given(read: Any, value: Any) -> bool:
    """Return whether an argument was read as the very JSON that it is, and is nobody else's: a plain
    value or list.
    """
    kind = type(read)
    if kind in _IMMUTABLE:
        return read is value or (kind is type(value) and bool(read == value))
    if kind is not list or type(value) is not list:
        return False
    if read is value or len(read) != len(value):
        return False
    for item, given in zip(read, value, strict=True):
        # 1 == True
        if type(item) not in _IMMUTABLE or type(item) is not type(given) or item != given:
            return False
    return True


def _copied(parameters: Parameters, bound: dict[str, Any]) -> dict[str, Any]:
    """Copy what is shown; what is internal is nobody's to decide on and stays what it is."""
    copies = {}
    for name, value in bound.items():
        is_internal = name in parameters.internal and name != parameters.rest
        copies[name] = value if is_internal else snapshot(value)
    return copies
