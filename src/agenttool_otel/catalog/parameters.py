"""A callable's parameters, read once: binding, the model-facing schema, and the way back to a call.

Binding is on the path of every call, so it is done with plain dictionaries; ``inspect.Signature.bind`` serves only the
rare shapes and the error messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, create_model
from pydantic.errors import PydanticInvalidForJsonSchema

__all__ = ["Argument", "Parameters", "read_parameters"]

_EMPTY: Any = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_SIMPLE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

# Types that a framework injects and no model may produce, by qualified name so that nothing is imported.
_INJECTED = frozenset(
    {
        "InjectedToolArg",
        "InjectedToolCallId",
        "InjectedState",
        "InjectedStore",
        "ToolRuntime",
        "RunnableConfig",
        "CallbackManagerForToolRun",
        "AsyncCallbackManagerForToolRun",
        "RunContextWrapper",
        "ToolContext",
        "RunContext",
        "CancellationToken",
    }
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One parameter.

    Attributes:
        name: its name.
        kind: its ``inspect`` kind.
        default: its default, or ``inspect.Parameter.empty``.
        internal: no model may produce it: injected, private, or of a type that JSON Schema can't describe.
        adapter: pydantic's reader of its type; ``None`` where JSON data needs no conversion.
    """

    name: str
    kind: Any
    default: Any
    internal: bool
    adapter: TypeAdapter[Any] | None


@dataclass(slots=True)
class Parameters:
    """All parameters of one callable.

    Attributes:
        arguments: the parameters by name, in order.
        schema: model-facing JSON Schema.
        signature: the signature without ``self``.
        internal: names that are not model-facing.
        defaults: JSON-able defaults of model-facing parameters.
    """

    arguments: dict[str, Argument]
    schema: dict[str, Any]
    signature: inspect.Signature
    internal: frozenset[str]
    defaults: dict[str, Any]
    _positional: tuple[str, ...] = field(default=(), repr=False)
    _required: frozenset[str] = field(default=frozenset(), repr=False)
    _keywords: frozenset[str] = field(default=frozenset(), repr=False)
    _simple: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        values = self.arguments.values()
        self._simple = all(argument.kind in _SIMPLE for argument in values)
        self._positional = tuple(a.name for a in values if a.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._required = frozenset(a.name for a in values if a.default is _EMPTY)
        self._keywords = frozenset(self.arguments)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given arguments by name; defaults are not filled in.

        Args:
            args: positional arguments, without ``self``.
            kwargs: keyword arguments.

        Raises:
            TypeError: they don't fit, in the words that Python itself would use.
        """
        if self._simple and len(args) <= len(self._positional):
            bound = dict(zip(self._positional, args, strict=False))
            if kwargs:
                if not kwargs.keys() <= self._keywords or not kwargs.keys().isdisjoint(bound):
                    return dict(self.signature.bind(*args, **kwargs).arguments)
                bound.update(kwargs)
            if self._required <= bound.keys():
                return bound
        return dict(self.signature.bind(*args, **kwargs).arguments)

    def unbind(self, bound: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Turn arguments by name back into what a call takes; the inverse of ``bind``.

        Args:
            bound: arguments by name.
        """
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        positional_ok = True
        for name, argument in self.arguments.items():
            if name not in bound:
                positional_ok = False
                continue
            value = bound[name]
            if argument.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif argument.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif positional_ok and argument.kind in _POSITIONAL:
                args.append(value)
            else:
                kwargs[name] = value
        return tuple(args), kwargs

    def spread(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Put a model's argument object into the form of ``bind``: unknown keys go to ``**kwargs`` where there is one.

        Args:
            arguments: JSON arguments by name, already validated.
        """
        rest = next((a.name for a in self.arguments.values() if a.kind is inspect.Parameter.VAR_KEYWORD), None)
        bound = {name: value for name, value in arguments.items() if name in self.arguments and name != rest}
        if rest is not None:
            extra = {name: value for name, value in arguments.items() if name not in self.arguments}
            if extra:
                bound[rest] = extra
        return bound

    def flatten(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model-facing arguments of a bound call: no internal ones, ``**kwargs`` laid open.

        Args:
            bound: arguments by name.
        """
        if self._simple and not self.internal:
            return dict(bound)
        flat: dict[str, Any] = {}
        for name, value in bound.items():
            argument = self.arguments.get(name)
            if argument is not None and argument.kind is inspect.Parameter.VAR_KEYWORD:
                flat.update(value)
            elif name not in self.internal:
                flat[name] = list(value) if argument and argument.kind is inspect.Parameter.VAR_POSITIONAL else value
        return flat

    def coerce(self, name: str, value: Any) -> Any:
        """Turn one JSON value into what the parameter's annotation asks for.

        Args:
            name: parameter name.
            value: JSON value.

        Raises:
            ValueError: pydantic refuses it.
        """
        argument = self.arguments.get(name)
        if argument is None or argument.adapter is None:
            return value
        return argument.adapter.validate_python(value)

    def accepts(self, name: str, value: Any) -> bool:
        """Tell whether a Python value fits the annotation as it is, without conversion.

        Args:
            name: parameter name.
            value: the value a Python caller gave.
        """
        argument = self.arguments.get(name)
        if argument is None:
            return False
        if argument.adapter is None:
            return False
        try:
            argument.adapter.validate_python(value, strict=True)
        except Exception:
            return False
        return True


def read_parameters(
    function: Callable[..., Any],
    *,
    drop_first: bool = False,
    internal_only: Sequence[str] = (),
    descriptions: Mapping[str, str] | None = None,
    strict: bool = True,
) -> Parameters:
    """Read a callable's parameters once, at decoration.

    Args:
        function: the callable.
        drop_first: leave out ``self`` or ``cls``.
        internal_only: names that no model may produce.
        descriptions: parameter descriptions by name.
        strict: refuse arguments outside the schema.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if drop_first and parameters:
        parameters = parameters[1:]
    signature = signature.replace(parameters=parameters)
    hints = _hints(function)
    arguments: dict[str, Argument] = {}
    fields: dict[str, Any] = {}
    open_ended = False
    for parameter in parameters:
        annotation = hints.get(parameter.name, parameter.annotation)
        if isinstance(annotation, str):
            annotation = Any  # a forward reference that can't be resolved: any value, decided all the same
        if annotation is _EMPTY:
            annotation = Any
        internal = parameter.name in internal_only or parameter.name.startswith("_") or _is_injected(annotation)
        adapter = None
        if not internal:
            adapter, internal = _adapter(_declared_type(parameter, annotation))
        arguments[parameter.name] = Argument(parameter.name, parameter.kind, _default(parameter), internal, adapter)
        if internal:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            open_ended = True
            continue
        fields[parameter.name] = _field(parameter, annotation, adapter, (descriptions or {}).get(parameter.name))
    schema = _schema(fields, strict=strict and not open_ended)
    defaults = {
        name: spec["default"]
        for name, spec in schema.get("properties", {}).items()
        if isinstance(spec, dict) and "default" in spec
    }
    internal_names = frozenset(a.name for a in arguments.values() if a.internal)
    return Parameters(arguments, schema, signature, internal_names, defaults)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target: Any = function
    while hasattr(target, "func") and hasattr(target, "keywords"):  # functools.partial
        target = target.func
    if not inspect.isroutine(target) and not inspect.isclass(target) and callable(target):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except Exception:
        return dict(getattr(target, "__annotations__", {}) or {})


def _is_injected(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        base, *extras = get_args(annotation)
        return _is_injected(base) or any(_injected_name(extra) for extra in extras)
    if _injected_name(annotation):
        return True
    return any(_is_injected(part) for part in get_args(annotation) if part is not annotation)


def _injected_name(thing: Any) -> bool:
    cls = thing if isinstance(thing, type) else get_origin(thing) or type(thing)
    if not isinstance(cls, type):
        return False
    return any(base.__name__ in _INJECTED for base in cls.__mro__)


def _declared_type(parameter: inspect.Parameter, annotation: Any) -> Any:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return list[annotation]
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return dict[str, annotation]
    return annotation


def _adapter(annotation: Any) -> tuple[TypeAdapter[Any] | None, bool]:
    """Return pydantic's reader of a type, and whether the type is beyond JSON Schema."""
    if annotation is Any:
        return None, False
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema, PydanticUserError):
        return None, True
    except Exception:
        return None, False
    return adapter, False


def _default(parameter: inspect.Parameter) -> Any:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return ()
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return {}
    return parameter.default


def _field(
    parameter: inspect.Parameter, annotation: Any, adapter: TypeAdapter[Any] | None, description: str | None
) -> Any:
    declared = _declared_type(parameter, annotation)
    default = _default(parameter)
    if default is None and adapter is not None:
        try:
            adapter.validate_python(None)
        except ValueError:
            declared = declared | None  # "x: int = None" means an optional int
    # the alias carries the real name: "schema" or "json" as a field would shadow BaseModel's own attributes
    options: dict[str, Any] = {"alias": parameter.name}
    if description:
        options["description"] = description
    if default is _EMPTY:
        return (declared, Field(**options))
    return (declared, Field(default=default, **options))


def _schema(fields: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    extra = "forbid" if strict else "allow"
    config = ConfigDict(extra=extra, arbitrary_types_allowed=True)  # type: ignore[typeddict-item]
    model_fields = {f"field_{index}": spec for index, spec in enumerate(fields.values())}
    try:
        model = create_model("Arguments", __config__=config, **model_fields)
        schema = model.model_json_schema(by_alias=True)
    except Exception:
        schema = {"type": "object", "properties": {name: {} for name in fields}}
        if strict:
            schema["additionalProperties"] = False
    schema.pop("title", None)
    for spec in schema.get("properties", {}).values():
        if isinstance(spec, dict):
            spec.pop("title", None)
    return schema
