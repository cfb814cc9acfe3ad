"""The redactor: what the rest of the package calls."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.redaction.state import RedactionState
from agenttool_otel.redaction.types import Redacted, Redaction, RedactionSettings

if TYPE_CHECKING:
    from agenttool_otel.redaction.cleaner import Cleaner

_FORMATTER: Final = logging.Formatter()


class Redactor:
    """Takes secrets out of values before they leave the process. Immutable, safe to share between
    threads.

    Order: pointers from contracts and policies (the whole value), key-name rules on decoded
    structure, then each text in all its readings (as it is; without invisible characters and in
    NFKC; percent-decoded; without line breaks; JSON, base64 and hexadecimal text inside of it)
    through the value detectors. Replacing goes on until nothing more is found, so that redacting
    twice changes nothing.
    """

    __slots__ = ("_loaded", "_settings", "_stricter")

    def __init__(self, settings: RedactionSettings | None = None) -> None:
        """Build the detectors.

        Args:
            settings: defaults where None.

        Raises:
            ValueError: a pattern of the settings can't be compiled.
        """
        self._settings = settings or RedactionSettings()
        self._loaded: Cleaner | None = None
        self._stricter: Redactor | None = None  # whose finds are this one's, and more
        if self._settings != RedactionSettings(pii=self._settings.pii):
            self._cleaner()  # raises now if a setting is not valid

    def _cleaner(self) -> Cleaner:
        """The detectors, whose tables are read when they are first needed."""
        if self._loaded is None:
            from agenttool_otel.redaction.cleaner import Cleaner

            stricter = self._stricter
            above = None if stricter is None else stricter._cleaner()
            self._loaded = Cleaner(self._settings, above)
        return self._loaded

    def keeping(self, kinds: frozenset[str]) -> Redactor:
        """Return a redactor that leaves some kinds of what this one takes out, and looks at no text in
        which this one has just found nothing.

        Args:
            kinds: see ``RedactionSettings.kept_kinds``.
        """
        settings = self._settings
        kinder = Redactor(replace(settings, kept_kinds=settings.kept_kinds | kinds))
        kinder._stricter = self
        kinder._loaded = None  # it was made without this one
        return kinder

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

        Exact builtin types are kept; their subclasses become the builtin type; sets become lists;
        bytes, other objects, cycles and what is too deep or too much become ``[omitted:...]``; NaN
        and infinities become names.

        Args:
            value: anything.
            pointers: JSON pointers, bare names or ``*`` whose values are removed as a whole.
            budget_bytes: bytes of text to scan, instead of the settings' ``byte_budget``; the rest
              is dropped.
            pointer_kind: the kind that redactions by pointer state (``schema_field``, ``policy``).

        Returns:
            The value to pass on. Where nothing had to change it may be the object that was passed
            in: treat it as read-only.
        """
        try:
            cleaner = self._cleaner()
        except Exception as error:
            # the tables can't be read, or there is no stack left to read them
            failed = Redaction("failed", "", type(error).__name__, 1)
            return Redacted(
                self._settings.placeholder.replace("{kind}", "failed"),
                (failed,),
                RedactionState.FAILED,
            )
        return cleaner.redact(value, pointers, budget_bytes, pointer_kind)

    def redact_text(
        self, text: str, *, pointer: str = "", budget_bytes: int | None = None
    ) -> Redacted:
        """Redact one text: an exception's message, a log line, a prompt. Never raises."""
        result = self.redact(text, budget_bytes=budget_bytes)
        if pointer and result.redactions:
            moved = tuple(item._replace(pointer=pointer) for item in result.redactions)
            return result._replace(redactions=moved)
        return result


class LogRedaction(logging.Handler):
    """Redacts the package's own log records before the handlers of the program see them.

    It is the first handler of the package's logger: records pass it on their way up. A handler that
    a program adds to a logger below ("agenttool_otel.policy") is asked before, and sees the record
    as it was made.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Replace a record's message, and the text of its exception, by what may be shown."""
        try:
            redactor = default_redactor()
            message = record.getMessage()
            record.msg = redactor.redact_text(message).value
            record.args = None
            if record.exc_info:
                # an exception's text may quote the argument that it was raised for
                traceback = _FORMATTER.formatException(record.exc_info)
                record.exc_text = redactor.redact_text(traceback).value
                record.exc_info = None
        except Exception as error:
            # log.info("%d", "hunter2"): what can't be formatted can't be redacted
            record.msg = f"[log line withheld: {type(error).__name__}]"
            record.args = None
            record.exc_info = None
        # a program without a handler: this one must not keep warnings from stderr
        last_resort = logging.lastResort
        if last_resort is None or _has_other_handler(record):
            return
        if record.levelno >= last_resort.level:
            last_resort.handle(record)


def _has_other_handler(record: logging.LogRecord) -> bool:
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


redact_log_lines()
