"""Long patterns of the readers, part by part."""

from __future__ import annotations

import re

import pytest

from agenttool_otel.readers.paths import text

ASCII = re.ASCII
ANY_CASE = re.IGNORECASE


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (text._LEADING_WORD, "$0x/"),
        (text._LEADING_WORD, "$id/"),
        (text._WORD_BEFORE_PARENT, "$dir/.."),
        (text._WORD_BEFORE_PARENT, "$dir/a/b/../"),
        (text._KNOWN_VARIABLE, "home"),
        (text._KNOWN_VARIABLE, "HOME"),
        (text._KNOWN_VARIABLE, "tmpdir"),
        (text._KNOWN_VARIABLE, "userprofile"),
        (text._KNOWN_VARIABLE, "my_var"),
        (text._ROUTE_PARAMETER, "id."),
        (text._ROUTE_PARAMETER, "postId/"),
        (text._ROUTE_PARAMETER, "id"),
        (text._ROUTE_PARAMETER, "homes."),
        (text._VARIABLE_NAME, "HOME"),
        (text._VARIABLE_NAME, "home"),
        (text._VARIABLE_NAME, "Id"),
        (text._SPECIAL_PARAMETER, "?"),
        (text._EXPANSION, "${"),
        (text._EXPANSION, "$("),
        (text._EXPANSION, "$["),
        (text._EXPANSION, "$1"),
        (text._EXPANSION, "$HOME"),
    ],
)
def test_a_part_of_the_dollar_pattern_matches(part: str, sample: str) -> None:
    assert re.fullmatch(part, sample, ASCII)


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (text._LEADING_WORD, "a$id/"),
        (text._WORD_BEFORE_PARENT, "$dir/..a"),
        (text._KNOWN_VARIABLE, "homes"),
        (text._KNOWN_VARIABLE, "id"),
        (text._ROUTE_PARAMETER, "Id."),
        (text._ROUTE_PARAMETER, "home."),
        (text._ROUTE_PARAMETER, "id+"),
        (text._VARIABLE_NAME, "id"),
        (text._VARIABLE_NAME, "1a"),
        (text._SPECIAL_PARAMETER, "a"),
        (text._EXPANSION, "$id"),
        (text._EXPANSION, "$."),
    ],
)
def test_a_part_of_the_dollar_pattern_does_not_match(part: str, sample: str) -> None:
    assert not re.fullmatch(part, sample, ASCII)


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (text._PERCENT, "%"),
        (text._PERCENT, "%2525"),
        (text._OVERLONG, "%c0%af"),
        (text._OVERLONG, "%C1%25af"),
        (text._OVERLONG, "%e0%80"),
        (text._OVERLONG, "%f0%80"),
        (text._OLD_SERVERS, "%u002f"),
        (text._OLD_SERVERS, "%%32"),
        (text._CONTROL_CODE, "%00"),
        (text._CONTROL_CODE, "%250a"),
        (text._CONTROL_CODE, "%7F"),
        (text._ENTITY, "&#47;"),
        (text._ENTITY, "&#x2F;"),
        (text._ENTITY, "&sol;"),
    ],
)
def test_a_part_of_the_pattern_of_odd_encodings_matches(part: str, sample: str) -> None:
    assert re.fullmatch(part, sample, ANY_CASE)


@pytest.mark.parametrize(
    ("part", "sample"),
    [
        (text._OVERLONG, "%c2%af"),
        (text._OVERLONG, "%e0%a0"),
        (text._OLD_SERVERS, "%2f"),
        (text._CONTROL_CODE, "%20"),
        (text._ENTITY, "&amp;"),
        (text._ENTITY, "&#47"),
    ],
)
def test_a_part_of_the_pattern_of_odd_encodings_does_not_match(part: str, sample: str) -> None:
    assert not re.fullmatch(part, sample, ANY_CASE)
