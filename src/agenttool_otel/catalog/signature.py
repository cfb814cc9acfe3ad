"""Reads a callable once, at decoration: its docstring, its parameters, and the model-facing schema
of these.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from types import CellType, SimpleNamespace
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NamedTuple,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    create_model,
)
from pydantic.errors import PydanticInvalidForJsonSchema

from agenttool_otel.catalog.parameters import EMPTY, Argument, Parameters
from agenttool_otel.catalog.plain_types import (
    is_plain_default,
    plain_object,
    plain_property,
    plain_type,
)
from agenttool_otel.catalog.reader import call_reader
from agenttool_otel.values.tables import load_table

_logger = logging.getLogger("agenttool_otel.catalog")

# ``*_`` and ``**_`` take whatever a caller adds: nobody injects through them, so they are shown
# like any argument.
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# Types that a framework injects and no model may produce, by qualified name so that nothing is
# imported.
_INJECTED = frozenset(load_table(__package__, "tables.json")["injected_types"])


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description and the parameter descriptions of a callable."""
    text = inspect.getdoc(function) or ""
    if not text:
        return "", {}
    if _is_a_sentence(text):
        return text, {}
    import docstring_parser

    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    parameters = {param.arg_name: param.description or "" for param in parsed.params}
    body = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    return body or text, {name: value for name, value in parameters.items() if value}


def _is_a_sentence(text: str) -> bool:
    """Return whether a docstring is one line without a field: ``:param x: a number``, ``@param``."""
    return "\n" not in text and ":" not in text and "@" not in text


def read_parameters(
    function: Callable[..., Any],
    *,
    drop_first: bool = False,
    internal_only: Sequence[str] = (),
    descriptions: Mapping[str, str] | None = None,
    strict: bool = True,
) -> Parameters:
    """Read a callable's parameters once, at decoration."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if drop_first and parameters:
        parameters = parameters[1:]
    signature = signature.replace(parameters=parameters)
    hints = _hints(function)
    arguments: dict[str, Argument] = {}
    fields: dict[str, _Field] = {}
    takes_others = False
    for parameter in parameters:
        name = parameter.name
        annotation = _annotation(function, parameter, hints)
        argument = _argument(parameter, annotation, is_internal=name in internal_only)
        arguments[name] = argument
        if argument.internal:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_others = True
            continue
        description = descriptions.get(name) if descriptions is not None else None
        fields[name] = _field(parameter, annotation, argument.adapter, description)
    is_strict = strict and not takes_others
    schema = _plain_schema(fields, strict=is_strict)
    is_plain = schema is not None
    if schema is None:
        schema = _schema(fields, strict=is_strict)
    internal_names = frozenset(
        argument.name for argument in arguments.values() if argument.internal
    )
    return Parameters(
        arguments,
        schema,
        signature,
        internal_names,
        _defaults(schema),
        receiver=drop_first,
        is_plain=is_plain,
        function=function,
        reader=call_reader(function, drop_first=drop_first),
    )


def _annotation(
    function: Callable[..., Any], parameter: inspect.Parameter, hints: Mapping[str, Any]
) -> Any:
    """Return what a parameter is annotated with; ``Any`` where it has no annotation, or one that
    can't be resolved: any value, decided all the same.
    """
    annotation = hints.get(parameter.name, parameter.annotation)
    if annotation is EMPTY:
        return Any
    if _is_unresolved(annotation):
        _warn_of_unresolved(function, parameter.name, annotation)
        return Any
    return annotation


def _argument(parameter: inspect.Parameter, annotation: Any, *, is_internal: bool) -> Argument:
    """Read one parameter; a model gives no internal one."""
    # def f(path, _client=None); but *_rest takes a model's arguments
    is_private = parameter.name.startswith("_") and parameter.kind not in _VARIABLE
    internal = is_internal or is_private or _is_injected(annotation)
    adapter = None
    if not internal:
        adapter, internal = _adapter(_declared_type(parameter, annotation))
    return Argument(parameter.name, parameter.kind, _default(parameter), internal, adapter)


def _defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults in a schema, by argument."""
    defaults = {}
    for name, argument in schema.get("properties", {}).items():
        if isinstance(argument, dict) and "default" in argument:
            defaults[name] = argument["default"]
    return defaults


def _warn_of_unresolved(function: Any, name: str, annotation: Any) -> None:
    """Warn at decoration that a model's argument will arrive as plain JSON."""
    _logger.warning(
        "%s: the annotation of %r, %s, can't be resolved, so a call of JSON arguments gives it plain JSON data; define"
        " or import the type at module level",
        getattr(function, "__qualname__", type(function).__name__),
        name,
        annotation if isinstance(annotation, str) else repr(annotation),
    )


def without_partial(function: Any) -> Any:
    """Return the callable behind ``functools.partial`` objects, and what is like them."""
    while hasattr(function, "func") and hasattr(function, "keywords"):
        function = function.func
    return function


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = without_partial(function)
    if not inspect.isroutine(target) and not inspect.isclass(target) and callable(target):
        target = type(target).__call__
    names = _names_around(target)
    try:
        return get_type_hints(target, localns=names or None, include_extras=True)
    except Exception:
        hints = getattr(target, "__annotations__", {}) or {}
        return {name: _hint(target, value, names) for name, value in hints.items()}


def _hint(function: Any, annotation: Any, around: Mapping[str, Any]) -> Any:
    """Resolve one annotation of a callable of which another one can't be resolved."""
    alone = SimpleNamespace(
        __annotations__={"it": annotation}, __module__=getattr(function, "__module__", None)
    )
    names = {**getattr(function, "__globals__", {}), **around}
    try:
        return get_type_hints(alone, globalns=names, localns=names, include_extras=True)["it"]
    except Exception:
        return annotation


def _names_around(function: Any) -> dict[str, Any]:
    """Return the names that a function's annotations may mean beside those of its module.

    Under ``from __future__ import annotations`` an annotation is a text, and a class that is local
    to a function is in no namespace that outlives it: it is looked for in the functions and class
    bodies that are being run around this one, and among what the function itself uses of them.
    """
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    hints = getattr(function, "__annotations__", None) or {}
    if code is None or not any(isinstance(hint, str) for hint in hints.values()):
        return {}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    found: dict[str, Any] = {}
    frame = inspect.currentframe()
    while frame is not None:
        inside = function.__qualname__.startswith(f"{frame.f_code.co_qualname}.")
        if inside and frame.f_globals is function.__globals__:
            found = {**frame.f_locals, **found}  # what is nearer comes first
        frame = frame.f_back
    return {**found, **names}


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # the variable has no value yet
        return False


def _is_unresolved(annotation: Any) -> bool:
    """Return whether an annotation is, or holds, a name that stands for nothing here."""
    if isinstance(annotation, (str, ForwardRef)):
        return True
    if get_origin(annotation) is Literal:
        return False
    parts = (
        get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)
    )
    return any(_is_unresolved(part) for part in parts if not isinstance(part, list))


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
    if (plain := plain_type(annotation)) is not None:
        return plain.adapter, False
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


class _Field(NamedTuple):
    """What is known of one argument of a model."""

    declared: Any  # its type
    default: Any  # its default, or ``inspect.Parameter.empty``
    description: str | None


def _field(
    parameter: inspect.Parameter,
    annotation: Any,
    adapter: TypeAdapter[Any] | None,
    description: str | None,
) -> _Field:
    declared = _declared_type(parameter, annotation)
    default = _default(parameter)
    if default is None and adapter is not None:
        try:
            adapter.validate_python(None)
        except ValueError:
            declared = declared | None  # "x: int = None" means an optional int
    return _Field(declared, default, description)


def _plain_schema(fields: dict[str, _Field], *, strict: bool) -> dict[str, Any] | None:
    """Return the schema of arguments that all have plain types; ``None`` where one has another."""
    properties: dict[str, dict[str, Any]] = {}
    for name, field in fields.items():
        plain = plain_type(field.declared)
        if plain is None or not (field.default is EMPTY or is_plain_default(field.default)):
            return None
        default = ... if field.default is EMPTY else field.default
        properties[name] = plain_property(plain, default, field.description)
    required = [name for name, field in fields.items() if field.default is EMPTY]
    return plain_object(properties, required, takes_others=not strict)


def _model_field(name: str, field: _Field) -> Any:
    # the alias carries the real name: "schema" or "json" as a field would shadow BaseModel's own
    # attributes
    options: dict[str, Any] = {"alias": name}
    if field.description:
        options["description"] = field.description
    if field.default is EMPTY:
        return (field.declared, Field(**options))
    return (field.declared, Field(default=field.default, **options))


def _schema(fields: dict[str, _Field], *, strict: bool) -> dict[str, Any]:
    extra = "forbid" if strict else "allow"
    config = ConfigDict(extra=extra, arbitrary_types_allowed=True)  # type: ignore[typeddict-item]
    model_fields = {
        f"field_{index}": _model_field(name, field)
        for index, (name, field) in enumerate(fields.items())
    }
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
