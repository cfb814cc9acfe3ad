"""A governed tool of LangChain passes the test of doors."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_driver import LangChainDriver

from agenttool_otel.testing.doors import DOOR_CHECKS, approved_call_resumes_in_another_process

# outside of a graph a call goes on in its own process; tests/langgraph/test_kill.py has the other
HERE = [check for check in DOOR_CHECKS if check is not approved_call_resumes_in_another_process]


@pytest.mark.parametrize("check", HERE, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(LangChainDriver())
