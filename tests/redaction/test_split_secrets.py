"""Secrets that are spread over the items of a list: a file's lines, a stream's parts,
content blocks.
"""

from __future__ import annotations

import base64
import json
import random
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_texts import pattern_text
from redaction_cases import ghp as TOKEN

from agenttool_otel.redaction import RedactionSettings, Redactor, default_redactor
from agenttool_otel.redaction.detectors.token_formats import TOKEN_RULES, TokenRule
from agenttool_otel.redaction.types import Detector

# a Discord token begins with nothing that could be recognised in a part of it
JOINED = [rule for rule in TOKEN_RULES if rule.joined and rule.id != "discord_bot_token"]


def private_key(seed: int = 1) -> list[str]:
    body = base64.b64encode(random.Random(seed).randbytes(900)).decode()
    return ["-----BEGIN PRIVATE KEY-----", *textwrap.wrap(body, 64), "-----END PRIVATE KEY-----"]


def leaked(value: Any, secret: str, length: int = 8) -> list[str]:
    text = json.dumps(value)
    return [
        secret[at : at + length]
        for at in range(len(secret) - length + 1)
        if secret[at : at + length] in text
    ]


def whole_token(rule: TokenRule, seed: int) -> str:
    """A token of a format, found when it stands alone, and only as a whole."""
    source = random.Random(f"{rule.id}{seed}")
    for _ in range(50):
        text = pattern_text(rule.pattern, source).strip()
        found = default_redactor().redact(text)
        if (
            found.redactions
            and found.redactions[0].rule == rule.id
            and text.isascii()
            and not set(text) & set(" \\\"'")
        ):
            return text
    raise AssertionError(f"no token of {rule.id}")


@pytest.mark.parametrize(
    "shape",
    [
        lambda lines: lines,
        lambda lines: {"lines": lines},
        lambda lines: tuple(lines),
        lambda lines: [{"number": at, "text": line} for at, line in enumerate(lines)],
        lambda lines: [line + "\n" for line in lines],
        lambda lines: ["# deploy", *lines, "echo done"],
        lambda lines: json.dumps(lines),
        lambda lines: json.dumps(
            {"matches": [{"line": at, "text": line} for at, line in enumerate(lines)]}
        ),
        lambda lines: {"body": json.dumps({"lines": lines})},
    ],
)
def test_a_private_key_that_is_returned_line_by_line_is_removed(shape: Any) -> None:
    lines = private_key()
    redacted = default_redactor().redact(shape(lines))
    for line in lines[1:-1]:
        assert not leaked(redacted.value, line, 16)
    assert {"private_key"} <= {item.kind for item in redacted.redactions}


def test_what_stands_around_the_lines_of_a_key_stays() -> None:
    redacted = default_redactor().redact(["# deploy", *private_key(), "echo done"])
    assert redacted.value[0] == "# deploy"
    assert redacted.value[-1] == "echo done"


def test_a_key_that_nothing_closes_ends_where_its_lines_end() -> None:
    items = [{"text": line} for line in (*private_key()[:4], "def main() -> None:", "    run()")]
    redacted = default_redactor().redact(items)
    assert [item["text"] for item in redacted.value[4:]] == ["def main() -> None:", "    run()"]
    assert not leaked(redacted.value, items[2]["text"], 16)


def test_lines_that_only_open_keys_take_nothing_along() -> None:
    found = [{"file": name, "text": "-----BEGIN PRIVATE KEY-----"} for name in ("a.pem", "b.pem")]
    items = [*found, {"file": "c.py", "text": "HEADER = 'x'"}]
    assert default_redactor().redact(items).value[2] == {"file": "c.py", "text": "HEADER = 'x'"}


@pytest.mark.parametrize("rule", JOINED, ids=lambda rule: rule.id)
@pytest.mark.parametrize("seed", range(2))
def test_a_token_in_two_parts_is_removed(rule: TokenRule, seed: int) -> None:
    token = whole_token(rule, seed)
    # behind its keyword: a part without one says nothing by itself
    first = min(token.lower().find(word) for word in rule.keywords if word in token.lower())
    longest = max(len(word) for word in rule.keywords if token.lower().startswith(word, first))
    at = min(first + longest + 3, len(token) - 4)
    parts = [token[:at], token[at:]]
    values: list[Any] = [parts, [{"delta": part} for part in parts]]
    # JSON inside of a text is only read where a string of it is suspicious
    if max(map(len, parts)) >= 20:
        values.append(json.dumps(parts))
    for value in values:
        redacted = default_redactor().redact(value)
        assert redacted.redactions, value
        assert not leaked(redacted.value, token[at:])


@given(st.integers(0, 2**32), st.lists(st.integers(1, 6), min_size=8, max_size=40))
def test_a_token_that_is_streamed_in_small_parts_is_removed(seed: int, widths: list[int]) -> None:
    source = random.Random(seed)
    token = "ghp_" + "".join(source.choices("abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789", k=36))
    text = f"The token is {token}, keep it."
    parts, at = [], 0
    for width in widths:
        parts.append(text[at : at + width])
        at += width
    parts.append(text[at:])
    redacted = default_redactor().redact(parts)
    shown = "".join(redacted.value)
    assert token[4:] not in shown
    assert not leaked(shown, token[4:], 12)
    assert shown.startswith("The token is ")
    assert shown.endswith(", keep it.")


@given(st.integers(0, 3), st.lists(st.integers(4, 30), min_size=1, max_size=12))
def test_a_token_that_is_streamed_within_records_is_removed(depth: int, widths: list[int]) -> None:
    pieces, at = [], 0
    for width in [*widths, len(TOKEN)]:
        pieces.append(TOKEN[at : at + width])
        at += width
    chunks: list[Any] = pieces
    for name in ["content", "delta", "message"][:depth]:
        chunks = [{"index": 0, name: chunk, "type": "text"} for chunk in chunks]
    events = [{"id": "chatcmpl-1", "choices": [chunk]} for chunk in chunks if chunk]
    assert not leaked(default_redactor().redact(events).value, TOKEN)


@pytest.mark.parametrize("beside", [["alice", "2026-11-22"], ["ab12cd"], ["internationalization"]])
def test_what_stands_beside_a_whole_token_stays(beside: list[str]) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
    assert default_redactor().redact([token, *beside]).value == ["[redacted:github_token]", *beside]


def test_a_long_token_in_chunks_goes_to_its_end() -> None:
    token = "sk-proj-" + "".join(
        random.Random(5).choices("abcdefghijkmnpqrstuvwxyzABCDEFGH0123456789", k=156)
    )
    chunks = textwrap.wrap(token, 48)
    assert not leaked(default_redactor().redact(chunks).value, token[8:])


def test_each_part_is_told_with_its_own_pointer() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    redacted = default_redactor().redact(
        {"blocks": [{"text": f"key {token[:12]}"}, {"text": token[12:40] + " end"}]}
    )
    assert redacted.value == {
        "blocks": [{"text": "key [redacted:github_token]"}, {"text": "[redacted:github_token] end"}]
    }
    assert [item.pointer for item in redacted.redactions] == ["/blocks/0/text", "/blocks/1/text"]


def test_all_parts_of_a_secret_have_the_same_pseudonym() -> None:
    redactor = Redactor(RedactionSettings(pseudonym_key=b"k" * 32))
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    first, second = redactor.redact([token[:12], token[12:40]]).value
    assert first == second != "[redacted:github_token]"


def test_two_secrets_that_meet_in_one_item_both_go() -> None:
    one, two = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2, "ghp_" + "Z9y8X7w6V5u4T3s2R1" * 2
    redacted = default_redactor().redact([f"{one[:10]}", f"{one[10:]} {two[:10]}", two[10:]])
    assert not leaked(redacted.value, one[10:])
    assert not leaked(redacted.value, two[10:])


@pytest.mark.parametrize(
    "value",
    [
        ["src", "main", "python", "config", "settings", "local"],
        ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "2c26b46b68ffc68ff99b453c1d30413413422d70"],
        [{"id": "sk", "name": "Slovak"}, {"id": "sl", "name": "Slovenian"}],
        [
            "-----BEGIN CERTIFICATE-----",
            "MIIBszCCAVmgAwIBAgIUQ2FuYXJ5",
            "-----END CERTIFICATE-----",
        ],
        ["task-", "runner", "risk-", "report"],
        ["ghp_ is the prefix of", "GitHub's personal access tokens"],
    ],
)
def test_harmless_items_that_follow_each_other_stay(value: list[Any]) -> None:
    assert default_redactor().redact(value).value == value


@given(
    st.lists(
        st.one_of(
            st.text(max_size=12), st.dictionaries(st.sampled_from("ab"), st.text(max_size=9))
        ),
        max_size=9,
    )
)
def test_redacting_a_list_twice_changes_nothing(value: list[Any]) -> None:
    once = default_redactor().redact(value).value
    assert default_redactor().redact(once).value == once


def test_redacting_spread_secrets_twice_changes_nothing() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
    for value in (
        private_key(),
        [token[:9], token[9:]],
        [{"t": token[:9]}, {"t": token[9:] + " x"}],
    ):
        once = default_redactor().redact(value).value
        assert default_redactor().redact(once).value == once


def test_a_budget_ends_the_reading_of_a_list() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
    redacted = default_redactor().redact([token[:10], token[10:], "x" * 50], budget_bytes=60)
    assert not leaked(redacted.value, token[10:])
    assert "over_budget" in {item.kind for item in redacted.redactions}


def test_a_detector_that_fails_on_the_whole_list_costs_the_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redactor = Redactor()

    class Broken:
        name = "private_keys"

        def find(self, data: bytes, lowered: bytes) -> Any:
            raise RuntimeError("no")

    broken: tuple[Detector, ...] = (Broken(),)
    monkeypatch.setattr(redactor._cleaner().text, "_keys", broken)
    redacted = redactor.redact(private_key())
    assert redacted.value == ["[redacted:failed]"]
    assert redacted.state.value == "failed"


class TestServerSentEvents:
    """Secrets whose parts stand in one event after the other."""

    @staticmethod
    def _events(*parts: str) -> str:
        lines = [{"id": "e1", "choices": [{"delta": {"content": part}}]} for part in parts]
        return "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"

    @pytest.mark.parametrize("size", [1, 3, 7, 20])
    def test_a_token_in_parts_is_found(self, size: int) -> None:
        text = f"use {TOKEN} now"
        shown = default_redactor().redact_text(
            self._events(*(text[at : at + size] for at in range(0, len(text), size)))
        )
        told = [
            json.loads(line[6:]) for line in shown.value.splitlines() if line.startswith("data: {")
        ]
        words = "".join(event["choices"][0]["delta"]["content"] for event in told)
        assert words.replace("[redacted:github_token]", "").replace(" ", "") == "usenow"
        assert {event["id"] for event in told} == {"e1"}

    def test_a_password_in_parts_is_found(self) -> None:
        shown = (
            default_redactor()
            .redact_text(self._events("the pass", "word is hun", "ter", "2 and so on"))
            .value
        )
        assert "hun" not in shown
        assert "ter" not in shown
        assert " and so on" in shown

    def test_lines_without_json_are_one_text_too(self) -> None:
        shown = default_redactor().redact_text(f"data: {TOKEN[:9]}\n\ndata: {TOKEN[9:]}\n\n").value
        assert TOKEN[9:] not in shown

    def test_harmless_events_stay(self) -> None:
        text = self._events("The pass", "word must have ", "12 char", "acters.")
        assert default_redactor().redact_text(text).value == text
