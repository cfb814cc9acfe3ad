"""Processes that multiprocessing starts afresh (``spawn``, ``forkserver``) are instrumented as
their parent is.

A forked child has its parent's tools as they are. A fresh one has nothing of it but what is pickled
for it: so the instructions travel with the pickled process object, and are carried out before its
target is read. A Governor can't be pickled: where the parent configured its default one in code,
the child refuses every call until it has done so, too.
"""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import wrapt

from agenttool_otel.call.runtime import default_is_configured, replace_default
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.errors import ConfigurationError, PolicyLoadError

_logger = logging.getLogger("agenttool_otel.instrumentor")
_FRAMEWORK = "langchain_core.tools.base"

NOT_CONFIGURED = (
    "the process that started this one configured its Governor in code, and a Governor can't be sent along: call "
    "configure() where this process begins too, for example in a module that its target imports"
)
"""Why a fresh child refuses calls."""


_parent_configured = False
_waiting: FreshChildren | None = None
"""Sends the instructions on from a process that has used no tools itself so far."""


class Instructions(NamedTuple):
    """What a child does before anything else; pickling it is what carries it out."""

    facts: Mapping[str, GovernOptions]
    trusts: Callable[[Any], bool] | None
    failure: str  # why every call is to be refused
    configured: bool  # whether the parent configured its default Governor in code

    def __reduce__(self) -> Any:
        return _follow, tuple(self)


class FreshChildren:
    """Sends instructions along with the processes that are started afresh, until it is closed.

    Args:
        facts: facts of tools, as the parent's instrumentor has them.
        trusts: the parent's ``trust_metadata``.
        failure: why the parent refuses every call, if it does.
    """

    def __init__(
        self, facts: Mapping[str, GovernOptions], trusts: Any, failure: Exception | None
    ) -> None:
        self._facts, self._trusts = facts, trusts
        self._failure = "" if failure is None else str(failure)

        def reduce(process: BaseProcess, protocol: Any = 2) -> Any:
            return _process, (self._instructions(), object.__reduce_ex__(process, protocol))

        self._reduce = reduce
        BaseProcess.__reduce_ex__ = reduce  # type: ignore[method-assign, assignment]

    def close(self) -> None:
        """Send nothing any more."""
        if BaseProcess.__dict__.get("__reduce_ex__") is self._reduce:
            del BaseProcess.__reduce_ex__

    def _instructions(self) -> Instructions:
        facts, trusts, failure = self._facts, self._trusts, self._failure
        if not _can_be_sent(facts):
            facts, failure = (
                {},
                failure
                or "the facts of its tools can't be pickled for a process that starts afresh",
            )
        if not _can_be_sent(trusts):
            trusts = None  # nothing in a tool's metadata is believed then
        return Instructions(facts, trusts, failure, default_is_configured() or _parent_configured)


def _can_be_sent(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _follow(
    facts: Mapping[str, GovernOptions], trusts: Any, failure: str, configured: bool
) -> None:
    """Instrument this process as its parent is; where it uses no tools, nothing is imported."""
    global _parent_configured, _waiting
    _parent_configured = configured
    if configured and not default_is_configured():
        _refuse_until_configured()
    if _FRAMEWORK in sys.modules:
        _instrument(facts, trusts, failure)
        return
    _waiting = FreshChildren(facts, trusts, ConfigurationError(failure) if failure else None)
    wrapt.register_post_import_hook(lambda module: _instrument(facts, trusts, failure), _FRAMEWORK)


def _instrument(facts: Mapping[str, GovernOptions], trusts: Any, failure: str) -> None:
    from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor, is_instrumented

    if _waiting is not None:
        _waiting.close()
    if not is_instrumented():
        error = ConfigurationError(failure) if failure else None
        AgentToolInstrumentor().instrument(facts=facts, trust_metadata=trusts, failure=error)


def _refuse_until_configured() -> None:
    from agenttool_otel.govern.governor import Governor
    from agenttool_otel.policy.engines.refusing import RefusingEngine

    _logger.warning(
        "every call of a tool is refused here until configure() is called: %s", NOT_CONFIGURED
    )
    replace_default(
        Governor(policy=RefusingEngine(PolicyLoadError(NOT_CONFIGURED))), configured=False
    )


def _process(instructions: None, reduced: tuple[Any, ...]) -> Any:
    """Make the process object that was pickled behind the instructions."""
    del instructions
    make, args, state = (*reduced, None)[:3]
    process = make(*args)
    if isinstance(state, tuple) and len(state) == 2:  # of a class with slots
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
