"""What the tests of LangGraph share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def patient_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give decisions time: these tests start processes, and a busy machine is no reason to deny."""
    monkeypatch.setenv("AGENTTOOL_POLICY_TIMEOUT", "20")
