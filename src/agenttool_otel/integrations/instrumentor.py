"""``opentelemetry-instrument python app.py``: the tools of a program that never heard of this package are governed.

Each framework is patched at the methods that lead to a tool's body, and at the body. A tool object is put under
governance at its first call, in place; if that fails, the call is refused, never let through. So is every call of a
method by which a tool class replaces one of the framework's own: what it does can't be decided. And so is every call
where the instrumentation itself can't be set up: the launcher only logs what an instrumentor raises, and lets the
program run.
"""

from __future__ import annotations

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
from agenttool_otel.integrations.facts import Trusts, options_of, read_facts
from agenttool_otel.policy.engines.refusing import RefusingEngine
from agenttool_otel.values.forks import new_lock

_logger = logging.getLogger("agenttool_otel.instrumentor")


class AgentToolInstrumentor(BaseInstrumentor):  # type: ignore[misc, unused-ignore]
    """Governs every LangChain tool of the process.

    ``instrument(facts={...})`` states facts of tools by name or glob; without code, the JSON file that
    ``AGENTTOOL_TOOLS`` names does. ``instrument(trust_metadata=...)`` takes a function that tells of a tool object
    whether what its metadata states counts too; no tool's does otherwise. Settings come from the environment (see
    Settings).
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

        self._swapped: list[tuple[weakref.ref[Any], type]] = []
        self._patched: list[tuple[weakref.ref[type], str, Any, Any]] = []
        self._lock = new_lock()
        self._facts, self._failure, self._refusing = {}, None, None
        self._trusts = kwargs.get("trust_metadata")
        # first of all: an error after this refuses every call, an error before it would let every call through
        wrapt.wrap_function_wrapper(BaseTool, "run", self._before)
        wrapt.wrap_function_wrapper(BaseTool, "arun", self._before)
        self._watch(BaseTool)
        try:
            facts = kwargs.get("facts")
            self._facts = facts if facts is not None else read_facts(Settings.load().tools_file)
            default_governor()  # a broken policy is told at start, and refuses every call from then on
        except Exception as error:
            _logger.error("every call of a tool is refused: %s", _told(error))
            self._failure = error

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
        from agenttool_otel.integrations.langchain.methods import BODY_METHODS, ENTRY_METHODS, is_langchain_class

        if "agenttool" in cls.__dict__:
            return  # a governed class
        names = dict.fromkeys(BODY_METHODS, self._before)
        if not is_langchain_class(cls):
            names |= dict.fromkeys(ENTRY_METHODS, self._refuse)
        for name, wrapper in names.items():
            original = cls.__dict__.get(name)
            if inspect.isfunction(original):
                patched = wrapt.FunctionWrapper(original, wrapper)
                setattr(cls, name, patched)
                self._patched.append((weakref.ref(cls), name, original, patched))

    def _uninstrument(self, **kwargs: Any) -> None:
        from langchain_core.tools import BaseTool
        from opentelemetry.instrumentation.utils import unwrap

        unwrap(BaseTool, "run")
        unwrap(BaseTool, "arun")
        BaseTool.__init_subclass__ = self._init_subclass  # type: ignore[method-assign]
        with self._lock:
            for ref, original in self._swapped:
                if (tool := ref()) is not None:
                    object.__setattr__(tool, "__class__", original)
            self._swapped.clear()
            for owner, name, method, patched in self._patched:
                cls = owner()
                if cls is not None and cls.__dict__.get(name) is patched:
                    setattr(cls, name, method)
            self._patched.clear()

    def _before(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        from agenttool_otel.integrations.langchain.govern import govern_in_place, is_governed

        if is_governed(instance):
            return wrapped(*args, **kwargs)
        with self._lock:
            if not is_governed(instance):
                original = type(instance)
                try:
                    if self._failure is not None:
                        raise self._failure
                    govern_in_place(instance, None, options_of(instance, instance.name, self._facts, self._trusts))
                except Exception as error:
                    self._put_under_refusal(instance, error)
                self._swapped.append((weakref.ref(instance), original))
        # the governed class's own method comes first now, and ends in the wrapped one again
        return getattr(instance, wrapped.__name__)(*args, **kwargs)

    def _refuse(self, wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
        from agenttool_otel.integrations.langchain.methods import refuse_replaced_methods

        name = getattr(instance, "name", "")
        try:
            refuse_replaced_methods(type(instance))
        except AgentToolError as error:
            _logger.error("the tool %r can't be governed, so it is refused: %s", name, error)
            raise ToolDenied(f"the tool {name!r} can't be governed: {error}") from error
        return wrapped(*args, **kwargs)

    def _put_under_refusal(self, tool: Any, error: Exception) -> None:
        """Put a tool under a Governor that refuses each of its calls, in a span that says why."""
        from agenttool_otel.integrations.langchain.govern import govern_in_place

        told = f"the tool {tool.name!r} can't be governed: {_told(error)}"
        _logger.error("%s; its calls are refused", told)
        try:
            refusal = RefusingEngine(PolicyLoadError(told))
            if self._failure is not None and self._refusing is None:
                self._refusing = Governor(policy=refusal)
            govern_in_place(tool, self._refusing or Governor(policy=refusal), GovernOptions())
        except Exception:
            raise ToolDenied(told) from error


def _told(error: Exception) -> str:
    """What this package says of an error; another library's text may hold anything."""
    return str(error) if isinstance(error, AgentToolError) else type(error).__name__


def is_instrumented() -> bool:
    """Tell whether ``opentelemetry-instrument`` (or ``instrument()``) put the tools of this process under governance.

    A launcher that fails before it reaches this instrumentor (an exporter of an unknown name is enough) only logs that,
    and starts the program all the same.
    """
    return bool(AgentToolInstrumentor().is_instrumented_by_opentelemetry)


def require_instrumented() -> None:
    """Stop a program that should have been instrumented and is not; call it before the first tool is used.

    Raises:
        ConfigurationError: the tools of this process are not governed.
    """
    if not is_instrumented():
        raise ConfigurationError(
            "the tools of this process are not governed: start it with opentelemetry-instrument, and look at what that "
            "logged at its start"
        )
