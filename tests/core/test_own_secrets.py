"""What redaction took out of an argument is found again: these are the call's own secrets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agenttool_otel.call.recording.argument_secrets import _differences

PLACEHOLDER = re.compile(r"\[redacted:\w+\]")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("login p4ssw0rd now", "login [redacted:secret] now", {"p4ssw0rd"}),
        ("p4ssw0rd", "[redacted:secret]", {"p4ssw0rd"}),
        ("a=one1 b=two2", "a=[redacted:x] b=[redacted:y]", {"one1", "two2"}),
        ('key="quoted"', "key=[redacted:x]", {"quoted"}),
        ({"pin": 123456}, {"pin": "[redacted:x]"}, {"123456"}),
        ({"AKIA1234": 1}, {"[redacted:aws]": 1}, {"AKIA1234"}),
        ([["deep", ["secret1"]]], [["deep", "[redacted:x]"]], {"secret1"}),
        ({"same": "text"}, {"same": "text"}, set()),
        ({"flag": True}, {"flag": True}, set()),
    ],
)
def test_what_was_redacted_is_a_secret_of_the_call(
    before: Any, after: Any, found: set[str]
) -> None:
    secrets: set[str] = set()
    _differences(before, after, PLACEHOLDER, secrets)
    assert secrets == found


def test_a_text_that_does_not_line_up_gives_no_secret() -> None:
    secrets: set[str] = set()
    _differences("something else", "login [redacted:secret]", PLACEHOLDER, secrets)
    assert secrets == set()
