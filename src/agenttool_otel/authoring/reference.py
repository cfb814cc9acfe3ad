"""A policy's reference as Markdown, from the METADATA of its packages and rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from agenttool_otel.authoring.project import Project
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.policy.bundles.own_rules import KINDS
from agenttool_otel.policy.rego.syntax import Module, Rule

_NAME: Final = re.compile(r'"rule":\s*"([^"]+)"')
_MESSAGE: Final = re.compile(r'"message":\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Entry:
    """One rule that decides on calls.

    Attributes:
        kind: ``deny``, ``ask`` or ``allow``.
        names: the names of its findings; empty where they are put together at run time.
        messages: the messages of its findings.
        metadata: the METADATA above it, as YAML reads it; empty where there are none.
        place: file and line.
    """

    kind: str
    names: tuple[str, ...]
    messages: tuple[str, ...]
    metadata: Mapping[str, Any]
    place: str


@dataclass(slots=True)
class Chapter:
    """One package.

    Attributes:
        package: its path below ``data``, with points.
        metadata: its METADATA.
        entries: its rules that decide, those that count most first.
    """

    package: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)


def chapters_of(project: Project, *, stock: bool = False) -> list[Chapter]:
    """Return the packages of a project that have a rule that decides, by name.

    Args:
        project: the project.
        stock: whether those of the stock bundle below it are among them.

    Raises:
        ConfigurationError: METADATA are no YAML.
    """
    found: dict[str, Chapter] = {}
    for module in project.program.modules:
        if not stock and not project.is_own(module.file):
            continue
        name = ".".join(module.package)
        chapter = found.setdefault(name, Chapter(name))
        chapter.metadata = {**chapter.metadata, **metadata_above(module, module.line)}
        chapter.entries += _entries(module)
    for chapter in found.values():
        chapter.entries.sort(key=lambda entry: (KINDS.index(entry.kind), entry.names))
    return [found[name] for name in sorted(found) if found[name].entries]


def _entries(module: Module) -> Iterator[Entry]:
    lines = module.text.splitlines()
    starts = sorted(rule.line for rule in module.rules)
    for rule in module.rules:
        kind = _kind(module, rule)
        if not kind:
            continue
        following = next((line for line in starts if line > rule.line), len(lines) + 1)
        # the comments above the next rule have no findings
        body = "\n".join(line for line in lines[rule.line - 1 : following - 1] if line[:1] != "#")
        yield Entry(
            kind,
            tuple(dict.fromkeys(_NAME.findall(body))),
            tuple(dict.fromkeys(_MESSAGE.findall(body))),
            metadata_above(module, rule.line),
            f"{rule.file}:{rule.line}",
        )


def _kind(module: Module, rule: Rule) -> str:
    size = len(module.package)
    name = rule.path[size] if len(rule.path) > size else ""
    return name if name in KINDS else ""


def metadata_above(module: Module, line: int) -> dict[str, Any]:
    """Return the METADATA in the comment that ends above a line.

    Args:
        module: the module.
        line: the line of a rule or a package.

    Raises:
        ConfigurationError: they are no YAML.
    """
    block: list[str] = []
    for previous in reversed(module.text.splitlines()[: line - 1]):
        if not previous.startswith("#"):
            break
        block.insert(0, previous.removeprefix("#").removeprefix(" "))
    if "METADATA" not in block:
        return {}
    text = "\n".join(block[block.index("METADATA") + 1 :])
    try:
        stated = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigurationError(f"{module.file}:{line}: the METADATA above are no YAML") from None
    return stated if isinstance(stated, dict) else {}


def reference_text(chapters: list[Chapter], title: str) -> str:
    """Return the reference as Markdown.

    Args:
        chapters: the packages.
        title: its heading.
    """
    parts = [f"# {title}", "Made by `agenttool policy reference` from the METADATA of the rules."]
    for chapter in chapters:
        parts.append(f"## {_heading(chapter)}")
        parts.append(f"`{chapter.package}`")
        if description := _words(chapter.metadata.get("description")):
            parts.append(description)
        for entry in chapter.entries:
            parts += _entry_parts(entry)
    return "\n\n".join(parts) + "\n"


def _heading(chapter: Chapter) -> str:
    return _line(chapter.metadata.get("title")) or chapter.package


def _entry_parts(entry: Entry) -> Iterator[str]:
    title = _line(entry.metadata.get("title")) or next(iter(entry.names), "without a title")
    yield f"### {entry.kind}: {title}"
    if description := _words(entry.metadata.get("description")):
        yield description
    rows = [("rule", f"`{name}`") for name in entry.names]
    rows += [("message", _cell(message)) for message in entry.messages]
    custom = entry.metadata.get("custom")
    if isinstance(custom, dict):
        rows += [(_cell(str(name)), _cell(str(value))) for name, value in custom.items()]
    rows += [("see", _link(resource)) for resource in entry.metadata.get("related_resources") or ()]
    rows.append(("source", f"`{entry.place}`"))
    yield "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def _link(resource: Any) -> str:
    if isinstance(resource, dict):
        resource = resource.get("ref", "")
    return f"<{_line(resource)}>"


def _words(value: Any) -> str:
    return str(value).strip() if value else ""


def _line(value: Any) -> str:
    return " ".join(_words(value).split())


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")
