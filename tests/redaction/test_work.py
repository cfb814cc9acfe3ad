"""What redaction may cost: counted over a whole result, and what is not looked at does not
leave.
"""

from __future__ import annotations

import string
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import Governor
from agenttool_otel.redaction import Redactor
from agenttool_otel.redaction.detectors.built_in import built_in
from agenttool_otel.redaction.detectors.phrases import _is_sorted, _runs
from agenttool_otel.redaction.text import _ONE_WORD
from agenttool_otel.redaction.types import ALL_DETECTORS, RedactionSettings
from agenttool_otel.redaction.work import MOST_WORK, Purse, paid_from
from agenttool_otel.results.transform import CleanText, CleanValue

MEGABYTE = 1 << 20
SECRET = "ghp_" + "Zt4mLx7Vw2Rk9Py3Nd6Hf1Jb5Gc0Sa8Ue7Qq"
TEXTS: dict[str, str] = {
    "words": "word " * (MEGABYTE // 5),
    "password: ": "password: " * (MEGABYTE // 10),
    "token=": " ".join(f"token=a{number:08d}bX" for number in range(48_000)),
    "seed words": "abandon ability able about above absent absorb abstract absurd abuse access accident "
    * 12_500,
    "secret:": "secret: x\n" * (MEGABYTE // 10),
    "api_key": 'api_key="a1b2"; ' * (MEGABYTE // 16),
    "mails": " ".join(f"user{number}@firm{number}.net" for number in range(40_000)),
    "lines of a table": "password,user\n" + "hunter2x,bob\n" * 80_000,
}
WORDS = st.sampled_from(
    [
        "password",
        "token",
        "secret",
        "key",
        "api_key",
        "private",
        "pwd",
        "Authorization",
        "Bearer",
        "AKIA",
        "p",
        "u",
        "mysql",
        "-----BEGIN",
        "--password",
        "/home/me/",
    ]
)

BETWEEN_WORDS = [
    name for name in ALL_DETECTORS if name != "encoded" and built_in(name).between_words
]


@pytest.mark.parametrize("name", TEXTS)
def test_a_megabyte_costs_a_bounded_number_of_steps(name: str) -> None:
    purse = Purse()
    redactor = Redactor()
    cleaner = CleanText(lambda text: redactor.redact_text(text).value, _purse=purse)
    shown = "".join(cleaner.pieces([TEXTS[name]]))
    assert purse.left > -MOST_WORK / 4, "no more than the purse is spent"
    assert shown


@pytest.mark.speed
@pytest.mark.parametrize("name", TEXTS)
def test_a_megabyte_costs_about_a_second(name: str) -> None:
    redactor = Redactor()
    cleaner = CleanText(lambda text: redactor.redact_text(text).value)
    before = time.process_time()
    assert "".join(cleaner.pieces([TEXTS[name]]))
    assert time.process_time() - before < 8, (
        "about a second on a machine that has nothing else to do"
    )


def test_what_an_empty_purse_cannot_pay_is_withheld() -> None:
    redactor, purse = Redactor(), Purse()
    purse.left = 0
    with paid_from(purse):
        assert redactor.redact(f"token={SECRET}").value == "[omitted:too_much_work]"
        assert redactor.redact({"a": [f"x {SECRET}"]}).value == {"a": ["[omitted:too_much_work]"]}
        assert redactor.redact("nothing of interest").value == "nothing of interest"


@pytest.mark.parametrize("at", [0, 500_000, 1_000_000])
def test_no_secret_leaves_a_text_that_costs_too_much(at: int) -> None:
    redactor = Redactor()
    text = TEXTS["token="]
    cleaner = CleanText(lambda piece: redactor.redact_text(piece).value)
    shown = "".join(cleaner.pieces([f"{text[:at]} {SECRET} {text[at:]}"]))
    assert SECRET not in shown


def test_no_secret_leaves_records_that_cost_too_much() -> None:
    redactor = Redactor()
    cleaner = CleanValue(lambda value, pointer: redactor.redact(value).value)
    records: list[Any] = [{"name": f"a{number:018d}b"} for number in range(12_000)]
    records[-1] = {"name": SECRET}
    shown = [cleaner.at(record, "") for record in records]
    assert SECRET not in str(shown)
    assert shown[0] == records[0]


def test_records_whose_texts_say_nothing_are_kept_to_the_last() -> None:
    redactor = Redactor()
    cleaner = CleanValue(lambda value, pointer: redactor.redact(value).value)
    records = [{"name": "north", "n": number} for number in range(30_000)]
    assert [cleaner.at(record, "") for record in records] == records


@given(
    st.lists(
        st.one_of(WORDS, st.text(string.ascii_letters + string.digits + "_./-", min_size=1)),
        min_size=1,
    )
)
@settings(max_examples=400, deadline=None)
def test_what_needs_signs_finds_nothing_in_a_word_or_path(parts: list[str]) -> None:
    data = "".join(parts).encode()[:256]
    if _ONE_WORD.fullmatch(data):
        for name in BETWEEN_WORDS:
            assert not list(built_in(name).find(data, data.lower())), name


@pytest.mark.parametrize(
    "text",
    [
        "password........Zt4mLx7Vw2Rk9",
        "/IncomingWebhook/f9ee1b2a87c30ad7f3c5bc556e02e6e3/cedeed18-7011-4397-8ed8-5c07b3295661",
        "/home/me/ghp_" + "Zt4mLx7Vw2Rk9Py3Nd6Hf1Jb5Gc0Sa8Ue7Qq",
    ],
)
def test_a_secret_is_found_in_a_word_or_path(text: str) -> None:
    assert _ONE_WORD.fullmatch(text.encode())
    assert Redactor().redact_text(text).redactions


@given(st.lists(st.integers(-1, 4), max_size=30), st.sampled_from([2, 3, 5]))
def test_runs_say_what_looking_at_each_window_says(numbers: list[int], count: int) -> None:
    known, ordered = _runs(numbers)
    for at in range(len(numbers) - count + 1):
        window = numbers[at : at + count]
        assert (known[at] >= count) == (min(window) >= 0)
        assert (ordered[at] >= count) == _is_sorted(window)


@pytest.mark.parametrize("size", [1, 3])
def test_a_larger_text_may_cost_more_in_proportion(size: int) -> None:
    purse = Purse()
    purse.grow(size * MEGABYTE)
    assert purse.left == size * MOST_WORK * 5 / 4


def test_redaction_that_is_switched_off_needs_no_purse() -> None:
    with paid_from(Purse()):
        assert Redactor(RedactionSettings(enabled=False)).redact("token=abc").value == "token=abc"


def test_a_large_result_arrives_whole_whatever_its_copy_costs() -> None:
    governor = Governor()

    @governor.govern(read_only=True, access_kinds=[], write_effects=["none"])
    def give() -> Any:
        return TEXTS["api_key"]

    assert give() == TEXTS["api_key"]
