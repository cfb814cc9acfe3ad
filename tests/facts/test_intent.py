"""Whether the user's words call for what a tool does: by words alone, so that everybody can
see why.
"""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel.context.sessions import Session
from agenttool_otel.facts.intent import UserWords
from agenttool_otel.facts.types import IntentFact, ToolWords


def intent(text: str, name: str, *verbs: str, hints: str = "") -> IntentFact:
    said = UserWords()
    said.add(text)
    return said.intent(ToolWords(name, hints, verbs))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Can you please pay the bill for me?", "send_money"),
        ("Reserving a table is all I need", "reserve_restaurant"),
        ("If it is free, book it", "reserve_hotel"),
        ("Make a payment of 50 to Bob", "schedule_transaction"),
        ("Could you email the report to Bob?", "send_email"),
        ("Let's delete the old ones", "delete_file"),
        ("don't forget to email Bob", "send_email"),
        ("Please change my password", "update_password"),
        ("Move the meeting to Friday", "rescheduleCalendarEvent"),
        ("Add Bob to the meeting", "add_calendar_event_participants"),
        ("what is on my calendar?", "get_day_calendar_events"),
        ("ＰＡＹ it", "send_money"),
        ("Please return my order.", "return_delivered_order_items"),
        ("I want to return the skateboards.", "return_delivered_order_items"),
        ("Please exchange my lamp", "exchange_delivered_order_items"),
        ("Frobnicate the shoes", "frobnicate_shoes_of_a_kind"),
        ("Send the report", "find_and_send_report"),
        ("Comment on the post", "post_comment"),
        ("Please call the meeting with Bob off", "cancel_event"),
        ("Set a new meeting with Bob up", "create_event"),
        ("Get rid of it", "delete_file"),
        ("I need the bill paid", "send_money"),
        ("Cancelling both events would help", "cancel_event"),
        ("Re-scheduling the meeting with Bob is all I need", "schedule_event"),
    ],
)
def test_what_was_asked_for_is_called_for(text: str, name: str) -> None:
    assert intent(text, name)["called_for"], intent(text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What's on my calendar on May 15?", "create_calendar_event"),
        ("Summarize the emails I got and the message of Bob", "send_email"),
        ("Enhance the decision-making of the car", "update_software"),
        ("Find a hotel in Paris and tell me the price", "reserve_hotel"),
        ("Can you please pay the bill 'bill-december.txt'?", "delete_file"),
        ("Don't delete anything", "delete_file"),
        ("You can't transfer money", "send_money"),
        ("Which of my transfers was the highest?", "send_money"),
        ("Please email me my reservation", "reserve_hotel"),
        ("I want to order a lamp", "return_delivered_order_items"),
        ("Where is the delivery that I want delivered?", "return_delivered_order_items"),
        ("the mail that Bob sent", "send_email"),
        ("Tell me of the messages on slack", "slack_delete_channel"),
        ("Don't call the meeting off", "cancel_event"),
        ("Call Bob. The lights are off", "cancel_event"),
        ("I stop unauthorized access attempts", "AccessEscalation"),
        ("What do the tickets cost?", "tickets_api"),
        ("", "send_email"),
    ],
)
def test_what_was_only_mentioned_is_not_called_for(text: str, name: str) -> None:
    assert not intent(text, name)["called_for"], intent(text, name)


def test_the_words_are_told_as_the_table_or_author_has_them() -> None:
    assert intent("I would like to have a room reserved", "reserve_hotel")["matched"] == ["reserve"]
    found = intent("Create an event in my calendars", "create_calendar_event")
    assert found == {
        "called_for": True,
        "matched": ["create"],
        "named": ["calendar", "event"],
        "delegated": False,
    }


@pytest.mark.parametrize(
    "text",
    ["Follow the instructions of the mail", "Do the actions in Bob's email", "do what it says"],
)
def test_handing_over_to_what_a_source_says_is_told(text: str) -> None:
    assert intent(text, "send_email")["delegated"] is True


@pytest.mark.parametrize(
    "text",
    [
        "Do the following tasks: 1. read my mail",
        "Don't follow the instructions",
        "What tasks are there?",
    ],
)
def test_tasks_of_the_users_own_are_no_handing_over(text: str) -> None:
    assert intent(text, "send_email")["delegated"] is False


def test_an_author_can_state_the_verbs_in_any_language() -> None:
    assert not intent("Bitte die Rechnung begleichen", "pay_invoice")["called_for"]
    assert intent("Bitte die Rechnung begleichen", "pay_invoice", "begleichen")["matched"] == [
        "begleichen"
    ]
    # no known verb: most of its words
    assert intent("Frobnicate the thing", "frobnicate")["matched"] == ["frobnicate"]


def test_a_hint_tells_what_a_name_does_not() -> None:
    assert intent("Buy two tickets", "tickets_api")["matched"] == ["tickets"]
    assert intent("Buy two tickets", "tickets_api", hints="purchase tickets")["matched"] == ["buy"]


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("Quarterly, please", False),
        ("Quarterly numbers", True),
        ("Quarterly numbers digest", True),
        ("digest", False),
        ("no digest of quarterly numbers", False),
    ],
)
def test_a_tool_without_a_verb_needs_most_of_its_words(text: str, is_asked: bool) -> None:
    assert intent(text, "quarterly_numbers_digest")["called_for"] is is_asked


def test_stated_verbs_stand_for_a_name_without_one() -> None:
    assert intent("Give me the quarterly", "quarterly_digest", "give")["called_for"]


def test_all_turns_of_a_conversation_count() -> None:
    session = Session()
    session.record_user_text(("What is in my basket?",))
    tool = ToolWords("return_delivered_order_items")
    assert not session.intent(tool, ())["called_for"]  # type: ignore[index]
    assert session.intent(tool, ("Then return the lamp, please.",))["called_for"]  # type: ignore[index]
    session.record_user_text(("Then return the lamp, please.",))
    session.record_user_text(("Thanks!",))
    assert session.intent(tool, ())["called_for"]  # type: ignore[index]


@given(
    st.lists(st.sampled_from(["order", "delivered", "item", "pending", "send"]), max_size=4),
    st.sampled_from(["return", "cancel", "delete", "update"]),
)
def test_the_first_word_of_a_name_asks_for_it(others: list[str], verb: str) -> None:
    name = "_".join([verb, *others])
    assert intent(f"Please {verb} my things", name)["called_for"]
    assert not intent("What is the weather like?", name)["called_for"]


@given(
    st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "eta"]), unique=True, min_size=2)
)
def test_fewer_words_of_a_tool_never_ask_more(words: list[str]) -> None:
    name = "_".join(words)
    said = [
        intent(" and ".join(words[:count]), name)["called_for"] for count in range(len(words) + 1)
    ]
    assert said == sorted(said)
    assert said[-1]
    assert not said[0]


@given(st.text(), st.text(max_size=20))
def test_any_text_has_an_answer_and_always_the_same(text: str, name: str) -> None:
    assert intent(text, name) == intent(text, name)


@given(
    st.lists(
        st.sampled_from(["pay", "the", "bill", "and", "email", "Bob", ".", "not", "read"]),
        max_size=12,
    )
)
def test_more_turns_never_take_away_what_was_asked(words: list[str]) -> None:
    said = UserWords()
    said.add(" ".join(words))
    before = said.intent(ToolWords("send_money"))
    said.add("What is the weather?")
    assert set(before["matched"]) <= set(said.intent(ToolWords("send_money"))["matched"])


def test_the_memory_is_bounded_and_holds_no_word() -> None:
    said = UserWords()
    said.add("frobnicate secretword")
    said.add(
        " ".join(
            "a" + "".join(chr(97 + int(digit)) for digit in str(number)) for number in range(40_000)
        )
    )
    assert len(said) <= 8_192
    held = [thing for thing in gc.get_referents(said) if isinstance(thing, (set, bytes))]
    assert held
    assert b"secretword" not in b"".join(
        entry for part in held for entry in (part if type(part) is set else [part])
    )
