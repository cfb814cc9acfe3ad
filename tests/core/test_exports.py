"""What programs import from the package itself, and what a bare install can do."""

from __future__ import annotations

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


def test_neither_the_package_nor_its_helpers_for_tests_need_the_sdk_or_langchain() -> None:
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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "ran", done.stderr


def test_what_needs_langchain_is_there_by_name_and_not_in_the_star() -> None:
    assert agenttool_otel.AgentToolMiddleware.__name__ == "AgentToolMiddleware"
    assert "AgentToolMiddleware" not in agenttool_otel.__all__
