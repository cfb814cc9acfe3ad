"""``opentelemetry-instrument python app.py``: the tools of a program that never heard of this
package are governed.

A tool object is held from the moment it is made, and put under governance at its first use, in
place; tools that were made before are found and held, too. Objects that nobody saw being made
(unpickled, ``model_construct``) are governed at their first call: each framework is patched at the
methods that lead to a tool's body, and at the body. If governing fails, the call is refused, never
let through. So is every call of a tool whose class replaces one of the framework's own methods:
what it does can't be decided. And so is every call where the instrumentation itself can't be set
up: the launcher only logs what an instrumentor raises, and lets the program run.
"""

from __future__ import annotations

import gc
import inspect
import logging
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
    that ``AGENTTOOL_TOOLS`` names does. ``instrument(trust_metadata=...)`` takes a function that
    tells of a tool object whether what its metadata states counts too; no tool's does otherwise.
    Settings come from the environment (see Settings).
    """

    _facts: Mapping[str, GovernOptions]
    _trusts: Trusts | None
    _failure: Exception | None = None
    _refusing: Governor | None = None

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
        self._facts, self._failure, self._refusing = {}, None, None
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
            self._facts = facts if facts is not None else read_facts(Settings.load().tools_file)
            # a broken policy is told at start, and refuses every call from then on
            default_governor()
            self._failure = kwargs.get("failure")
        except Exception as error:
            self._failure = error
        if self._failure is not None:
            _logger.error("every call of a tool is refused: %s", _told(self._failure))
        self._children = FreshChildren(self._facts, self._trusts, self._failure)

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
        """Govern the bodies of a class, also of objects that nobody saw being made."""
        from agenttool_otel.integrations.langchain.first_use import BASE
        from agenttool_otel.integrations.langchain.methods import BODY_METHODS

        if BASE in cls.__dict__:
            return  # this package's own
        for name in BODY_METHODS:
            if inspect.isfunction(cls.__dict__.get(name)):
                self._replace(cls, name, self._before)

    # --- objects ----------------------------------------------------------------------------------

    def _after_init(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> None:
        wrapped(*args, **kwargs)
        self._hold(instance)

    def _hold_existing(self, base: type) -> None:
        """Hold the tools that were made before."""
        for found in gc.get_objects():
            if issubclass(type(found), base):
                self._hold(found)

    def _hold(self, tool: Any) -> None:
        """Let each use of a tool begin with its governing; where its class can't be made, its first
        call does.
        """
        try:
            if not self._classes.hold(tool):
                return
        except Exception as error:
            _logger.warning(
                "a tool of %s is governed at its first call only: %s",
                type(tool).__name__,
                _told(error),
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
                if (tool := ref()) is not None:
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
        """Put a tool object under governance; where that can't be done, under a refusal of each of
        its calls.
        """
        from agenttool_otel.integrations.langchain.govern import govern_in_place, is_governed

        with self._lock:
            # declaring a tool reads it
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
        """Put a tool under a Governor that refuses each of its calls, in a span that says why."""
        from agenttool_otel.integrations.langchain.first_use import base_of
        from agenttool_otel.integrations.langchain.govern import govern_in_place
        from agenttool_otel.integrations.langchain.methods import replaced_methods

        told = f"the tool {tool.name!r} can't be governed: {_told(error)}"
        _logger.error("%s; its calls are refused", told)
        if replaced_methods(base_of(tool)):
            raise ToolDenied(told) from error  # no Governor can refuse what goes round its class
        try:
            refusal = RefusingEngine(PolicyLoadError(told))
            if self._failure is not None and self._refusing is None:
                self._refusing = Governor(policy=refusal)
            in_charge = self._refusing or Governor(policy=refusal)
            govern_in_place(tool, in_charge, GovernOptions(), automatic=True)
        except Exception:
            raise ToolDenied(told) from error


def _told(error: Exception) -> str:
    """What this package says of an error; another library's text may hold anything."""
    return str(error) if isinstance(error, AgentToolError) else type(error).__name__


def is_instrumented() -> bool:
    """Tell whether ``opentelemetry-instrument`` (or ``instrument()``) put the tools of this process
    under governance.

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
            "the tools of this process are not governed: start it with opentelemetry-instrument, and look at what that "
            "logged at its start"
        )
