from __future__ import annotations

from collections.abc import Iterator

import pytest
from decision_points import Served, served

from agenttool_otel.testing import Capture, capture


@pytest.fixture(scope="module")
def module_capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capture]:
    store = tmp_path_factory.mktemp("store") / "approvals.db"
    with capture(approvals=f"sqlite:///{store}") as captured:
        yield captured


@pytest.fixture(scope="module")
def module_point(
    module_capture: Capture, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with served(module_capture.governor, tmp_path_factory.mktemp("serve")) as point:
        yield point


@pytest.fixture
def captured(module_capture: Capture) -> Capture:
    """The telemetry of the decision point, from now on."""
    module_capture.clear()
    return module_capture


@pytest.fixture
def point(captured: Capture, module_point: Served) -> Served:
    """A decision point with the stock policy and an approval store; one for a file's tests."""
    return module_point
