"""Hard cases by class: key names, headers, command lines, URLs, encodings, sentences, personal
data; and what stays.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from redaction_cases import HARMLESS, SECRET, ghp

from agenttool_otel.names import RedactionState
from agenttool_otel.redaction import RedactionSettings, Redactor, default_redactor


@pytest.mark.parametrize(("value", "secret"), SECRET, ids=lambda case: str(case)[:60])
def test_a_secret_of_each_class_is_gone_and_stays_gone(value: Any, secret: str) -> None:
    result = default_redactor().redact(value)
    shown = (
        result.value
        if isinstance(result.value, str)
        else json.dumps(result.value, ensure_ascii=False)
    )
    assert secret not in shown
    assert result.value != value
    assert result.state is RedactionState.REDACTED
    again = default_redactor().redact(result.value)
    assert (again.value, again.redactions) == (result.value, ())


@pytest.mark.parametrize("value", HARMLESS, ids=lambda case: str(case)[:60])
def test_what_only_looks_like_a_secret_stays(value: Any) -> None:
    result = default_redactor().redact(value)
    assert result.value == value
    assert result.redactions == ()
    assert result.state is RedactionState.NONE


def test_facts_name_kind_pointer_and_count_never_the_value() -> None:
    value = {"items": [{"note": f"a {ghp} b {ghp}"}, {"a/b~c": {"password": "hunter2"}}]}
    result = default_redactor().redact(value)
    facts = {(item.kind, item.pointer): item.count for item in result.redactions}
    assert facts == {
        ("github_token", "/items/0/note"): 2,
        ("password", "/items/1/a~1b~0c/password"): 1,
    }
    assert result.value == {
        "items": [
            {"note": "a [redacted:github_token] b [redacted:github_token]"},
            {"a/b~c": {"password": "[redacted:password]"}},
        ]
    }
    assert "hunter2" not in repr(result)
    assert ghp not in repr(result)


def test_a_header_keeps_its_scheme() -> None:
    assert default_redactor().redact({"Authorization": "Bearer abcdef123456"}).value == {
        "Authorization": "Bearer [redacted:authorization]"
    }


def test_only_the_credential_of_a_url_goes() -> None:
    result = default_redactor().redact_text(
        "postgres://app:s3cr3t@db.internal:5432/app?sslmode=require"
    )
    assert (
        result.value
        == "postgres://app:[redacted:url_password]@db.internal:5432/app?sslmode=require"
    )


def test_json_inside_of_a_string_keeps_its_form() -> None:
    text = '{"b" :1.0,  "password":\t"hunter2", "n": 1e400, "b": 2}'
    assert default_redactor().redact({"body": text}).value == {
        "body": '{"b" :1.0,  "password":\t"[redacted:password]", "n": 1e400, "b": 2}'
    }


def test_secrets_as_keys_go_and_do_not_swallow_each_other() -> None:
    other = ghp[:-1] + "7"
    result = default_redactor().redact({ghp: 1, other: 2})
    assert result.value == {"[redacted:github_token]": 1, "[redacted:github_token]#2": 2}


_CUT_KEY = (
    "x -----BEGIN RSA "
    + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDAC4AWkdw"
)


@pytest.mark.parametrize("placeholder", ["[redacted:{kind}]", "<gone {kind}>"])
@pytest.mark.parametrize(
    ("value", "beside"),
    [
        ([_CUT_KEY, "00"], "00"),
        ((ghp, "ab12cd"), "ab12cd"),
        ({"name": _CUT_KEY, "value": "00ab"}, "00ab"),
        ({_CUT_KEY: "00ab"}, "00ab"),
        (["run", f"--{ghp}", "abc123x9zq"], "abc123x9zq"),
        ('{"name": "' + ghp + '", "value": "00ab"}', "00ab"),
    ],
    ids=["list", "tuple", "name and value", "member", "flag", "JSON in text"],
)
def test_a_placeholder_is_no_name_for_the_value_beside_it(
    value: Any, beside: str, placeholder: str
) -> None:
    redactor = Redactor(RedactionSettings(placeholder=placeholder))
    once = redactor.redact(value)
    assert len(once.redactions) == 1
    assert beside in json.dumps(once.value)
    again = redactor.redact(once.value)
    assert (again.value, again.redactions) == (once.value, ())


def test_two_headers_in_one_list_are_not_taken_for_a_pair() -> None:
    value = [["Accept", "text/html"], ["X-Trace", "abc"]]
    assert default_redactor().redact(value).value == value


def test_personal_data_can_be_left_to_others() -> None:
    value = {"to": "bob.smith@acme.io", "card": "4111 1111 1111 1111", "password": "x1"}
    result = Redactor(RedactionSettings(pii=False)).redact(value)
    assert result.value == {**value, "password": "[redacted:password]"}


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112",
        "DE89 3704 0044 0532 0130 01",
        "666-22-1234",
        "529.982.247-24",
        "bob@example.com",
    ],
)
def test_wrong_check_digits_and_example_addresses_stay(text: str) -> None:
    assert default_redactor().redact_text(f"see {text} there").value == f"see {text} there"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("378282246310005", "payment_card"),
        ("6011-1111-1111-1117", "payment_card"),
        ("GB82 WEST 1234 5698 7654 32", "iban"),
        ("NL91ABNA0417164300", "iban"),
        ("529.982.247-25", "national_id"),
        ("12345678Z", "national_id"),
        ("RSSMRA85T10A562S", "national_id"),
        ("131052-308T", "national_id"),
        ("+44 20 7946 0958", "phone"),
        ("maria.garcia@empresa.es", "email"),
    ],
)
def test_personal_data_with_right_check_digits_goes(text: str, kind: str) -> None:
    result = default_redactor().redact_text(f"see {text} there")
    assert result.value == f"see [redacted:{kind}] there"
    assert [item.kind for item in result.redactions] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Signed-off-by: Jane Doe <jane.doe@corp.io>",
        'authors = ["Lia Park <lia.park@widgets.io>"]',
        "# Copyright (c) 2021 Ann Lee <ann.lee@widgets.io>",
        "rsync -a bob@files.acme.io:/srv/ .",
        "Reception: +44 20 7946 0958",
        "call our hotline +1 800 555 0199 for help",
        "Use 4111 1111 1111 1111 as a test card",
        "sample IBAN: GB82 WEST 1234 5698 7654 32",
    ],
)
def test_what_is_published_or_made_up_stays(text: str) -> None:
    assert default_redactor().redact_text(text).value == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (
            "wandb login 163d00d68df6db75d0c3f7eb9340051e467ab4a3",
            "163d00d68df6db75d0c3f7eb9340051e467ab4a3",
        ),
        ("net use Z: \\\\srv\\share Dun1in*Cove /user:corp\\bob", "Dun1in*Cove"),
        ("my card is 4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("Jane Doe, mobile +49 151 23456789", "+49 151 23456789"),
    ],
)
def test_what_stands_beside_those_goes(text: str, secret: str) -> None:
    assert secret not in default_redactor().redact_text(text).value
