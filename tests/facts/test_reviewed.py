"""The reviewed tables of options: what they leave out of an agreement, and that they say one thing
of each option.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenttool_otel.readers.shell.reviewed.words import review, rows

WORDS = st.lists(
    st.one_of(
        st.sampled_from(["-q", "-x", "--", "-", "src", "a=b", "@a", "*"]), st.text(max_size=8)
    ),
    max_size=6,
)
NAMES = sorted(rows())
SCRIPTS = sorted(name for name, row in rows().items() if row.operands == "script")


@given(name=st.sampled_from(sorted(set(NAMES) - set(SCRIPTS))), before=WORDS, after=WORDS)
def test_an_option_of_no_table_is_never_left_out(
    name: str, before: list[str], after: list[str]
) -> None:
    read = review([*name.split(), *before, "--zz-unheard-of=1", *after])
    assert "--zz-unheard-of=1" in read.exact


@given(words=st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_every_word_of_a_program_without_a_table_is_named(words: list[str]) -> None:
    assert review(["unheard-of", *words]).exact == words


@given(name=st.sampled_from(NAMES), words=WORDS)
def test_what_is_not_reviewed_is_always_named(name: str, words: list[str]) -> None:
    read = review([*name.split(), *words])
    assert set(read.unreviewed) <= {*read.exact, "-"}


@pytest.mark.parametrize("name", NAMES)
def test_a_table_says_one_thing_of_an_option(name: str) -> None:
    row = rows()[name]
    harmless = row.inert | row.valued | row.optional
    assert not harmless & ({*row.places, *row.kinds, *row.loads} | row.sends | row.makes)
    assert not (row.inert & row.valued)
    assert not ({*row.places} & {*row.loads})
    assert all(option.startswith("-") for option in harmless | row.with_value)


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("pytest --basetemp src tests/a.py::b", [("src", "delete_tree"), ("tests/a.py", "list")]),
        ("pytest --cov-report=html:out", [("out", "overwrite")]),
        ("pytest --cov-report=term", []),
        ("go test -coverprofile c.out ./...", [("c.out", "overwrite"), (".", "list")]),
        ("python3 -u -m mypy --html-report=r src", [("r", "overwrite"), ("src", "list")]),
        ("gcc -Wall -O2 -o a a.c", [("a", "overwrite"), ("a.c", "list")]),
        ("coverage html -d out", [("out", "overwrite")]),
    ],
)
def test_options_that_write_name_places(line: str, places: list[tuple[str, str]]) -> None:
    assert review(line.split()).places == places


@pytest.mark.parametrize(
    "line", ["pytest --pastebin=all", "mypy --install-types=1", "curl -d x https://example.org"]
)
def test_options_that_send_are_told(line: str) -> None:
    read = review(line.split())
    assert read.sends
    assert read.unreviewed


@pytest.mark.parametrize(
    "line",
    ["python -c 1", "node -e 1", "python -", "python", "ruby -e 1", "bash -c ls", "php -r 1"],
)
def test_code_in_words_or_input_is_not_reviewed(line: str) -> None:
    assert review(line.split()).unreviewed
