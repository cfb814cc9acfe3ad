"""What does not fit a schema is told in words that a model can act on, without a value of what was
given.
"""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel.catalog.schema import SchemaCheck


@pytest.mark.parametrize(
    ("schema", "given", "told"),
    [
        ({"type": "integer"}, "sesame", "/x must be integer"),
        ({"type": ["null", "integer"]}, "sesame", "/x must be integer or null"),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "sesame",
            "/x must be integer or null",
        ),
        (
            {"anyOf": [{"type": "integer", "minimum": 3}, {"type": "string", "pattern": "^a"}]},
            "sesame",
            "/x fits none of the forms that the schema allows",
        ),
        ({"enum": ["a", 1]}, "sesame", '/x must be one of "a", 1'),
        ({"const": "a"}, "sesame", '/x must be "a"'),
        ({"minLength": 9}, "sesame", "/x must have at least 9 characters"),
        ({"maxItems": 1}, ["sesame", 2], "/x must have at most 1 entries"),
        ({"minimum": 7}, 3, "/x must be at least 7"),
        ({"exclusiveMaximum": 3}, 3, "/x must be below 3"),
        ({"multipleOf": 7}, 3, "/x must be a multiple of 7"),
        ({"pattern": "^a"}, "sesame", "/x must match the pattern ^a"),
        ({"uniqueItems": True}, ["sesame", "sesame"], "/x must not hold an entry twice"),
        ({"required": ["q"]}, {"sesame": 1}, "/x lacks the required q"),
        (
            {"properties": {}, "additionalProperties": False},
            {"sesame": 1},
            "/x has members that the schema does not have",
        ),
        ({"type": "array", "items": {"type": "string"}}, [1], "/x/0 must be string"),
        ({"not": {"type": "string"}}, "sesame", "/x does not meet 'not'"),
        ({"$ref": "#/$defs/n"}, {}, "/x lacks the required q"),
    ],
)
def test_what_is_wrong_is_told(schema: dict[str, Any], given: Any, told: str) -> None:
    check = SchemaCheck({"properties": {"x": schema}, "$defs": {"n": {"required": ["q"]}}})
    assert check.messages({"x": given}) == [told]
    assert "sesame" not in told


def test_what_is_missing_is_told_of_the_whole() -> None:
    assert SchemaCheck({"type": "object", "required": ["x"]}).messages({}) == [
        "/ lacks the required x"
    ]


def test_long_words_of_a_schema_are_cut_and_problems_counted() -> None:
    check = SchemaCheck({"properties": {"x": {"enum": ["a" * 500]}}})
    assert len(check.messages({"x": 1})[0]) < 200
    assert len(SchemaCheck({"items": {"type": "string"}}).messages([1] * 50)) == 8
