"""``opentelemetry-instrument python app.py``: the tools of a program that does not import this
package are governed.

A tool object is held from the moment it is made, and put under governance at its first use, in
place; tools that were made before are found and held, too. Objects that were made without
``__init__`` (unpickled, ``model_construct``) are governed at their first call: each framework is
patched at the methods that lead to a tool's body, and at the body. If governing fails, the call is
refused, never let through. So is every call of a tool whose class replaces one of the framework's
own methods: what it does can't be decided. And so is every call where the instrumentation itself
can't be set up: the launcher only logs what an instrumentor raises, and lets the program run.
"""

from __future__ import annotations

import gc
import inspect
import logging
import pickle
import weakref
from collections.abc import Collection, Mapping
from typing import Any

import wrapt
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined, unused-ignore]

from agenttool_otel.catalog import GovernOptions
from agenttool_otel.context.settings import Settings
from agenttool_otel.errors import AgentToolError, ConfigurationError, PolicyLoadError, ToolDenied
from agenttool_otel.govern.default import default_governor
from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.children import FreshChildren
from agenttool_otel.integrations.facts import Trusts, options_of, read_facts
from agenttool_otel.policy.engines.refusing import RefusingEngine
from agenttool_otel.values.forks import new_rlock

_logger = logging.getLogger("agenttool_otel.instrumentor")


class AgentToolInstrumentor(BaseInstrumentor):  # type: ignore[misc, unused-ignore]
    """Governs every LangChain tool of the process.

    ``instrument(facts={...})`` states facts of tools by name or glob; without code, the JSON file
    that ``AGENTTOOL_TOOLS`` names does. ``instrument(trust_metadata=...)`` takes a function from a
    tool object to whether its metadata counts, too; no tool's does otherwise. Settings come from
    the environment (see Settings).
    """

    _facts: Mapping[str, GovernOptions]  # by name or glob of a tool
    _trusts: Trusts | None
    _failure: Exception | None = None  # why every call is refused
    _refusing: Governor | None = None  # the Governor of all refused tools, once it is made

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the packages without which there is nothing to instrument."""
        return ("langchain-core >= 1.0, < 2",)

    def _instrument(self, **kwargs: Any) -> None:
        from langchain_core.tools import BaseTool

        from agenttool_otel.integrations.langchain.first_use import HeldClasses

        self._held: dict[int, weakref.ref[Any]] = {}
        self._patched: list[tuple[weakref.ref[type], str, Any, Any]] = []
        self._lock = new_rlock()
        self._in_progress: set[int] = set()
        self._facts = {}
        self._failure = None
        self._refusing = None
        self._trusts = kwargs.get("trust_metadata")
        self._classes = HeldClasses(self._govern)
        # first of all: an error after this refuses every call, an error before it would let every
        # call through
        self._replace(BaseTool, "run", self._before)
        self._replace(BaseTool, "arun", self._before)
        self._replace(BaseTool, "__init__", self._after_init)
        self._watch(BaseTool)
        self._hold_existing(BaseTool)
        try:
            facts = kwargs.get("facts")
            if facts is None:
                facts = read_facts(Settings.load().tools_file)
            self._facts = facts
            # a policy that does not load is logged at start, and refuses every call from then on
            default_governor()
            self._failure = kwargs.get("failure")
        except Exception as error:
            self._failure = error
        failure = ""
        if self._failure is not None:
            failure = str(self._failure)
            _logger.error("every call of a tool is refused: %s", _message(self._failure))
        self._children = FreshChildren(
            pickle.dumps(instrument_child),
            self._facts,
            self._trusts,
            failure,
        )

    def _replace(self, cls: type, name: str, wrapper: Any) -> None:
        """Put a wrapper around a method of a class until the instrumentation ends."""
        original = cls.__dict__[name]
        patched = wrapt.FunctionWrapper(original, wrapper)
        setattr(cls, name, patched)
        self._patched.append((weakref.ref(cls), name, original, patched))

    # --- classes ----------------------------------------------------------------------------------

    def _watch(self, base: Any) -> None:
        """Patch the tool classes that there are, and those that will be."""
        original = base.__dict__["__init_subclass__"]

        def init_subclass(cls: type, /, **kwargs: Any) -> None:
            original.__func__(cls, **kwargs)
            self._patch(cls)

        self._init_subclass = original
        base.__init_subclass__ = classmethod(init_subclass)
        waiting = list(base.__subclasses__())
        while waiting:
            cls = waiting.pop()
            waiting += cls.__subclasses__()
            self._patch(cls)

    def _patch(self, cls: type) -> None:
        """Govern the bodies of a class, also of objects that are made without ``__init__``."""
        from agenttool_otel.integrations.langchain.first_use import BASE
        from agenttool_otel.integrations.langchain.methods import BODY_METHODS

        if BASE in cls.__dict__:
            return  # made by this package
        for name in BODY_METHODS:
            if inspect.isfunction(cls.__dict__.get(name)):
                self._replace(cls, name, self._before)

    # --- objects ----------------------------------------------------------------------------------

    def _after_init(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> None:
        wrapped(*args, **kwargs)
        self._hold(instance)

    def _hold_existing(self, base: type) -> None:
        """Hold the tools that were made before."""
        for candidate in gc.get_objects():
            # not isinstance: it asks __class__, which a proxy may answer with anything
            if issubclass(type(candidate), base):
                self._hold(candidate)

    def _hold(self, tool: Any) -> None:
        """Govern a tool at its first use of any kind; where its class can't be made, at its first
        call.
        """
        try:
            if not self._classes.hold(tool):
                return
        except Exception as error:
            _logger.warning(
                "a tool of %s is governed at its first call only: %s",
                type(tool).__name__,
                _message(error),
            )
            return
        self._note(tool)

    def _note(self, tool: Any) -> None:
        key = id(tool)
        with self._lock:
            self._held[key] = weakref.ref(tool, lambda _: self._held.pop(key, None))

    def _uninstrument(self, **kwargs: Any) -> None:
        from langchain_core.tools import BaseTool

        from agenttool_otel.integrations.langchain.first_use import base_of

        self._children.close()
        BaseTool.__init_subclass__ = self._init_subclass  # type: ignore[method-assign]
        with self._lock:
            for ref in list(self._held.values()):
                tool = ref()
                if tool is not None:
                    object.__setattr__(tool, "__class__", base_of(tool))
            self._held.clear()
            for owner, name, method, patched in reversed(self._patched):
                cls = owner()
                if cls is not None and cls.__dict__.get(name) is patched:
                    setattr(cls, name, method)
            self._patched.clear()

    def _before(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        from agenttool_otel.integrations.langchain.govern import is_governed

        if is_governed(instance):
            return wrapped(*args, **kwargs)
        self._govern(instance)
        # the governed class's own method comes first now, and ends in the wrapped one again
        return getattr(instance, wrapped.__name__)(*args, **kwargs)

    def _govern(self, tool: Any) -> None:
        """Govern a tool object; where that fails, let each of its calls be refused."""
        from agenttool_otel.integrations.langchain.govern import govern_in_place, is_governed

        with self._lock:
            # declaring a tool reads its schema and its function, which leads here again
            if is_governed(tool) or id(tool) in self._in_progress:
                return
            self._in_progress.add(id(tool))
            try:
                if self._failure is not None:
                    raise self._failure
                options = options_of(tool, tool.name, self._facts, self._trusts)
                govern_in_place(tool, None, options, automatic=True)
            except Exception as error:
                self._put_under_refusal(tool, error)
            finally:
                self._in_progress.discard(id(tool))
            self._note(tool)

    def _put_under_refusal(self, tool: Any, error: Exception) -> None:
        """Put a tool under a Governor that refuses each of its calls, with the error in the span."""
        from agenttool_otel.integrations.langchain.first_use import base_of
        from agenttool_otel.integrations.langchain.govern import govern_in_place
        from agenttool_otel.integrations.langchain.methods import replaced_methods

        reason = f"the tool {tool.name!r} can't be governed: {_message(error)}"
        _logger.error("%s; its calls are refused", reason)
        if replaced_methods(base_of(tool)):
            # a class whose own invoke() does not end in _run has no place where it could be refused
            raise ToolDenied(reason) from error
        try:
            governor = self._refusing_governor(reason)
            govern_in_place(tool, governor, GovernOptions(), automatic=True)
        except Exception:
            raise ToolDenied(reason) from error

    def _refusing_governor(self, reason: str) -> Governor:
        if self._refusing is not None:
            return self._refusing
        governor = Governor(policy=RefusingEngine(PolicyLoadError(reason)))
        # one for all tools where the instrumentation itself failed
        if self._failure is not None:
            self._refusing = governor
        return governor


def _message(error: Exception) -> str:
    """The text of an error of this package; of another one its type: its text may have secrets."""
    if isinstance(error, AgentToolError):
        return str(error)
    return type(error).__name__


def instrument_child(
    facts: Mapping[str, GovernOptions],
    trusts: Trusts | None,
    failure: Exception | None,
) -> None:
    """Instrument a process that multiprocessing started afresh, as its parent is.

    Args:
        facts: Facts of tools by name or glob.
        trusts: The parent's ``trust_metadata``.
        failure: Why every call is refused; ``None`` where none is.
    """
    if not is_instrumented():
        AgentToolInstrumentor().instrument(facts=facts, trust_metadata=trusts, failure=failure)


def is_instrumented() -> bool:
    """Return whether ``opentelemetry-instrument`` or ``instrument()`` governs the tools of this
    process.

    A launcher that fails before it reaches this instrumentor (an exporter of an unknown name is
    enough) only logs that, and starts the program all the same.
    """
    return bool(AgentToolInstrumentor().is_instrumented_by_opentelemetry)


def require_instrumented() -> None:
    """Stop a program that should have been instrumented and is not; call it before the first tool
    is used.

    Raises:
        ConfigurationError: the tools of this process are not governed.
    """
    if not is_instrumented():
        raise ConfigurationError(
            "the tools of this process are not governed: start it with opentelemetry-instrument, and"
            " read what that logged at its start"
        )
