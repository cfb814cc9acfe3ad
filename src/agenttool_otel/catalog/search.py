"""The index of a catalog: which tools a few words are about, best first; it knows no policy and
hides nothing.

All that is said of a tool is one stemmed text: separate fields with weights find less. Tantivy
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
        found = searcher.search(
            self._index.parse_query(" ".join(words), ["text"]), limit, count=False
        )
        return [(searcher.doc(address)["number"][0], score) for score, address in found.hits]


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
        """Add tools by id, each with all that is said of it."""
        self._backend.add(self._counted(tools))

    def search(self, query: str, limit: int) -> list[tuple[str, float]]:
        """Return ids and scores of the tools that a query is about, best first."""
        words = list(dict.fromkeys(words_of(query[:_MAX_QUERY_CHARS])))[:_MAX_QUERY_WORDS]
        known = [right for word in words for right in self._known(word)]
        if not known:
            return []
        return [
            (self._ids[number], score)
            for number, score in self._backend.search(known, limit, self._frequency)
        ]

    def _counted(self, tools: Iterable[tuple[str, str]]) -> Iterator[tuple[int, str]]:
        for tool_id, text in tools:
            words = words_of(text)
            self._frequency.update(set(words))
            self._ids.append(tool_id)
            yield len(self._ids) - 1, " ".join(words)

    def _known(self, word: str) -> list[str]:
        """Return the word, or what it may be a slip of; an inflection of a known word is
        known, too.
        """
        if word in self._frequency or self._backend.search([word], 1, self._frequency):
            return [word]
        if len(word) < _MIN_CORRECTED:
            return []
        near = [edit for edit in _edits(word) if edit in self._frequency]
        return sorted(near, key=lambda edit: -self._frequency[edit])[:_MAX_CORRECTIONS]


def words_of(text: str) -> list[str]:
    """Return the words of a text or name in small letters: ``getUserById`` and ``get_user_by_id``
    have the same.
    """
    return [word.lower() for word in _WORD.findall(text)]


def text_of(tool: dict[str, Any]) -> str:
    """Return all that a tool_declaration says of the tool and its arguments."""
    said = [tool.get(name) for name in ("name", "namespace", "title", "search_hint", "description")]
    contract = tool.get("input_contract")
    schema = contract.get("model_input_schema") if isinstance(contract, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, argument in (properties if isinstance(properties, dict) else {}).items():
        said += [name, argument.get("description") if isinstance(argument, dict) else None]
    return " ".join(part for part in said if isinstance(part, str))


def _edits(word: str) -> set[str]:
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    edits = {a + b[1:] for a, b in cuts if b} | {
        a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1
    }
    for letter in string.ascii_lowercase:
        edits.update(a + letter + b[1:] for a, b in cuts if b)
        edits.update(a + letter + b for a, b in cuts)
    return edits
