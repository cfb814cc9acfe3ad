"""The registry in ``semconv/`` as Python objects, and the page that is generated from it.

Usage: ``python tools/semconv.py`` (or ``docs``) writes docs/semconv.md; ``python tools/semconv.py
check`` fails when the page is not what the registry gives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

REPOSITORY: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = REPOSITORY / "semconv"
PAGE: Final = REPOSITORY / "docs" / "semconv.md"
SPANS: Final = FOLDER / "spans.yaml"

PRIMITIVES: Final = frozenset(
    {"string", "int", "double", "boolean", "string[]", "int[]", "double[]", "boolean[]"}
)
STABILITIES: Final = frozenset({"development", "alpha", "beta", "release_candidate", "stable"})
INSTRUMENTS: Final = frozenset({"counter", "updowncounter", "gauge", "histogram"})
LEVELS: Final = frozenset({"required", "recommended", "opt_in", "conditionally_required"})
GROUP_KEYS: Final = frozenset(
    [
        "id",
        "type",
        "brief",
        "note",
        "stability",
        "attributes",
        "display_name",
        "span_kind",
        "name",
        "metric_name",
        "instrument",
        "unit",
        "annotations",
    ]
)
ATTRIBUTE_KEYS: Final = frozenset(
    ["id", "type", "stability", "brief", "note", "examples", "annotations"]
)
REFERENCE_KEYS: Final = frozenset(["ref", "requirement_level", "sampling_relevant", "note"])


class RegistryError(ValueError):
    """The registry does not follow weaver's format."""


@dataclass(frozen=True)
class Attribute:
    """One attribute: ``type`` is a primitive of weaver's; ``members`` are an enumeration's values;
    ``python`` is its constant in names/telemetry.py where that does not follow from the name.
    """

    name: str
    type: str
    members: tuple[str, ...]
    stability: str
    brief: str
    note: str
    examples: tuple[Any, ...]
    group: str
    python: str = ""


@dataclass(frozen=True)
class Signal:
    """A span, an event or a metric, and what it may carry: attribute name to requirement level."""

    kind: str
    id: str
    name: str
    brief: str
    note: str
    attributes: Mapping[str, str]
    instrument: str = ""
    unit: str = ""
    sampling_relevant: frozenset[str] = frozenset()
    python: str = ""


@dataclass
class Registry:
    """Everything that leaves the process, by name."""

    groups: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    spans: dict[str, Signal] = field(default_factory=dict)
    events: dict[str, Signal] = field(default_factory=dict)
    metrics: dict[str, Signal] = field(default_factory=dict)


def load(folder: Path = FOLDER) -> Registry:
    """Read and check a registry.

    Args:
        folder: the folder with manifest.yaml.

    Raises:
        RegistryError: something is not in weaver's format, is defined twice, or refers to nothing.
    """
    manifest = yaml.safe_load((folder / "manifest.yaml").read_text("utf-8"))
    if not {"name", "schema_url"} <= set(manifest):
        raise RegistryError("manifest.yaml needs a name and a schema_url")
    groups = [group for path in sorted(folder.rglob("*.yaml")) for group in _groups(path)]
    registry = Registry()
    for group in groups:
        if group.get("type") == "attribute_group":
            _add_attributes(registry, group)
    seen: set[str] = set()
    for group in groups:
        _require(group["id"] not in seen, group, "the id is used twice")
        seen.add(group["id"])
        if group.get("type") != "attribute_group":
            _add_signal(registry, group)
    return registry


def _groups(path: Path) -> Iterator[dict[str, Any]]:
    if path.name == "manifest.yaml":
        return
    for group in yaml.safe_load(path.read_text("utf-8"))["groups"]:
        _require(set(group) <= GROUP_KEYS, group, f"unknown keys {sorted(set(group) - GROUP_KEYS)}")
        _require(bool(group.get("brief")), group, "no brief")
        yield group


def _require(fine: bool, group: Mapping[str, Any], problem: str) -> None:
    if not fine:
        raise RegistryError(f"{group.get('id', '?')}: {problem}")


def _add_attributes(registry: Registry, group: Mapping[str, Any]) -> None:
    registry.groups[group["id"]] = group.get("display_name", group["id"])
    for item in group["attributes"]:
        name, kind = item["id"], item["type"]
        _require(
            set(item) <= ATTRIBUTE_KEYS,
            group,
            f"{name}: unknown keys {sorted(set(item) - ATTRIBUTE_KEYS)}",
        )
        _require(name not in registry.attributes, group, f"{name} is defined twice")
        _require(item.get("stability") in STABILITIES, group, f"{name}: unknown stability")
        _require(bool(item.get("brief")), group, f"{name}: no brief")
        members: tuple[str, ...] = ()
        if isinstance(kind, dict):
            members = tuple(member["value"] for member in kind["members"])
            _require(
                all(isinstance(value, str) for value in members),
                group,
                f"{name}: members are no strings",
            )
            _require(len(set(members)) == len(members), group, f"{name}: a member is listed twice")
            kind = "string"
        else:
            _require(kind in PRIMITIVES, group, f"{name}: unknown type {kind}")
            _require(kind == "boolean" or bool(item.get("examples")), group, f"{name}: no examples")
        registry.attributes[name] = Attribute(
            name, kind, members, item["stability"], item["brief"], item.get("note", ""),
            tuple(item.get("examples", ())), group["id"], _python(item),
        )  # fmt: skip


def _python(item: Mapping[str, Any]) -> str:
    """Return the constant of names/telemetry.py that an annotation states; the others follow from the
    name.
    """
    return str(item.get("annotations", {}).get("python", ""))


def _add_signal(registry: Registry, group: Mapping[str, Any]) -> None:
    kind = group.get("type")
    _require(group.get("stability") in STABILITIES, group, "unknown stability")
    levels: dict[str, str] = {}
    sampling = set()
    for item in group.get("attributes", ()):
        name, level = item["ref"], item.get("requirement_level", "recommended")
        _require(set(item) <= REFERENCE_KEYS, group, f"{name}: unknown keys")
        _require(name in registry.attributes, group, f"refers to {name}, which nobody defines")
        _require(name not in levels, group, f"refers to {name} twice")
        word = next(iter(level)) if isinstance(level, dict) else level
        _require(word in LEVELS, group, f"{name}: unknown requirement level {word}")
        levels[name] = f"{word}: {level[word]}" if isinstance(level, dict) else level
        if item.get("sampling_relevant"):
            sampling.add(name)
    shared = {
        "brief": group["brief"], "note": group.get("note", ""), "attributes": levels, "python": _python(group),
    }  # fmt: skip
    if kind == "span":
        _require(
            group.get("span_kind") in {"internal", "client", "server"}, group, "unknown span kind"
        )
        name = group["id"].removeprefix("span.")
        registry.spans[name] = Signal(
            "span", group["id"], name, sampling_relevant=frozenset(sampling), **shared
        )
    elif kind == "event":
        registry.events[group["name"]] = Signal("event", group["id"], group["name"], **shared)
    elif kind == "metric":
        _require(group.get("instrument") in INSTRUMENTS, group, "unknown instrument")
        name = group["metric_name"]
        registry.metrics[name] = Signal(
            "metric",
            group["id"],
            name,
            instrument=group["instrument"],
            unit=group["unit"],
            **shared,
        )
    else:
        raise RegistryError(f"{group['id']}: unknown type {kind}")


# --- the attributes of the span --------------------------------------------------------------------


def span_references(text: str, registry: list[Mapping[str, Any]]) -> str:
    """Return the text of spans.yaml with a reference to each attribute that belongs to the span.

    An attribute belongs to it where its own entry states so, with the requirement level of the
    reference: ``annotations: {span: recommended}``.

    Args:
        text: what spans.yaml holds; its only group is the tool's span.
        registry: the groups of the registry's files.
    """
    lines = [text.rstrip("\n")]
    for group in registry:
        for item in group.get("attributes", ()):
            level = item.get("annotations", {}).get("span")
            if level is None or f"- ref: {item['id']}\n" in text:
                continue
            lines.append(f"      - ref: {item['id']}")
            lines.append(f"        requirement_level: {level}")
    return "\n".join(lines) + "\n"


def _write_span_references() -> None:
    groups = [group for path in sorted(FOLDER.rglob("registry/*.yaml")) for group in _groups(path)]
    SPANS.write_text(span_references(SPANS.read_text("utf-8"), groups), "utf-8")


# --- the page -------------------------------------------------------------------------------------


def page(registry: Registry) -> str:
    """Render the registry as Markdown."""
    lines = [
        "# Names in traces, events and metrics",
        "",
        "<!-- Generated from semconv/ by `python tools/semconv.py docs`; edit there. -->",
        "",
        "Every attribute, event and metric that agenttool-otel writes. A test sends a full run through this list by",
        "name and type. Names under `gen_ai.` and `error.` are OpenTelemetry's; those under `tool.` are event classes",
        "of the Agent Tool standard; those under `agenttool.` are this package's. Metrics carry no id, digest or",
        "message.",
        "",
        "## Span",
        "",
    ]
    for span in registry.spans.values():
        lines += [span.brief, "", span.note, "", *_table(registry, span), ""]
    lines += ["## Metrics", ""]
    for metric in registry.metrics.values():
        lines += [
            f"### `{metric.name}`",
            "",
            f"{metric.brief} {metric.instrument.capitalize()}, unit `{metric.unit}`.",
            "",
        ]
        lines += [*_table(registry, metric), ""] if metric.attributes else ["No labels.", ""]
    lines += ["## Events", "", "| event | when | attributes |", "| --- | --- | --- |"]
    for event in registry.events.values():
        names = ", ".join(f"`{name}`" for name in event.attributes)
        lines.append(f"| `{event.name}` | {event.brief} | {names} |")
    lines.append("")
    for group, title in registry.groups.items():
        lines += [f"## {title}", "", "| attribute | type | meaning |", "| --- | --- | --- |"]
        for item in registry.attributes.values():
            if item.group == group:
                meaning = " ".join(part for part in (item.brief, item.note, _values(item)) if part)
                lines.append(
                    f"| `{item.name}` | {'enum' if item.members else item.type} | {meaning} |"
                )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _table(registry: Registry, signal: Signal) -> list[str]:
    rows = ["| attribute | level | meaning |", "| --- | --- | --- |"]
    for name, level in signal.attributes.items():
        start = ", set at start" if name in signal.sampling_relevant else ""
        rows.append(
            f"| `{name}` | {level.replace('_', ' ')}{start} | {registry.attributes[name].brief} |"
        )
    return rows


def _values(item: Attribute) -> str:
    if item.members:
        return "One of " + ", ".join(f"`{value}`" for value in item.members) + "."
    if item.examples:
        return f"For example `{yaml.safe_dump(item.examples[0], default_flow_style=True).splitlines()[0]}`."
    return ""


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    if arguments in ([], ["docs"]):
        _write_span_references()
    text = page(load())
    if arguments in ([], ["docs"]):
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, "utf-8")
        return 0
    if arguments == ["check"]:
        current = PAGE.read_text("utf-8") if PAGE.exists() else ""
        if current != text:
            print("docs/semconv.md is not what semconv/ gives: run python tools/semconv.py docs")
        return int(current != text)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
