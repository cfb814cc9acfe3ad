"""The pattern of account numbers in text, part by part."""

from __future__ import annotations

import re

import pytest

from agenttool_otel.facts import tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("de89370400440532013000", ["89"]),
        ("to de89 3704", ["89"]),
        ("xde89", []),  # inside a word
        ("-de89", ["89"]),
        ("d89", []),
        ("de8", []),
    ],
)
def test_check_digits_stand_behind_a_country(text: str, found: list[str]) -> None:
    assert re.findall(tokens._IBAN_HEAD, text) == found


@pytest.mark.parametrize(
    "body",
    [
        "370400440532013000",
        " 3704 0044 0532 0130 00",
        "-3704-0044-0532-0130-00",
        "nwbk60161331926819",
        " 0001",  # too short for an account: needs another group
    ],
)
def test_bank_and_account_may_stand_in_groups(body: str) -> None:
    matched = re.fullmatch(tokens._IBAN_BODY, body)
    assert bool(matched) is (body != " 0001")


def test_a_body_ends_with_its_word() -> None:
    assert re.match(tokens._IBAN_BODY, "3704004405320130009999x" + "y" * 40) is None


def test_an_account_number_is_found_within_another() -> None:
    # the body of the first takes the letters and digits that begin the second
    found = tokens.tokens_of("gb29 nwbk 6016 1331 9268 19 de89 3704 0044 0532 0130 00")
    assert "gb29nwbk60161331926819" in found.strong
    assert "de89370400440532013000" in found.strong
