"""What a redactor does with a value: a quick look, a careful copy, and what stands for it where
both fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agenttool_otel.redaction.keys import normal_name
from agenttool_otel.redaction.pointers import targets
from agenttool_otel.redaction.split_secrets import Column, columns, lists_of
from agenttool_otel.redaction.state import RedactionState
from agenttool_otel.redaction.structure import KeyRules, secret_paths
from agenttool_otel.redaction.text import TextRedactor
from agenttool_otel.redaction.types import Path, Redacted, Redaction, RedactionSettings
from agenttool_otel.redaction.walker import Walk, strings_of
from agenttool_otel.redaction.work import MOST_WORK, bounded

_JOIN_LIMIT: Final = 8192
_NOTHING: Final[tuple[Redaction, ...]] = ()


class Cleaner:
    """The detectors of one redactor, and how they are asked. Safe to share between threads."""

    __slots__ = ("_names", "_settings", "text")

    text: TextRedactor

    def __init__(self, settings: RedactionSettings, stricter: Cleaner | None = None) -> None:
        self._settings = settings
        above = None if stricter is None else stricter.text
        self.text = TextRedactor(self._settings, self._json_rules, above)
        extra = frozenset(normal_name(name) for name in self._settings.extra_keys)
        self._names = KeyRules(
            extra,
            self._settings.pii,
            self.text.placeholders.without,
            accounts="iban" not in self._settings.kept_kinds,
        )

    def redact(
        self, value: Any, pointers: Sequence[str], budget_bytes: int | None, pointer_kind: str
    ) -> Redacted:
        """Redact JSON-like data. Never raises."""
        budget = self._settings.byte_budget if budget_bytes is None else max(0, budget_bytes)
        try:
            with bounded(MOST_WORK):
                # most arguments and results
                if not pointers and self._clean(value, budget):
                    return Redacted(value, _NOTHING, RedactionState.NONE)
                walk = Walk(
                    self.text,
                    self._settings,
                    self._names,
                    targets(pointers),
                    pointer_kind,
                    budget,
                )
                new = walk.run(value)
            state = RedactionState.NONE
            if walk.failed:
                state = RedactionState.FAILED
            elif walk.redactions:
                state = RedactionState.REDACTED
            return Redacted(new, walk.redactions, state)
        except Exception as error:
            return self._dropped(type(error).__name__)

    def _clean(self, value: Any, budget: int | None) -> bool:
        """Whether a quick look is enough to see that nothing has to change."""
        if type(value) is str:
            strings: list[str] | None = [value]
        else:
            strings = strings_of(value, self._settings, self._names.extra)
        if strings is None:
            return False
        if self.text.suspicious_together(strings):
            return False
        size = sum(map(len, strings)) + len(strings)
        if budget is not None and _may_exceed(strings, size, budget):
            return False
        if size <= _JOIN_LIMIT:
            # {"path": "a.txt", "limit": "20"}: one search for all
            return not strings or not self.text.suspicious("\t".join(strings))
        return not any(self.text.suspicious(text) for text in strings)

    def _json_rules(
        self, parsed: Any, depth: int
    ) -> dict[tuple[str | int, ...], tuple[str, str, int]]:
        rules: dict[tuple[str | int, ...], tuple[str, str, int]] = {}
        if self._settings.key_names:
            for path, verdict in secret_paths(parsed, self._names).items():
                rules[path] = (verdict.kind, verdict.rule, verdict.start)
        for path, items in lists_of(parsed):
            for column in columns(items):
                self._add_split_secrets(rules, path, column)
        return rules

    def _add_split_secrets(
        self,
        rules: dict[tuple[str | int, ...], tuple[str, str, int]],
        path: Path,
        column: Column,
    ) -> None:
        """Add the parts of secrets that are split over the strings of a list.

        Args:
            rules: takes them.
            path: how to reach the list.
            column: the strings.
        """
        for part in self.text.split_secrets(column.pieces):
            piece = column.pieces[part.place]
            raw = piece.encode("utf-8", "surrogatepass")
            # from bytes to characters: "clé: ghp_"
            before = raw[: part.start].decode("utf-8", "surrogatepass")
            place = (*path, *column.steps[part.place])
            rules.setdefault(place, (part.kind, part.rule, len(before)))

    def _dropped(self, reason: str) -> Redacted:
        placeholder = self.text.placeholders.make("failed", b"")
        return Redacted(placeholder, (Redaction("failed", "", reason, 1),), RedactionState.FAILED)


def _may_exceed(strings: Sequence[str], size: int, budget: int) -> bool:
    """Whether the UTF-8 form of strings is larger than a budget.

    Args:
        strings: the strings.
        size: their characters, at least.
        budget: the budget in bytes.
    """
    # a character has at most four bytes
    if size * 4 <= budget:
        return False
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in strings) > budget
