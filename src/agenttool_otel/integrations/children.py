"""Processes that multiprocessing starts afresh (``spawn``, ``forkserver``) are instrumented as
their parent is.

A forked child has its parent's tools as they are. A fresh one has nothing of it but what is pickled
for it: so the instructions travel with the pickled process object, and are followed before its
target is read. A Governor can't be pickled: where the parent configured its default one in code,
the child refuses every call until it has done so, too.
"""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple, Protocol

import wrapt

from agenttool_otel.call.runtime import default_is_configured, replace_default
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ConfigurationError, PolicyLoadError
from agenttool_otel.integrations.facts import Trusts

_logger = logging.getLogger("agenttool_otel.instrumentor")
_FRAMEWORK = "langchain_core.tools.base"

NOT_CONFIGURED = (
    "the process that started this one configured its Governor in code, and a Governor can't be sent along: call "
    "configure() where this process begins too, for example in a module that its target imports"
)
"""Why a fresh child refuses calls."""

_FACTS_CANT_BE_SENT = "the facts of its tools can't be pickled for a process that starts afresh"

_parent_configured = False
"""Whether the process that started this one configured its Governor in code."""

_waiting: FreshChildren | None = None
"""Sends the instructions on from a process that has used no tools itself so far."""


class Instrument(Protocol):
    """A function of a module that instruments the process it is called in."""

    def __call__(
        self,
        facts: Mapping[str, GovernOptions],
        trusts: Trusts | None,
        failure: Exception | None,
    ) -> None:
        """Govern the tools of this process.

        Args:
            facts: Facts of tools by name or glob.
            trusts: The parent's ``trust_metadata``.
            failure: Why every call is refused; ``None`` where none is.
        """


class Instructions(NamedTuple):
    """What a child does before anything else: reading the pickle follows them."""

    # the pickled Instrument; apart, as reading it imports an instrumentor, which a child that uses
    # no tools does not need
    instrument: bytes
    facts: Mapping[str, GovernOptions]  # by name or glob of a tool
    trusts: Trusts | None  # the parent's ``trust_metadata``
    failure: str  # why every call is refused; empty where none is
    configured: bool  # whether the parent configured its default Governor in code

    def __reduce__(self) -> Any:
        return _follow, tuple(self)


class FreshChildren:
    """Sends instructions along with the processes that are started afresh, until it is closed.

    Args:
        instrument: The pickled ``Instrument`` of the children.
        facts: Facts of tools, as the parent's instrumentor has them.
        trusts: The parent's ``trust_metadata``.
        failure: Why the parent refuses every call; empty where it does not.
    """

    def __init__(
        self,
        instrument: bytes,
        facts: Mapping[str, GovernOptions],
        trusts: Trusts | None,
        failure: str,
    ) -> None:
        self._instrument = instrument
        self._facts = facts
        self._trusts = trusts
        self._failure = failure

        def reduce(process: BaseProcess, protocol: Any = 2) -> Any:
            # the instructions are the first argument: pickle reads, and so follows, them first
            reduced = object.__reduce_ex__(process, protocol)
            return _process, (self._instructions(), reduced)

        self._reduce = reduce
        BaseProcess.__reduce_ex__ = reduce  # type: ignore[method-assign, assignment]

    def close(self) -> None:
        """Stop sending instructions."""
        if BaseProcess.__dict__.get("__reduce_ex__") is self._reduce:
            del BaseProcess.__reduce_ex__

    def _instructions(self) -> Instructions:
        facts = self._facts
        trusts = self._trusts
        failure = self._failure
        # {"send_mail": {"validate": lambda arguments: ...}}: a lambda can't be pickled
        if not _can_be_sent(facts):
            facts = {}
            failure = failure or _FACTS_CANT_BE_SENT
        if not _can_be_sent(trusts):
            # without it, the metadata of no tool is trusted
            trusts = None
        return Instructions(
            instrument=self._instrument,
            facts=facts,
            trusts=trusts,
            failure=failure,
            configured=default_is_configured() or _parent_configured,
        )


def _can_be_sent(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _follow(
    instrument: bytes,
    facts: Mapping[str, GovernOptions],
    trusts: Trusts | None,
    failure: str,
    configured: bool,
) -> None:
    """Instrument this process as its parent is, as soon as it imports the framework."""
    global _parent_configured, _waiting
    _parent_configured = configured
    if configured and not default_is_configured():
        _refuse_until_configured()

    def start(module: object = None) -> None:
        if _waiting is not None:
            _waiting.close()
        instrument_process: Instrument = pickle.loads(instrument)  # noqa: S301 - of this program
        error = ConfigurationError(failure) if failure else None
        instrument_process(facts, trusts, error)

    if _FRAMEWORK in sys.modules:
        start()
        return
    _waiting = FreshChildren(instrument, facts, trusts, failure)
    wrapt.register_post_import_hook(start, _FRAMEWORK)


def _refuse_until_configured() -> None:
    from agenttool_otel.govern.governor import Governor
    from agenttool_otel.policy.engines.refusing import RefusingEngine

    _logger.warning(
        "every call of a tool is refused here until configure() is called: %s", NOT_CONFIGURED
    )
    refusing = RefusingEngine(PolicyLoadError(NOT_CONFIGURED))
    replace_default(Governor(policy=refusing), configured=False)


def _process(instructions: None, reduced: tuple[Any, ...]) -> Any:
    """Make the process object that was pickled behind the instructions."""
    del instructions
    make, args, *rest = reduced
    state = rest[0] if rest else None
    process = make(*args)
    # a class with __slots__ has two states: that of its __dict__, and that of its slots
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
        for name, value in (slots or {}).items():
            setattr(process, name, value)
    if state is None:
        return process
    if hasattr(process, "__setstate__"):
        process.__setstate__(state)
    else:
        process.__dict__.update(state)
    return process
