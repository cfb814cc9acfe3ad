"""The dispatcher of function calls passes the test of doors."""

from __future__ import annotations

from typing import Any

import pytest
from function_calling_driver import FunctionCallingDriver

from agenttool_otel.testing.doors import DOOR_CHECKS


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(FunctionCallingDriver())
