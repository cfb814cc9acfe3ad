"""A policy beside the tools of a program: their names, globs that fit them, and their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenttool_otel.authoring.project import Project
from agenttool_otel.authoring.words.schemas import input_shape, of_schema
from agenttool_otel.authoring.words.shapes import OBJECT, OF_KINDS, Place, Shape, Words, union
from agenttool_otel.authoring.words.slips import Slip, Slips
from agenttool_otel.authoring.words.walk import Walk, walk_rules
from agenttool_otel.authoring.words.world import World
from agenttool_otel.catalog import ToolSpec
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.bundles.tool_lists import ToolNames, fits_a_tool, unfitting_entries


def slips_beside_tools(project: Project, specs: Sequence[ToolSpec]) -> list[Slip]:
    """Return the slips of a project that can be seen once its tools are known.

    Args:
        project: the policy.
        specs: the declarations of all tools that it is for.
    """
    names = [names_of(spec) for spec in specs]
    globs = _Globs(names)
    world = World(project, project.program, given=_input_of(specs))
    walk = Walk(world, patterns=globs.look_at)
    own = []
    for rule in project.program.rules:
        if project.is_own(rule.file):
            own.append(rule)
    walk_rules(walk, own)
    found = Slips()
    for slip in walk.slips:
        found.add(slip)
    for slip in globs.slips:
        found.add(slip)
    for message in unfitting_entries(project.whole, names):
        slip = Slip("", 0, message, certain=False)
        found.add(slip)
    return list(found)


def names_of(spec: ToolSpec) -> ToolNames:
    """Return what a tool is called."""
    full = f"{spec.namespace}.{spec.name}"
    return ToolNames((spec.tool_id, full), (spec.name, *spec.aliases))


class _Globs:
    """The globs that rules compare tools with."""

    def __init__(self, names: Sequence[ToolNames]) -> None:
        self.slips = Slips()
        self._names = names
        self._words: set[str] = set()
        for tool in names:
            self._words.update(tool.exact, tool.others)

    def look_at(self, globs: Shape, place: Place) -> None:
        """Look at the globs of one comparison.

        Args:
            globs: what the rule gives: the text itself, or those of a list in the data.
            place: where it stands.
        """
        if globs.words is None or not globs.words.stated:
            return
        for glob in sorted(globs.words.known):
            if fits_a_tool(glob, self._names):
                continue
            near = did_you_mean(glob, self._words)
            message = f"{glob!r} fits no tool{near}"
            self.slips.add(Slip(place.file, place.line, message, certain=bool(near)))


def _input_of(specs: Sequence[ToolSpec]) -> Shape:
    """Return the shape of the input of calls of these tools alone."""
    whole = input_shape()
    members = dict(whole.members or {})
    members["tool"] = _tool_of(members["tool"], specs)
    members["input"] = _arguments_of(specs)
    return replace(whole, members=members)


def _tool_of(tool: Shape, specs: Sequence[ToolSpec]) -> Shape:
    ids = set()
    names = set()
    namespaces = set()
    for spec in specs:
        ids.add(spec.tool_id)
        names.add(spec.name)
        namespaces.add(spec.namespace)
    members = dict(tool.members or {})
    members["id"] = _named(members["id"], ids)
    members["name"] = _named(members["name"], names)
    members["namespace"] = _named(members["namespace"], namespaces)
    return replace(tool, members=members)


def _named(shape: Shape, words: Iterable[str]) -> Shape:
    # another program may have further tools, so a name that is near to none is a warning
    return replace(shape, words=Words(frozenset(words), open=True))


def _arguments_of(specs: Sequence[ToolSpec]) -> Shape:
    arguments: dict[str, list[Shape]] = {}
    for spec in specs:
        schema = spec.check.schema
        if not _lists_all(schema):
            return Shape(OF_KINDS[OBJECT].kinds, name="input.input")
        properties = schema.get("properties", {})
        for name, member in properties.items():
            shape = of_schema(member, f"input.input.{name}", words=False)
            arguments.setdefault(name, []).append(shape)
    members = {}
    for name, shapes in arguments.items():
        members[name] = union(shapes)
    return Shape(OF_KINDS[OBJECT].kinds, members=members, name="input.input")


def _lists_all(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema names every argument that a call may have."""
    if "$ref" in schema or "anyOf" in schema or "allOf" in schema:
        return False
    return not schema.get("additionalProperties") and not schema.get("patternProperties")
