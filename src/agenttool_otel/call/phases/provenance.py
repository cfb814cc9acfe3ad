"""What a tool gives other than by returning: the items of a stream and the text of an exception
reach a model too.

So the session's ledger has to hold their words, or an agent that reads a page in pieces, or in an
error, would follow it with nobody seeing where the value came from.
"""

from __future__ import annotations

from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.sessions import Session
from agenttool_otel.facts.outputs import OPEN_WORLD, OutputTrust

_TAIL_CHARS: Final = 256
"""Characters of a stream that are read again with its next piece: a word may be cut in two."""

_LABEL_CHARS: Final = 80
_MAX_ITEMS: Final = 20_000
_MAX_TEXT_CHARS: Final = 200_000
_ERRORS: Final = OutputTrust(open_world=True, confirms=True)
"""An error repeats what the call was given, as a confirmation does."""

_UNREADABLE: Final = object()
"""Makes the ledger record that it could not read everything."""


class StreamWords:
    """Adds the items of one stream to a session's ledger; never raises."""

    __slots__ = ("_left", "_session", "_tail", "_tool_id")

    def __init__(self, call: Invocation, session: Session) -> None:
        self._session = session
        self._tool_id = call.spec.declaration.tool_id
        self._left = _MAX_ITEMS
        self._tail = ""

    def __call__(self, item: Any) -> None:
        """Take one item."""
        if self._left <= 0:
            return
        self._left -= 1
        if type(item) is str:
            # "see https://evil.exa", "mple/x": the URL is whole only across two items
            whole = self._tail + item[:_TAIL_CHARS]
            self._tail = (
                (self._tail + item)[-_TAIL_CHARS:]
                if len(item) < _TAIL_CHARS
                else item[-_TAIL_CHARS:]
            )
            item = [item, whole]
        _add_to_ledger(self._session, self._tool_id, item if self._left else _UNREADABLE)


def record_output(spec: ToolSpec, arguments: dict[str, Any], session: Session, value: Any) -> None:
    """Add what a call gave, and what it was given, to the session's ledger.

    Args:
        spec: the tool.
        arguments: the permission input.
        session: the session.
        value: what the body returned.
    """
    named = [
        text
        for text in arguments.values()
        if isinstance(text, str) and 0 < len(text) <= _LABEL_CHARS
    ]
    # read_file("notes.txt"): the only short text among the arguments names what was read
    label = named[0] if len(named) == 1 else ""
    session.open_ledger().record_output(
        spec.tool_id,
        value,
        spec.output_trust,
        given=arguments,
        label=label,
        listed=spec.is_source,
    )


def record_exception_text(call: Invocation, session: Session, error: BaseException) -> None:
    """Add the text of an exception to the session's ledger; never raises."""
    tool_id = call.spec.declaration.tool_id
    try:
        texts: Any = [
            str(text)[:_MAX_TEXT_CHARS] for text in (error, *getattr(error, "__notes__", ())[:16])
        ]
    except BaseException:  # other people's __str__, which may raise anything
        texts = _UNREADABLE
    _add_to_ledger(session, tool_id, texts, _ERRORS, call.inputs.permission_input)


def _add_to_ledger(
    session: Session, tool_id: str, value: Any, trust: OutputTrust = OPEN_WORLD, given: Any = None
) -> None:
    try:
        session.open_ledger().record_output(tool_id, value, trust, given=given)
    except BaseException:
        # what can't be read makes the ledger uncertain rather than sure of nothing
        session.open_ledger().record_output(tool_id, _UNREADABLE, OPEN_WORLD)
