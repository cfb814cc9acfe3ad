"""Each field of the standard's objects has the value that a call, a surface or a declaration made."""

from __future__ import annotations

import object_views
import part_views
import pytest
from requirements import Kind, rows
from views import View

VIEWS = [*object_views.VIEWS, *part_views.VIEWS]
CASES = [
    pytest.param(
        view,
        field,
        marks=pytest.mark.covers(f"{view.kind}.{field}"),
        id=f"{view.kind}.{field}-{view.situation.__name__}",
    )
    for view in VIEWS
    for field in view.fields
]


@pytest.mark.parametrize(("view", "field"), CASES)
def test_a_field_has_the_value_that_was_made(view: View, field: str) -> None:
    assert view.record(view.situation())[field] == view.expected(field)


def test_every_field_that_is_met_is_looked_at() -> None:
    looked_at = {f"{view.kind}.{field}" for view in VIEWS for field in view.fields}
    met = {row.id for row in rows() if row.kind is Kind.FIELD and not row.not_met}
    assert looked_at == met


def test_a_field_that_is_not_met_is_in_no_record() -> None:
    for row in rows():
        if row.kind is not Kind.FIELD or not row.not_met:
            continue
        kind, _, field = row.id.partition(".")
        for view in VIEWS:
            for record in view.situation().records(kind):
                assert not record.get(field), f"{row.id} is made: take it out of not_met.toml"
