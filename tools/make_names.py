"""Write the constants of attributes, events and metrics, ``names/telemetry.py``, from ``semconv/``;
``check`` only compares.

A constant is called as its name says without the prefix (``agenttool.tool.kind`` is
``Attr.TOOL_KIND``); where the registry has ``annotations: {python: Label.STORE}`` it is called
that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import semconv

TARGET: Final = semconv.REPOSITORY / "src" / "agenttool_otel" / "names" / "telemetry.py"
HEAD: Final = '''"""Names of attributes, events and metrics, generated from ``semconv/`` by ``make docs``."""

from __future__ import annotations

from typing import Final
'''
CLASSES: Final = {
    "GenAI": "Attributes of OpenTelemetry's GenAI conventions that a tool span uses.",
    "Mcp": "Attributes of OpenTelemetry's conventions for MCP, set by the MCP doors.",
    "Exc": "The event of a tool's own exception; its message only where content is captured.",
    "Attr": "Attributes of spans and events: flat primitives, by which backends search and group.",
    "Label": "Metric labels that are no span attributes; never an id, a digest or a message.",
    "Event": "Event classes of the standard, and this package's own in its style.",
    "Metric": "Metric names.",
}
PREFIXES: Final = {"gen_ai.": "GenAI", "error.": "GenAI", "exception.": "Exc", "agenttool.": "Attr"}


def _attribute(name: str) -> str:
    prefix = next(prefix for prefix in PREFIXES if name.startswith(prefix))
    return (
        f"{PREFIXES[prefix]}.{_constant(name if prefix == 'error.' else name.removeprefix(prefix))}"
    )


def _constant(name: str) -> str:
    return name.replace(".", "_").upper()


def _all(registry: semconv.Registry) -> Iterator[tuple[str, str]]:
    for attribute in registry.attributes.values():
        yield attribute.python or _attribute(attribute.name), attribute.name
    for event in registry.events.values():
        yield event.python or f"Event.{_constant(event.name.removeprefix('tool.'))}", event.name
    for metric in registry.metrics.values():
        yield (
            metric.python or f"Metric.{_constant(metric.name.removeprefix('agenttool.'))}",
            metric.name,
        )


def constants(registry: semconv.Registry) -> str:
    """Return the classes.

    Raises:
        semconv.RegistryError: two names give one constant.
    """
    members: dict[str, dict[str, str]] = {holder: {} for holder in CLASSES}
    for constant, name in _all(registry):
        holder, _, member = constant.partition(".")
        if member in members[holder]:
            raise semconv.RegistryError(f"{name} and {members[holder][member]} are both {constant}")
        members[holder][member] = name
    parts = []
    for holder, doc in CLASSES.items():
        lines = [f'    {member}: Final = "{name}"' for member, name in members[holder].items()]
        parts.append("\n".join([f"class {holder}:", f'    """{doc}"""', "", *lines]))
    return "\n\n\n".join(parts)


def module(registry: semconv.Registry) -> str:
    """Return the text of names/telemetry.py."""
    return f"{HEAD}\n\n{constants(registry)}\n"


def main(arguments: list[str]) -> int:
    """Write or compare."""
    made = module(semconv.load())
    if arguments != ["check"]:
        TARGET.write_text(made, "utf-8")
        return 0
    if made != TARGET.read_text("utf-8"):
        print(f"{TARGET} is not what semconv/ gives: run python tools/make_names.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
