"""The index of a catalog: which tools a few words are about, best first; it has no policy and
hides nothing.

All that is declared of a tool is one stemmed text: separate fields with weights find less. Tantivy
where the extra ``search`` is installed, else SQLite's FTS5. A word that no tool has is taken for a
misspelt one.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from agenttool_otel.values.forks import new_lock

DEFAULT_LIMIT: Final = 5
_TEXTS: Final = ("name", "namespace", "title", "search_hint", "description")
# "HTTP" and "Server" of "HTTPServer", "get" and "User" of "getUser", digits by themselves
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+|\d+")
_MAX_QUERY_CHARS: Final = 2_000
_MAX_QUERY_WORDS: Final = 48
_MAX_CORRECTIONS: Final = 3
_MIN_CORRECTED: Final = 4
_WRITER_BYTES: Final = 30_000_000
_POSTINGS: Final = 6_000
"""How many entries of common words FTS5 may go through for one query: its ranking looks at each of
them.
"""

Hits = list[tuple[int, float]]


class Backend(Protocol):
    """A full-text index of numbered texts."""

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts under new numbers."""

    def search(self, words: Sequence[str], limit: int, frequency: Counter[str]) -> Hits:
        """Return numbers and scores of the texts that have some of the words, best first."""


class TantivyBackend:
    """Tantivy in memory."""

    def __init__(self) -> None:
        import tantivy

        self._document = tantivy.Document
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="en_stem")
        builder.add_integer_field("number", stored=True)
        self._index = tantivy.Index(builder.build())

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts under new numbers."""
        writer = self._index.writer(_WRITER_BYTES, 1)
        for number, text in texts:
            writer.add_document(self._document(text=text, number=number))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, words: Sequence[str], limit: int, frequency: Counter[str]) -> Hits:
        """Return numbers and scores of the texts that have some of the words, best first."""
        del frequency
        searcher = self._index.searcher()
        query = self._index.parse_query(" ".join(words), ["text"])
        found = searcher.search(query, limit, count=False)
        hits = []
        for score, address in found.hits:
            number = searcher.doc(address)["number"][0]
            hits.append((number, score))
        return hits


class Fts5Backend:
    """SQLite's FTS5 in memory, for where Tantivy is not installed."""

    def __init__(self) -> None:
        import sqlite3

        self._lock = new_lock()
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._database.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(text, content='', tokenize='porter unicode61')"
        )

    def add(self, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts under new numbers."""
        with self._lock:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO tools(rowid, text) VALUES (?, ?)", texts)
            self._database.execute("COMMIT")

    def search(self, words: Sequence[str], limit: int, frequency: Counter[str]) -> Hits:
        """Return numbers and scores of the texts that have some of the words, best first.

        Each text that has any of the words is ranked, so the common ones are left out where they
        would cost too much.
        """
        chosen: list[str] = []
        postings = 0
        for word in sorted(words, key=lambda word: frequency[word]):
            postings += frequency[word]
            if chosen and postings > _POSTINGS:
                break
            chosen.append(f'"{word}"')
        query = "SELECT rowid, -bm25(tools) FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?"
        with self._lock:
            return self._database.execute(query, (" OR ".join(chosen), limit)).fetchall()


def open_backend() -> Backend:
    """Return Tantivy where it is installed, else FTS5."""
    with suppress(ImportError):
        return TantivyBackend()
    return Fts5Backend()


class ToolIndex:
    """Ranks tools by words, with one letter wrong, missing, too many or in the wrong place.

    Args:
        backend: the full-text index; the best one that is installed where not given.
    """

    def __init__(self, backend: Backend | None = None) -> None:
        self._backend = backend or open_backend()
        self._ids: list[str] = []
        self._frequency: Counter[str] = Counter()

    def add(self, tools: Iterable[tuple[str, str]]) -> None:
        """Add tools by id, each with all that is declared of it."""
        self._backend.add(self._counted(tools))

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """Return ids and scores of the tools that a query is about, best first."""
        words = words_of(query[:_MAX_QUERY_CHARS])
        distinct = list(dict.fromkeys(words))
        known: list[str] = []
        for word in distinct[:_MAX_QUERY_WORDS]:
            known += self._known(word)
        if not known:
            return []
        hits = self._backend.search(known, limit, self._frequency)
        return [(self._ids[number], score) for number, score in hits]

    def _counted(self, tools: Iterable[tuple[str, str]]) -> Iterator[tuple[int, str]]:
        for tool_id, text in tools:
            words = words_of(text)
            self._frequency.update(set(words))
            number = len(self._ids)
            self._ids.append(tool_id)
            yield number, " ".join(words)

    def _known(self, word: str) -> list[str]:
        """Return the word, or what it may be a slip of; an inflection of a known word is
        known, too.
        """
        if word in self._frequency or self._backend.search([word], 1, self._frequency):
            return [word]
        if len(word) < _MIN_CORRECTED:
            return []
        near = [edit for edit in _edits(word) if edit in self._frequency]
        near.sort(key=self._frequency.__getitem__, reverse=True)
        return near[:_MAX_CORRECTIONS]


def words_of(text: str) -> list[str]:
    """Return the words of a text or name in small letters: ``getUserById`` and ``get_user_by_id``
    have the same.
    """
    return [word.lower() for word in _WORD.findall(text)]


def text_of(tool: dict[str, Any]) -> str:
    """Return all texts of a tool_declaration about the tool and its arguments."""
    texts: list[Any] = [tool.get(name) for name in _TEXTS]
    properties = _object(
        _object(_object(tool, "input_contract"), "model_input_schema"), "properties"
    )
    for name, argument in properties.items():
        texts.append(name)
        if isinstance(argument, dict):
            texts.append(argument.get("description"))
    return " ".join(text for text in texts if isinstance(text, str))


def _object(parent: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a member that is an object; an empty one where there is none."""
    member = parent.get(name)
    return member if isinstance(member, dict) else {}


def _edits(word: str) -> set[str]:
    """Return the texts that one slip of the hand makes of a word."""
    edits: set[str] = set()
    for at in range(len(word) + 1):
        before = word[:at]
        rest = word[at:]
        after = rest[1:]
        # "serch" for "search": a letter is missing
        edits.update(f"{before}{letter}{rest}" for letter in string.ascii_lowercase)
        if not rest:
            continue
        # "seearch": one too many; "seerch": a wrong one
        edits.add(before + after)
        edits.update(f"{before}{letter}{after}" for letter in string.ascii_lowercase)
        if after:
            # "saerch": two in the wrong order
            edits.add(before + after[0] + rest[0] + after[1:])
    return edits
