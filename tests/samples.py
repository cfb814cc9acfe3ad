"""Large tables of which ``make test`` runs a part, and ``make test-all`` the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest


def one_in(count: int, rows: Iterable[Any], ids: Callable[[Any], str] | None = None) -> list[Any]:
    """Return the parameters of a test: one in so many is for ``make test``.

    Args:
        count: how many rows one stands for.
        rows: values of one parameter.
        ids: names a row; pytest does where not given.
    """
    return [
        pytest.param(
            row,
            id=ids(row) if ids is not None else None,
            marks=() if number % count == 0 else pytest.mark.slow,
        )
        for number, row in enumerate(rows)
    ]


def one_case_in(count: int, cases: Iterable[Sequence[Any]]) -> list[Any]:
    """Return the parameters of a test with several: one case in so many is for ``make test``.

    Args:
        count: how many cases one stands for.
        cases: a value of each parameter.
    """
    return [
        pytest.param(*case, marks=() if number % count == 0 else pytest.mark.slow)
        for number, case in enumerate(cases)
    ]
