"""The subject of an examination: a module with four functions.

They take and return plain JSON data, and the bodies of tools.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.records.base import JsonObject

Data: TypeAlias = Mapping[str, Any]
FUNCTIONS = (
    "declare",
    "surface",
    "invoke",
    "records",
)


class Subject(Protocol):
    """An implementation of the standard.

    A tool is given as ``name``, ``description``, ``run`` and the standard's fields (``namespace``,
    ``read_only``, ``concurrency_safe``, ``open_world``, ``supports_progress``, ``supports_cancel``,
    ``max_inline_chars``, ``sensitive_fields``, ``external_mappings``, ``defer``, ``validate``).
    ``run`` has typed keyword arguments; one that is called ``call`` is no argument of the tool: it
    gets an object with ``progress(percent, message)`` and ``canceled``.
    """

    def declare(self, setup: Data) -> Sequence[JsonObject]:
        """Begin anew, and return the tool_declaration records.

        Args:
            setup: ``tools``; ``decisions``, by tool ``behavior``, ``rule_ref``, ``message`` (allow
                if none is given); ``input_hooks``, by tool a function from arguments to arguments,
                or ``None`` for no change.
        """

    def surface(self, request: Data) -> JsonObject:
        """Return the tool_surface record; with a ``query``, search and load, and return the
        tool_search_result.

        Args:
            request: ``scope`` and maybe ``query``: words, or ``select:`` and names.
        """

    def invoke(self, request: Data) -> Sequence[JsonObject]:
        """Run calls and return the tool_result records in the order of the calls.

        Args:
            request: ``calls`` with ``tool``, ``arguments``, and maybe ``native_call_id``,
                ``external_mappings`` and ``depends_on`` (places of earlier calls);
                ``scheduler_policy``; ``answer`` to the question of a call (``approved``,
                ``reason``, ``arguments``); ``cancel_after`` seconds.
        """

    def records(self) -> Iterable[JsonObject]:
        """Return all records since ``declare``, oldest first, each as ``{"object": its name,
        "record": it}``.
        """


def load_subject(module: str) -> Subject:
    """Import the module to examine.

    Args:
        module: its name; an empty one stands for this package.

    Raises:
        ConfigurationError: there is none, or it lacks one of the four functions.
    """
    try:
        imported = importlib.import_module(module or "agenttool_otel.conformance.own")
    except ImportError as error:
        raise ConfigurationError(f"the module {module} can't be imported: {error}") from error
    missing = []
    for name in FUNCTIONS:
        function = getattr(imported, name, None)
        if not callable(function):
            missing.append(name)
    if missing:
        names = ", ".join(missing)
        raise ConfigurationError(f"the module {module} has no function {names}")
    return cast(Subject, imported)
