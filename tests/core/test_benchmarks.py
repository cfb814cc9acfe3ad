"""The benchmarks can be run: `make bench` is no test, so a part that breaks is seen here."""

from __future__ import annotations

import importlib

import pytest
from benchmarks.__main__ import PARTS


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_each_row_of_a_part_can_be_run(part: str) -> None:
    for _, run in importlib.import_module(f"benchmarks.{part}").rows():
        run()
