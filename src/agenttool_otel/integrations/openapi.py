"""The operations of an HTTP service as governed tools, from its OpenAPI 3 document.

Each operation is a tool: its parameters and its JSON body are the arguments, its method states whether it
changes anything. A request goes out by the program's own httpx client, which has the address of the
service and its credentials; neither is an argument that a model gives.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

import httpx

from agenttool_otel.call.runtime import Runtime
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.accounting import place_of
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import ForeignTool, foreign_tool
from agenttool_otel.records import OpenApiMapping

_logger = logging.getLogger("agenttool_otel.doors")

_READING: Final = ("get", "head")
_METHODS: Final = (*_READING, "post", "put", "patch", "delete")
_SCHEMAS: Final = "#/components/schemas/"
_BODY: Final = "body"
"""The argument that is an operation's JSON body."""
_MOST_REFERENCES: Final = 20

_STYLES: Final = {"path": "simple", "query": "form", "header": "simple"}
"""Where parameters stand that are arguments, and how they are written there."""
_PATH: Final = re.compile(r"/(?!/)[^?#]*")
_SLASHES: Final = re.compile(r"[/\\]")
_NO_LETTERS: Final = re.compile(r"[^A-Za-z0-9-]+")

# of the client's making; OpenAPI has the first three ignored as parameters
_OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "authorization",
        "content-type",
        "connection",
        "content-length",
        "cookie",
        "host",
        "proxy-authorization",
        "transfer-encoding",
        "upgrade",
    }
)


def openapi_tools(
    document: Mapping[str, Any],
    client: httpx.Client | httpx.AsyncClient,
    *,
    governor: Runtime | None = None,
    facts: Mapping[str, GovernOptions] | None = None,
    server: str = "",
) -> dict[str, ForeignTool]:
    """Declare the operations of a service as tools, and return them by name.

    An operation that can't be called by this client is logged and left out. Of one whose schema is no JSON
    Schema each call is refused.

    Args:
        document: The OpenAPI document, as parsed JSON.
        client: What sends the requests; ``base_url`` is the service. The tools of an ``AsyncClient`` are
            asynchronous.
        governor: The Governor; ``None`` for the default one.
        facts: Facts of tools by name or glob; they come before those that a method implies.
        server: Name of the service, a part of the tools' namespace.

    Raises:
        ConfigurationError: The document is none of OpenAPI 3.
    """
    if not str(document.get("openapi", "")).startswith("3."):
        raise ConfigurationError("this is no OpenAPI 3 document")
    tools: dict[str, ForeignTool] = {}
    for operation in _operations(document):
        try:
            if operation.name in tools:
                raise ConfigurationError("another operation has this name")
            request = _read(document, operation)
            schema = _schema(document, request, operation.stated)
        except ConfigurationError as error:
            _logger.error("the operation %s is left out: %s", operation.name, error)
            continue
        options = {
            **_method_facts(operation.method),
            "external_mappings": [_mapping(document, client, operation)],
            **options_for(facts or {}, operation.name),
        }
        tool = foreign_tool(
            operation.name,
            schema,
            source="openapi",
            server=server,
            description=operation.description,
            facts={operation.name: cast(GovernOptions, options)},
            body=_sender(client, request),
            is_async=isinstance(client, httpx.AsyncClient),
            governor=governor,
        )
        tool.register()
        tools[operation.name] = tool
    return tools


class _Operation(NamedTuple):
    """An operation as the document states it."""

    method: str
    path: str
    stated: Mapping[str, Any]
    parameters: list[Any]  # those of its path, too

    @property
    def name(self) -> str:
        """Its id; where it has none, one of the letters that models accept: ``get_pets_id``."""
        made = _NO_LETTERS.sub("_", f"{self.method}_{self.path}").strip("_")
        return str(self.stated.get("operationId") or made)

    @property
    def description(self) -> str:
        return str(self.stated.get("description") or self.stated.get("summary") or self.name)


def _operations(document: Mapping[str, Any]) -> Iterator[_Operation]:
    for path, item in (document.get("paths") or {}).items():
        for method in _METHODS:
            if method in item:
                stated = item[method]
                yield _Operation(method, path, stated, [*_listed(item), *_listed(stated)])


def _listed(item: Mapping[str, Any]) -> list[Any]:
    return list(item.get("parameters") or ())


def _method_facts(method: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "tool_kind": "openapi_operation",
        "access_kinds": ["network"],
        "result_trust": "free_text",
    }
    if method in _READING:
        return {**facts, "read_only": True, "destructive": False}
    facts.update(read_only=False, write_effects=["remote_mutation"])
    # what a POST destroys is not known
    if method == "delete":
        facts["destructive"] = True
    return facts


def _mapping(
    document: Mapping[str, Any], client: httpx.Client | httpx.AsyncClient, operation: _Operation
) -> dict[str, Any]:
    """Return the operation's ids as the records have them."""
    needed = operation.stated.get("security", document.get("security")) or ()
    schemes = sorted({name for alternative in needed for name in alternative})
    mapping = OpenApiMapping(
        operation_id=operation.stated.get("operationId"),
        method=operation.method.upper(),
        path=operation.path,
        # https://user:password@pets.example
        server_url=str(client.base_url.copy_with(userinfo=b"")),
        security_scheme_refs=schemes or None,
    )
    return mapping.model_dump(mode="json", exclude_none=True)


# --- what an operation takes --------------------------------------------------------------------------


@dataclass(slots=True)
class _Request:
    """How the arguments of an operation become a request.

    Attributes:
        method: of HTTP.
        path: with ``{name}`` where an argument goes.
        parameters: the stated parameters, by name.
    """

    method: str
    path: str
    parameters: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def options(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of ``client.request``."""
        url, query, headers = self.path, {}, {}
        for name, stated in self.parameters.items():
            if name not in arguments:
                continue
            value = arguments[name]
            if stated["in"] == "path":
                url = url.replace(f"{{{name}}}", _segment(name, value))
            elif stated["in"] == "query":
                query[name] = value
            else:
                headers[name] = _text(value)
        options: dict[str, Any] = {"method": self.method, "url": url}
        if query:
            options["params"] = query
        if headers:
            options["headers"] = headers
        if _BODY in arguments and _BODY not in self.parameters:
            options["json"] = arguments[_BODY]
        return options


def _segment(name: str, value: Any) -> str:
    """Return an argument as one segment of a path."""
    text = _text(value)
    # /pets/../admin is another operation; so is /pets/a%2F..%2F..%2Fadmin for some servers
    if not text or not {".", ".."}.isdisjoint(_SLASHES.split(text)):
        raise ValueError(f"{name} is no part of a path")
    return quote(text, safe="")


def _text(value: Any) -> str:
    """Return a value as a service reads it: ``true``, and not ``True``."""
    return value if isinstance(value, str) else json.dumps(value)


def _read(document: Mapping[str, Any], operation: _Operation) -> _Request:
    # another host's, or with a query of its own
    if not _PATH.fullmatch(operation.path):
        raise ConfigurationError(f"its path {operation.path!r} is none")
    request = _Request(operation.method.upper(), operation.path)
    keys = _keys(document)
    for entry in operation.parameters:
        stated = _followed(document, entry)
        name, place = str(stated.get("name")), stated.get("in")
        # the client has the credentials
        if (place, name.lower()) in keys or (place == "header" and name.lower() in _OWN_HEADERS):
            continue
        known = request.parameters.get(name)
        # an operation may state a parameter of its path again
        if not _is_simple(document, stated) or (known and known["in"] != place):
            raise ConfigurationError(f"the parameter {name!r} in {place} can't be an argument")
        request.parameters[name] = stated
    return request


def _keys(document: Mapping[str, Any]) -> set[tuple[Any, str]]:
    """Return the parameters that are API keys: ``("header", "x-api-key")``."""
    schemes = (document.get("components") or {}).get("securitySchemes") or {}
    stated = [_followed(document, entry) for entry in schemes.values()]
    return {
        (scheme.get("in"), str(scheme.get("name")).lower())
        for scheme in stated
        if scheme.get("type") == "apiKey"
    }


def _is_simple(document: Mapping[str, Any], stated: Mapping[str, Any]) -> bool:
    """Return whether httpx sends a parameter as the document has it."""
    place = stated.get("in")
    if place not in _STYLES or stated.get("style", _STYLES[place]) != _STYLES[place]:
        return False
    schema = _followed(document, stated.get("schema") or {})
    # an object in a query is sent member by member, a list in a path with commas
    kinds = schema.get("type")
    complex_kinds = {"object"} if place == "query" else {"object", "array"}
    listed = kinds if isinstance(kinds, list) else [kinds]
    return (
        "content" not in stated
        and complex_kinds.isdisjoint(listed)
        and (place != "query" or stated.get("explode", True))
    )


def _followed(document: Mapping[str, Any], entry: Any) -> Mapping[str, Any]:
    """Return what a reference within the document leads to."""
    for _ in range(_MOST_REFERENCES):
        if not isinstance(entry, Mapping):
            break
        reference = entry.get("$ref")
        if reference is None:
            return entry
        entry = _at(document, str(reference))
    raise ConfigurationError("a reference leads nowhere")


def _at(document: Mapping[str, Any], reference: str) -> Any:
    # another document is not fetched
    if not reference.startswith("#/"):
        raise ConfigurationError(f"the reference {reference} leads out of the document")
    found: Any = document
    for token in place_of(reference[1:]):
        found = found.get(token) if isinstance(found, Mapping) else None
    return found


# --- the schema of its arguments ----------------------------------------------------------------------


def _schema(
    document: Mapping[str, Any], request: _Request, operation: Mapping[str, Any]
) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, stated in request.parameters.items():
        described = dict(stated.get("schema") or {})
        if "description" in stated:
            described.setdefault("description", stated["description"])
        properties[name] = described
        if stated.get("required") or stated["in"] == "path":
            required.append(name)
    _add_body(document, operation, properties, required)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    named = (document.get("components") or {}).get("schemas") or {}
    used = _used(schema, named)
    if used:
        schema["$defs"] = {name: named[name] for name in sorted(used)}
    moved: dict[str, Any] = _moved(schema)
    return moved


def _add_body(
    document: Mapping[str, Any],
    operation: Mapping[str, Any],
    properties: dict[str, Any],
    required: list[str],
) -> None:
    if "requestBody" not in operation:
        return
    stated = _followed(document, operation["requestBody"])
    content = (stated.get("content") or {}).get("application/json")
    if _BODY in properties or content is None:
        raise ConfigurationError(
            "its body can't be an argument: it is no JSON, or has another's name"
        )
    properties[_BODY] = content.get("schema") or {}
    if stated.get("required"):
        required.append(_BODY)


def _used(schema: Any, named: Mapping[str, Any]) -> set[str]:
    """Return the names of the shared schemas that a schema leads to."""
    used: set[str] = set()
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting.extend(found)
        if not isinstance(found, Mapping):
            continue
        waiting.extend(found.values())
        reference = found.get("$ref")
        if not isinstance(reference, str):
            continue
        name = reference.removeprefix(_SCHEMAS)
        if name not in named:
            raise ConfigurationError(f"the schema {reference} is not in the document")
        if name not in used:
            used.add(name)
            waiting.append(named[name])
    return used


def _moved(schema: Any) -> Any:
    """Return a schema whose references lead to its own ``$defs``."""
    if isinstance(schema, list):
        return [_moved(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = {name: _moved(part) for name, part in schema.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str):
        moved["$ref"] = f"#/$defs/{reference.removeprefix(_SCHEMAS)}"
    return moved


# --- the request --------------------------------------------------------------------------------------


def _sender(client: httpx.Client | httpx.AsyncClient, request: _Request) -> Any:
    if isinstance(client, httpx.AsyncClient):
        return partial(_asend, client, request)
    return partial(_send, client, request)


def _send(client: httpx.Client, request: _Request, arguments: dict[str, Any]) -> Any:
    return _content(client.request(**request.options(arguments)))


async def _asend(client: httpx.AsyncClient, request: _Request, arguments: dict[str, Any]) -> Any:
    return _content(await client.request(**request.options(arguments)))


def _content(response: httpx.Response) -> Any:
    """Return what a response holds: JSON, or its text; raise for a failure."""
    response.raise_for_status()
    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == "application/json" or kind.endswith("+json"):
        return response.json()
    return response.text
