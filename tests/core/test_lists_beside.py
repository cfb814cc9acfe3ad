"""Lists that stand beside what they list are equal to it: what is added to the one is missed in the
other.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import agenttool_otel
from agenttool_otel.call import records
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording import finished
from agenttool_otel.redaction import detectors, text

NEEDS_AN_EXTRA = {"AgentToolMiddleware"}
"""Public names that are not in the star: importing them needs LangChain."""


def imports_of(nodes: list[ast.stmt]) -> dict[str, str]:
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.name: str(node.module).removeprefix("agenttool_otel.")
        for node in found
        for alias in node.names
    }


def test_public_names_are_the_same_in_all_three_lists() -> None:
    tree = ast.parse(Path(str(agenttool_otel.__file__)).read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    assert imports_of(checked.body) == agenttool_otel._MODULES
    assert set(agenttool_otel.__all__) == agenttool_otel._MODULES.keys() - NEEDS_AN_EXTRA


@pytest.mark.parametrize("name", [one.name for one in pkgutil.iter_modules(detectors.__path__)])
def test_every_detector_is_asked(name: str) -> None:
    module = importlib.import_module(f"{detectors.__name__}.{name}")
    finders = {
        found
        for found, value in vars(module).items()
        if found.startswith("find_")
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
    }
    asked = inspect.getsource(text) + "".join(
        Path(path, "pii.py").read_text("utf-8") for path in detectors.__path__
    )
    assert [
        one
        for one in finders
        if asked.count(one) < 2 and f"yield from {one}(" not in inspect.getsource(module)
    ] == []


def read_of_call(module: ModuleType) -> set[str]:
    """Return the attributes of the variable ``call`` that a module reads."""
    nodes = ast.walk(ast.parse(inspect.getsource(module)))
    return {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "call"
    }


def test_a_copy_for_records_has_whatever_they_read() -> None:
    read = read_of_call(records) | read_of_call(finished)
    computed = {
        name
        for name in dir(Invocation)
        if isinstance(inspect.getattr_static(Invocation, name), property)
    }
    methods = {
        name for name in dir(Invocation) if callable(inspect.getattr_static(Invocation, name))
    }
    assert read - computed - methods - {*finished._NEEDED, "value"} == set()
