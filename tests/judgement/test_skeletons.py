"""Guessed facts: what a name and a sentence say, and that a skeleton pasted unread makes no policy
more lenient.
"""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

import pytest
from judged_tools import tool_of

from agenttool_otel import Governor, agent_context
from agenttool_otel.preflight.guessed_facts import guesses, skeleton

LEVEL = {"allow": 0, "ask": 1, "deny": 2}
TOOLS = [
    ("send_money", "Send money to an account.", {"account": "str", "amount": "float"}),
    ("read_file", "Read a file.", {"path": "str"}),
    ("write_file", "Write a file.", {"path": "str", "content": "str"}),
    ("sync_folder", "Synchronise a folder.", {"target_dir": "str"}),
    ("fetch", "Fetch a page.", {"url": "str"}),
    ("sh", "Run a command.", {"command": "str"}),
    ("query", "Query the database.", {"sql": "str"}),
    ("search_emails", "Search emails.", {"query": "str", "limit": "int"}),
    ("delete_note", "Delete a note.", {"title": "str"}),
    ("zap", "Zap.", {"number": "int"}),
    ("copy", "Copy a file from a place to another.", {"source_path": "str", "out_path": "str"}),
    ("refresh", "Refresh.", {}),
]
VALUES: dict[str, list[Any]] = {
    "path": ["notes.txt", "/etc/shadow", "/elsewhere/x"], "target_dir": ["out", "/elsewhere"],
    "source_path": ["a", "/etc/passwd"], "out_path": ["b", "/elsewhere/b"],
    "url": ["https://example.org/", "http://169.254.169.254/"], "command": ["ls", "rm -rf /"],
    "sql": ["SELECT 1", "DROP TABLE t"], "account": ["DE89370400440532013000"], "amount": [5.0], "query": ["bill"],
    "limit": [3], "title": ["Taxes"], "number": [1], "content": ["x"],
}  # fmt: skip


@pytest.mark.parametrize("preset", ["balanced", "strict", "coding", "assistant", "plan", "observe"])
@pytest.mark.parametrize("tool", TOOLS, ids=[tool[0] for tool in TOOLS])
def test_a_skeleton_pasted_unread_is_never_laxer(
    tool: tuple[str, str, dict[str, str]], preset: str, tmp_path: Path
) -> None:
    name, text, arguments = tool
    governor = Governor(policy_data={"agenttool": {"settings": {"preset": preset}}})
    plain = governor.govern(tool_of(name, text, arguments), tool_id="plain.tool").tool
    facts = ast.literal_eval(ast.parse(skeleton({name: plain.spec})).body[0].value)  # type: ignore[attr-defined]
    pasted = governor.govern(
        tool_of(name, text, arguments), tool_id="pasted.tool", **facts[name]
    ).tool
    words = f"Please {text} DE89370400440532013000 Taxes 1 5"
    with agent_context(
        actor="agent:a",
        session_id="s",
        user_text=words,
        roots=[str(tmp_path)],
        cwd=str(tmp_path),
        interactive=True,
    ):
        for given in itertools.product(*(VALUES[argument] for argument in arguments)):
            call = dict(zip(arguments, given, strict=True))
            before, after = plain.check(**call).behavior, pasted.check(**call).behavior
            assert LEVEL[after] >= LEVEL[before], (call, before, after)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SearchEmails", "Search emails by a keyword."),
        ("get_messages", "Retrieves the messages of a chat."),
        ("order_status", "Get the status of an order."),
        ("list_deleted", "List deleted files"),
        ("view_transfer_history", "View the transfers of last month"),
        ("get_updates", "Get all updates of a feed. Deletes nothing."),
        ("get_reservation_details", "Get the details of a reservation."),
    ],
)
def test_a_noun_is_no_verb_of_a_reader(name: str, text: str) -> None:
    assert guessed(name, text)["read_only"] is True


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manage_allergies", "List, create, update, and delete allergies."),
        ("lookup", "A tool that deletes the rows that it finds."),
        ("fetch", "Fetches data and posts it to a webhook."),
        ("check_order", "Checks the order, which is then cancelled."),
        ("read_queue", "Reads a message and, e.g. on an error, removes it."),
        ("find_and_update", "Find."),
        ("weather", "A tool that provides the weather."),
    ],
)
def test_any_writing_verb_of_the_sentence_wins(name: str, text: str) -> None:
    found = guessed(name, text)
    assert found["read_only"] is False
    assert found["write_effects"] != []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CarePlanUpdate", "A treatment updating tool to incorporate the latest findings."),
        ("DataCorruption", "Perform data integrity checks."),
        ("EngineTampering", "Inspect and secure engine components."),
        ("ComponentAccess", "Inspect components, ensuring access without detection."),
    ],
)
def test_a_sentence_in_passing_shows_no_reader(name: str, text: str) -> None:
    assert guessed(name, text)["read_only"] is False


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("weather", "Get the weather, including tomorrow's."),
        ("weather", "This is a tool that gets the weather."),
        ("weather", "Use this to quickly find, or to check the weather."),
        ("weather", "Compare and check the weather."),
    ],
)
def test_the_first_verb_of_a_sentence_shows_a_reader(name: str, text: str) -> None:
    assert guessed(name, text)["read_only"] is True


@pytest.mark.parametrize(
    "name",
    ["SendMoney", "place_order", "withdraw", "make_payment", "issue_refund", "bank_transfer"],
)
def test_what_moves_money_is_guessed_to_pay(name: str) -> None:
    found = guessed(name, "Do it.")
    assert "payment" in found["access_kinds"]
    assert found["write_effects"] == ["irreversible"]


def test_every_tool_is_offered_who_writes_what_it_gives() -> None:
    governor = Governor()
    kept = governor.govern(tool_of("find_order", "Find an order.", {"number": "str"}))
    text = skeleton({"find_order": kept.tool.spec})
    for keyword in ("open_world", "result_trust"):
        assert f"        # {keyword!r}: " in text


def guessed(name: str, text: str) -> dict[str, Any]:
    kept = Governor().govern(tool_of(name, text, {"x": "str"}))
    return {guess.keyword: guess.value for guess in guesses(kept.tool.spec)}
