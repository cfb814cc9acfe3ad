"""What programs import from the package itself, and what a bare install can do."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import agenttool_otel


@pytest.mark.parametrize("name", agenttool_otel.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(agenttool_otel, name) is not None
    assert name in dir(agenttool_otel)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Govern"):
        _ = agenttool_otel.Govern


def test_package_and_test_helpers_need_no_sdk_or_langchain() -> None:
    program = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "langchain", "langgraph", "typer", "rich")):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from agenttool_otel import ApprovalAnswer, ConsoleApprover, Hooks, configure, govern, load_bundle
from agenttool_otel.testing import FixedApprover, StaticEngine
configure(policy=StaticEngine("ask"), approver=FixedApprover(ApprovalAnswer(True, answered_by="user:me")))
print(govern(lambda: "ran", name="f")())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "ran", done.stderr


def test_langchain_names_are_there_but_not_in_the_star() -> None:
    assert agenttool_otel.AgentToolMiddleware.__name__ == "AgentToolMiddleware"
    assert "AgentToolMiddleware" not in agenttool_otel.__all__


def test_every_public_name_and_its_public_methods_are_documented() -> None:
    missing = []
    for name in agenttool_otel.__all__:
        value = getattr(agenttool_otel, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        members = vars(value).items() if inspect.isclass(value) else ()
        documented = {name: value} | {
            f"{name}.{member}": found
            for member, found in members
            if not member.startswith("_")
            and (inspect.isfunction(found) or isinstance(found, (property, classmethod)))
        }
        missing += [label for label, found in documented.items() if not inspect.getdoc(found)]
    assert not missing
