"""The options of ``govern``, checked: a word misspelt here would be a fact that nobody stated.

Words of a closed vocabulary are refused where they are unknown. The standard calls others
*initial*: a producer may have its own, so an unknown one is only logged. The stock bundle
does not take it for harmless: it asks about access kinds and write effects that are unknown to it,
and gives no leave to an unknown kind of tool.
"""

from __future__ import annotations

import logging
import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from agenttool_otel.catalog.options import GROUPS, RetryOptions
from agenttool_otel.catalog.parameters import Parameters
from agenttool_otel.context.validate import did_you_mean, maybe_text, one_of, texts, truth
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import (
    AccessKind,
    ContentType,
    ErrorClass,
    ExecutionKind,
    StatedWord,
    ToolKind,
    WriteEffect,
)
from agenttool_otel.values.tables import load_table

_logger = logging.getLogger("agenttool_otel.catalog")

TABLES: Final = load_table(__package__, "tables.json")
_OPEN: Final[Mapping[str, Iterable[str]]] = {
    "tool_kind": ToolKind,
    "execution_kind": ExecutionKind,
    "access_kinds": AccessKind,
    "write_effects": WriteEffect,
    "content_types": ContentType,
    "network_scope": ("none", "loopback", "internal", "internet"),
}
_SENSITIVITIES: Final[list[str]] = TABLES["sensitivities"]
_CLASSIFIERS: Final = (
    "classifier:command_read_only",
    "classifier:command_destructive",
    "same_as:is_read_only",
)
_SAFETY: Final = ("read_only", "destructive", "open_world", "concurrency_safe")


def check_options(options: Mapping[str, Any]) -> None:
    """Check names, types and words of what was stated about a tool, each fact alone (see
    ``flat_options``).

    Args:
        options: the facts.

    Raises:
        ConfigurationError: a name, a type or a word of a closed vocabulary is not known.
    """
    hints = _hints()
    for name in sorted(options.keys() - hints.keys(), key=str):
        near = did_you_mean(name, [*hints, *GROUPS])
        raise ConfigurationError(f"govern has no option {name!r}{near}")
    for name, value in options.items():
        if name in _SAFETY:
            _check_safety(name, value)
        elif value is not None and name != "result_trust":  # checked where it is read
            _check_type(name, value, hints[name])
    _check_sources(options.get("sources") or {})
    for name in _OPEN:
        _warn_of_unknown_words(name, options.get(name))
    sensitivity = options.get("data_sensitivity")
    if sensitivity is not None and did_you_mean(sensitivity, _SENSITIVITIES, cutoff=0.8):
        # a word of one's own is fine, but a misspelt "secret" would be kept like any other result
        one_of("data_sensitivity", sensitivity, _SENSITIVITIES)
    retry = options.get("retry")
    if retry is not None:
        _check_retry(retry)


def check_fields(
    options: Mapping[str, Any], schema: Mapping[str, Any], internal: Iterable[str]
) -> None:
    """Check that the arguments whose values must not be shown, or not be produced by a
    model, exist.
    """
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or schema.get("additionalProperties") not in (
        None,
        False,
    ):
        return  # other names may come
    known = {*properties, *internal}
    for name in options.get("sensitive_fields", ()):
        first = _first(name)
        if name not in known and first not in known and first != "*":
            raise ConfigurationError(
                f"sensitive_fields: the tool has no argument {first!r}{did_you_mean(first, known)};"
                f" it has {', '.join(sorted(known)) or 'none'}"
            )
    for name in options.get("internal_only_fields", ()):
        # forbidding what does not exist is harmless; forbidding the wrong one leaves the right one
        # open
        near = "" if name in properties else did_you_mean(name, set(properties), cutoff=0.8)
        if near:
            raise ConfigurationError(
                f"internal_only_fields: the tool has no argument {name!r}{near}"
            )


def check_references(options: Mapping[str, Any], parameters: Parameters | None) -> None:
    """Check that the arguments that are handed over by reference are parameters of the function."""
    for name in options.get("by_reference", ()):
        if parameters is None:
            raise ConfigurationError(
                "by_reference is for functions: this tool takes its arguments in its own way"
            )
        if name not in parameters.arguments:
            raise ConfigurationError(
                f"by_reference: the function has no parameter {name!r}{did_you_mean(name, set(parameters.arguments))};"
                f" it has {', '.join(parameters.arguments) or 'none'}"
            )


def _first(name: str) -> str:
    if name.startswith("/"):
        return name[1:].split("/")[0].replace("~1", "/").replace("~0", "~")
    return name.split(".")[0].split("[")[0]


def _check_safety(name: str, value: Any) -> None:
    if isinstance(value, bool) or callable(value) or value in _CLASSIFIERS:
        return
    if isinstance(value, str):
        raise ConfigurationError(
            f"{name} can't be {value!r}{did_you_mean(value, _CLASSIFIERS)}; it is True, False, a function of the"
            f" arguments, or one of {', '.join(_CLASSIFIERS)}"
        )
    raise ConfigurationError(
        f"{name} has to be True, False or a function of the arguments, not {type(value).__name__}"
    )


def _check_type(name: str, value: Any, hint: Any) -> None:
    origin = get_origin(hint)
    if origin is Literal:
        one_of(name, value, get_args(hint))
    elif origin is Sequence and get_args(hint) == (str,):
        texts(name, value)
    elif hint is str:
        maybe_text(name, value)
    elif hint is bool:
        truth(name, value)
    elif hint is int:
        _check_count(name, value)
    elif origin is Mapping or hint is RetryOptions:
        if not isinstance(value, Mapping):
            kind = type(value).__name__
            raise ConfigurationError(f"{name} has to be a dict, not {kind}")
    elif origin is Sequence:
        _check_dicts(name, value)


def _check_sources(stated: Mapping[str, Any]) -> None:
    """Check that no source is a misspelt word, which would be taken for a tool that nobody has."""
    for name, words in stated.items():
        for word in texts(f"sources: {name}", words):
            near = did_you_mean(word, StatedWord, cutoff=0.8)
            if near and word not in set(StatedWord) and "." not in word:
                raise ConfigurationError(
                    f"sources: {name!r}: {word!r} is no source{near}; a tool of that name is"
                    f" written with its namespace"
                )


def _check_count(name: str, value: Any) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or value < 0:
        raise ConfigurationError(f"{name} has to be a whole number, not negative; it is {value!r}")


def _check_dicts(name: str, value: Any) -> None:
    # {"system": "mcp"} alone is iterable, too: over its keys
    is_single = isinstance(value, (str, bytes, Mapping))
    if is_single or not isinstance(value, Iterable):
        kind = type(value).__name__
        raise ConfigurationError(f"{name} has to be a list of dicts, not {kind}")


def _check_retry(retry: Mapping[str, Any]) -> None:
    known = get_type_hints(RetryOptions)
    for name in retry:
        if name not in known:
            raise ConfigurationError(f"retry has no option {name!r}{did_you_mean(name, known)}")
    if retry.get("retry_on") is not None:
        for word in texts("retry_on", retry["retry_on"]):
            one_of("retry_on", word, ErrorClass)


def _warn_of_unknown_words(name: str, value: Any) -> None:
    """Warn of each word of an open vocabulary that the standard does not have."""
    known = [str(word) for word in _OPEN[name]]
    words = [value] if isinstance(value, str) else value or ()
    for word in map(str, words):
        if word in known:
            continue
        hint = did_you_mean(word, known)
        if not hint:
            hint = f": {', '.join(known)}"
        _logger.warning("%s: %r is none of the standard's words%s", name, word, hint)


@cache
def _hints() -> dict[str, Any]:
    """Return the facts and what each takes; where an enumeration or a text is taken, the text's
    words count.
    """
    hints: dict[str, Any] = {}
    for facts in GROUPS.values():
        for name, hint in facts.items():
            hints[name] = _words(hint)
    return hints


def _words(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        literals = [arg for arg in get_args(hint) if get_origin(arg) is Literal]
        return literals[0] if literals else hint
    return hint
