"""The redactor: what the rest of the package calls."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.names import RedactionState
from agenttool_otel.redaction.detectors.split_secrets import columns, lists_of
from agenttool_otel.redaction.keys import normal_name
from agenttool_otel.redaction.pointers import NO_TARGETS, targets
from agenttool_otel.redaction.structure import KeyRules, secret_paths
from agenttool_otel.redaction.text import TextRedactor
from agenttool_otel.redaction.types import Redacted, Redaction, RedactionSettings
from agenttool_otel.redaction.walker import Walk, strings_of
from agenttool_otel.redaction.work import MOST_WORK, bounded

_FORMATTER: Final = logging.Formatter()
_JOIN_LIMIT: Final = 8192
_NOTHING: Final[tuple[Redaction, ...]] = ()


class Redactor:
    """Takes secrets out of values before they leave the process. Immutable, safe to share between threads.

    Order: pointers from contracts and policies (the whole value), key-name rules on decoded structure, then each text
    in all its readings (as it is; without invisible characters and in NFKC; percent-decoded; without line breaks;
    JSON, base64 and hexadecimal text inside of it) through the value detectors. Replacing goes on until nothing more is
    found, so that redacting twice changes nothing.
    """

    __slots__ = ("_names", "_settings", "_text")

    def __init__(self, settings: RedactionSettings | None = None) -> None:
        """Build the detectors.

        Args:
            settings: defaults where None.

        Raises:
            ValueError: a pattern of the settings can't be compiled.
        """
        self._settings = settings or RedactionSettings()
        self._text = TextRedactor(self._settings, self._json_rules)
        extra = frozenset(normal_name(name) for name in self._settings.extra_keys)
        self._names = KeyRules(extra, self._settings.pii, self._text.placeholders.without)

    @property
    def settings(self) -> RedactionSettings:
        """How this redactor works."""
        return self._settings

    def redact(
        self,
        value: Any,
        *,
        pointers: Sequence[str] = (),
        budget_bytes: int | None = None,
        pointer_kind: str = "schema_field",
    ) -> Redacted:
        """Redact JSON-like data. Never raises, never runs the value's own code.

        Exact builtin types are kept; their subclasses become the builtin type; sets become lists; bytes, other
        objects, cycles and what is too deep or too much become ``[omitted:...]``; NaN and infinities become names.

        Args:
            value: anything.
            pointers: JSON pointers, bare names or ``*`` whose values are removed as a whole.
            budget_bytes: bytes of text to scan, instead of the settings' ``byte_budget``; the rest is dropped.
            pointer_kind: the kind that redactions by pointer state (``schema_field``, ``policy``).

        Returns:
            The value to pass on. Where nothing had to change it may be the object that was passed in: treat it as
            read-only.
        """
        budget = self._settings.byte_budget if budget_bytes is None else max(0, budget_bytes)
        try:
            with bounded(MOST_WORK):
                if not pointers and self._clean(value, budget):
                    return Redacted(value, _NOTHING, RedactionState.NONE)
                wanted = targets(pointers) if pointers else NO_TARGETS
                walk = Walk(self._text, self._settings, self._names, wanted, pointer_kind, budget)
                new = walk.run(value)
            redactions = walk.redactions
            state = (
                RedactionState.FAILED if walk.failed else RedactionState.REDACTED if redactions else RedactionState.NONE
            )
            return Redacted(new, redactions, state)
        except Exception as error:
            return self._dropped(type(error).__name__)

    def redact_text(self, text: str, *, pointer: str = "", budget_bytes: int | None = None) -> Redacted:
        """Redact one text: an exception's message, a log line, a prompt. Never raises."""
        result = self.redact(text, budget_bytes=budget_bytes)
        if pointer and result.redactions:
            moved = tuple(item._replace(pointer=pointer) for item in result.redactions)
            return result._replace(redactions=moved)
        return result

    def _clean(self, value: Any, budget: int | None) -> bool:
        """Whether a quick look is enough to see that nothing has to change."""
        if type(value) is str:
            strings: list[str] | None = [value]
        else:
            strings = strings_of(value, self._settings, self._names.extra)
        if strings is None:
            return False
        if self._text.suspicious_together(strings):
            return False
        size = sum(map(len, strings)) + len(strings)
        if (
            budget is not None
            and size * 4 > budget
            and sum(len(s.encode("utf-8", "surrogatepass")) for s in strings) > budget
        ):
            return False
        if size <= _JOIN_LIMIT:
            return not strings or not self._text.suspicious("\t".join(strings))
        return not any(self._text.suspicious(text) for text in strings)

    def _json_rules(self, parsed: Any, depth: int) -> dict[tuple[str | int, ...], tuple[str, str, int]]:
        rules: dict[tuple[str | int, ...], tuple[str, str, int]] = {}
        if self._settings.key_names:
            found = secret_paths(parsed, self._names)
            rules = {path: (verdict.kind, verdict.rule, verdict.start) for path, verdict in found.items()}
        for path, items in lists_of(parsed):
            for column in columns(items):
                for part in self._text.split_secrets(column.pieces):
                    piece = column.pieces[part.place].encode("utf-8", "surrogatepass")
                    start = len(piece[: part.start].decode("utf-8", "surrogatepass"))
                    rules.setdefault((*path, *column.steps[part.place]), (part.kind, part.rule, start))
        return rules

    def _dropped(self, reason: str) -> Redacted:
        placeholder = self._text.placeholders.make("failed", b"")
        return Redacted(placeholder, (Redaction("failed", "", reason, 1),), RedactionState.FAILED)


class LogRedaction(logging.Handler):
    """Redacts the package's own log records before the handlers of the program see them.

    It is the first handler of the package's logger: records pass it on their way up. A handler that a program adds to a
    logger below ("agenttool_otel.policy") is asked before, and sees the record as it was made."""

    def emit(self, record: logging.LogRecord) -> None:
        """Replace what a record says, and how its exception reads, by what may be shown."""
        try:
            redactor = default_redactor()
            record.msg, record.args = redactor.redact_text(record.getMessage()).value, None
            if record.exc_info:
                record.exc_text = redactor.redact_text(_FORMATTER.formatException(record.exc_info)).value
                record.exc_info = None
        except Exception as error:
            record.msg, record.args, record.exc_info = f"[log line withheld: {type(error).__name__}]", None, None
        if logging.lastResort is not None and not _is_heard(record) and record.levelno >= logging.lastResort.level:
            logging.lastResort.handle(record)  # as where there is no handler at all


def _is_heard(record: logging.LogRecord) -> bool:
    """Whether any other handler gets the record."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        if any(not isinstance(handler, LogRedaction) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def redact_log_lines() -> None:
    """Let the package's log lines be redacted; once is enough."""
    logger = logging.getLogger("agenttool_otel")
    if not any(isinstance(handler, LogRedaction) for handler in logger.handlers):
        logger.handlers.insert(0, LogRedaction())


@lru_cache(maxsize=1)
def default_redactor() -> Redactor:
    """The redactor with default settings, built once."""
    return Redactor()
