"""What a redactor does with a value: a quick look, a careful copy, and what stands for it where
both fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agenttool_otel.redaction.keys import normal_name
from agenttool_otel.redaction.pointers import NO_TARGETS, targets
from agenttool_otel.redaction.split_secrets import columns, lists_of
from agenttool_otel.redaction.state import RedactionState
from agenttool_otel.redaction.structure import KeyRules, secret_paths
from agenttool_otel.redaction.text import TextRedactor
from agenttool_otel.redaction.types import Redacted, Redaction, RedactionSettings
from agenttool_otel.redaction.walker import Walk, strings_of
from agenttool_otel.redaction.work import MOST_WORK, bounded

_JOIN_LIMIT: Final = 8192
_NOTHING: Final[tuple[Redaction, ...]] = ()


class Cleaner:
    """The detectors of one redactor, and how they are asked. Immutable."""

    __slots__ = ("_names", "_settings", "text")

    def __init__(self, settings: RedactionSettings) -> None:
        self._settings = settings
        self.text = TextRedactor(self._settings, self._json_rules)
        extra = frozenset(normal_name(name) for name in self._settings.extra_keys)
        self._names = KeyRules(extra, self._settings.pii, self.text.placeholders.without)

    def redact(
        self, value: Any, pointers: Sequence[str], budget_bytes: int | None, pointer_kind: str
    ) -> Redacted:
        """Redact JSON-like data. Never raises."""
        budget = self._settings.byte_budget if budget_bytes is None else max(0, budget_bytes)
        try:
            with bounded(MOST_WORK):
                if not pointers and self._clean(value, budget):
                    return Redacted(value, _NOTHING, RedactionState.NONE)
                wanted = targets(pointers) if pointers else NO_TARGETS
                walk = Walk(self.text, self._settings, self._names, wanted, pointer_kind, budget)
                new = walk.run(value)
            redactions = walk.redactions
            state = (
                RedactionState.FAILED
                if walk.failed
                else RedactionState.REDACTED
                if redactions
                else RedactionState.NONE
            )
            return Redacted(new, redactions, state)
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
        if (
            budget is not None
            and size * 4 > budget
            and sum(len(s.encode("utf-8", "surrogatepass")) for s in strings) > budget
        ):
            return False
        if size <= _JOIN_LIMIT:
            return not strings or not self.text.suspicious("\t".join(strings))
        return not any(self.text.suspicious(text) for text in strings)

    def _json_rules(
        self, parsed: Any, depth: int
    ) -> dict[tuple[str | int, ...], tuple[str, str, int]]:
        rules: dict[tuple[str | int, ...], tuple[str, str, int]] = {}
        if self._settings.key_names:
            found = secret_paths(parsed, self._names)
            rules = {
                path: (verdict.kind, verdict.rule, verdict.start) for path, verdict in found.items()
            }
        for path, items in lists_of(parsed):
            for column in columns(items):
                for part in self.text.split_secrets(column.pieces):
                    piece = column.pieces[part.place].encode("utf-8", "surrogatepass")
                    start = len(piece[: part.start].decode("utf-8", "surrogatepass"))
                    rules.setdefault(
                        (*path, *column.steps[part.place]), (part.kind, part.rule, start)
                    )
        return rules

    def _dropped(self, reason: str) -> Redacted:
        placeholder = self.text.placeholders.make("failed", b"")
        return Redacted(placeholder, (Redaction("failed", "", reason, 1),), RedactionState.FAILED)
