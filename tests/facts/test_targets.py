"""Which values of a call are the same target as in another."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel.facts.targets import target_digests

KEY = b"k" * 32


def digests(tool_id: str, arguments: dict[str, Any]) -> dict[str, bytes]:
    return dict(target_digests(tool_id, arguments, KEY))


def test_an_address_is_the_same_target_of_any_tool() -> None:
    mail = digests("mail.send", {"to": ["Eve@Example.org"]})
    invitation = digests("calendar.invite", {"guest": {"email": "eve@example.org"}})
    assert mail["/to/0"] == invitation["/guest/email"]


def test_an_account_number_is_the_same_in_groups() -> None:
    grouped = digests("bank.pay", {"iban": "DE89 3704 0044 0532 0130 00"})
    joined = digests("bank.check", {"account": "de89370400440532013000"})
    assert grouped["/iban"] == joined["/account"]


def test_another_value_counts_for_its_argument_and_tool() -> None:
    first = digests("bank.pay", {"payee": "13", "invoice": "13"})
    second = digests("bank.check", {"payee": "13"})
    assert len({first["/payee"], first["/invoice"], second["/payee"]}) == 3


@pytest.mark.parametrize("value", [True, None, "", "  ", "x" * 1_025, b"eve"])
def test_what_can_be_no_target_has_no_digest(value: Any) -> None:
    assert digests("bank.pay", {"payee": value}) == {}


def test_a_number_has_a_digest() -> None:
    assert digests("bank.pay", {"payee": 4_711})["/payee"]


def test_a_number_that_python_does_not_write_has_no_digest() -> None:
    assert digests("bank.pay", {"payee": 10**5_000}) == {}
