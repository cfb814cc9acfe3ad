from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents_served import Hooks, hooks_served


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hooks]:
    """The hooks of all agents, answered by the stock policy; one server for a file's tests."""
    with hooks_served(tmp_path_factory.mktemp("serve")) as served:
        yield served
