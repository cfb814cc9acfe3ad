"""A limit of characters binds: what a model gets is no longer than the limit, or than the line that
names the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.testing import StaticEngine, capture, decision

LIMITS = (0, 1, 50, 100, 200, 300, 500, 2_048, 3_000)
SIZES = (60, 101, 250, 600, 3_100, 70_000)


def text_for_model(result: Any) -> str:
    return "".join(block.get("text", "") for block in result.model_facing_content)


def is_within(text: str, limit: int) -> bool:
    """Return whether a text fits, or is the one line that stands for what does not."""
    return len(text) <= limit or (text.startswith("Output too large") and "\n" not in text)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_tools_limit_binds_what_a_model_gets(limit: int, size: int) -> None:
    with capture(policy=StaticEngine("allow"), results=ResultKeeper(None)) as captured:
        tool = captured.governor.govern(lambda: "x" * size, name="act", max_inline_chars=limit)
        result = tool.tool.invoke()
    assert is_within(text_for_model(result), limit)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_policys_limit_binds_model_and_caller(limit: int, size: int) -> None:
    obliged = decision("allow", obligations={"max_inline_chars": limit})
    with capture(policy=StaticEngine(obliged), results=ResultKeeper(None)) as captured:
        tool = captured.governor.govern(lambda: "x" * size, name="act")
        assert is_within(tool(), limit)
        assert is_within(text_for_model(tool.tool.invoke()), limit)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_binds_structured_content_too(limit: int) -> None:
    with capture(policy=StaticEngine("allow"), results=ResultKeeper(None)) as captured:
        tool = captured.governor.govern(
            lambda: {"rows": list(range(1_000))}, name="act", max_inline_chars=limit
        )
        result = tool.tool.invoke()
    assert is_within(text_for_model(result), limit)
    assert result.structured_content is None


@pytest.mark.parametrize("limit", LIMITS)
def test_a_policys_limit_binds_a_gathered_stream(limit: int) -> None:
    def act() -> Iterator[str]:
        yield from ["x" * 100] * 50

    obliged = decision("allow", obligations={"max_inline_chars": limit})
    with capture(policy=StaticEngine(obliged), results=ResultKeeper(None)) as captured:
        result = captured.governor.govern(act).tool.invoke()
    assert is_within(text_for_model(result), limit)
