"""OpaInProcessEngine: a real OPA, as a library in this process.

It is OPA's own evaluator behind a C interface (``opa-golib-python-bindings``, whose wheel brings a Go runtime), so it
is the reference for what a policy means, without a server. Native calls release the interpreter lock: an evaluation
runs on a helper thread and is given up at its deadline. What was given up can't be stopped and goes on in its thread;
the engine that it occupies is replaced, and when too many are occupied, further questions are refused at once.
"""

from __future__ import annotations

import asyncio
import importlib
import queue
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import (
    ConfigurationError,
    PolicyEvaluationError,
    PolicyLoadError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import EngineName, EntryPoint, FailClosedCause
from agenttool_otel.policy.builtins import OPA_BUILTINS
from agenttool_otel.policy.bundle import Bundle
from agenttool_otel.policy.check import entry_path
from agenttool_otel.policy.jsonio import MAX_INPUT_BYTES, encode_document
from agenttool_otel.policy.load import load_bundle
from agenttool_otel.policy.pool import WorkerPool
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput

__all__ = ["OpaInProcessEngine"]

_MAX_ABANDONED: Final = 4


def _bindings() -> Any:
    try:
        return importlib.import_module("opa_bindings")
    except ImportError as error:
        raise ConfigurationError(f"OPA in process needs the package opa-golib-python-bindings: {error}") from None
    except OSError as error:
        raise ConfigurationError(f"the OPA library does not load on this machine: {error}") from None


class _Worker:
    """One native engine with a thread of its own."""

    def __init__(self, bundle: Bundle) -> None:
        bindings = _bindings()
        self.undefined = bindings.OpaUndefinedError
        self.error = bindings.OpaError
        self._engine = bindings.OpaEngine()
        try:
            for path, text in bundle.modules.items():
                self._engine.add_policy(path, text)
            self._engine.add_data(bundle.data)
        except bindings.OpaError as error:
            raise PolicyLoadError(f"OPA refuses the bundle: {error.message[:500]}") from None
        self._tasks: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]] | None] = queue.SimpleQueue()
        self.busy = False
        self.refusal = ""
        threading.Thread(target=self._run, name="agenttool-opa", daemon=True).start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            call, reply = task
            try:
                reply.put((True, call()))
            except BaseException as error:
                reply.put((False, error))
            self.busy = False
        self._engine.close()

    def evaluate(self, path: str, document: Any, timeout: float) -> Any:
        """Evaluate on the worker's thread, and wait at most so long."""
        reply: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.busy = True
        self._tasks.put((lambda: self._engine.eval_document(path, document), reply))
        try:
            done, value = reply.get(timeout=max(timeout, 0.0))
        except queue.Empty:
            raise PolicyTimeout(f"the evaluation took longer than {max(timeout, 0.0):.3g} s") from None
        if done:
            return value
        if isinstance(value, self.undefined):
            raise PolicyEvaluationError("the entry point is undefined for this input", cause=FailClosedCause.UNDEFINED)
        code = getattr(value, "code", type(value).__name__)
        if code == "prepare_error":
            # about the modules, not about an input, so it may be shown
            self.refusal = str(getattr(value, "message", ""))[:500]
        raise PolicyEvaluationError(f"OPA reports an error ({str(code)[:64]})")

    def stop(self) -> None:
        """End the thread when it is free."""
        self._tasks.put(None)


class OpaInProcessEngine:
    """Evaluates a bundle with a real OPA in this process.

    Args:
        source: a bundle, or the path or URL of one.
        entry_points: rules that the bundle has to define.
        max_input_bytes: largest encoded input that is evaluated.

    Raises:
        ConfigurationError: the library is not installed, or does not load.
        PolicyLoadError: the bundle can't be used.
    """

    def __init__(
        self,
        source: Bundle | str | Path,
        *,
        entry_points: Iterable[str] = (EntryPoint.DECISION,),
        max_input_bytes: int = MAX_INPUT_BYTES,
    ) -> None:
        self._max_input_bytes = max_input_bytes
        self._entry_points = tuple(entry_points)
        self._lock = threading.Lock()
        self._abandoned: list[_Worker] = []
        bundle = source if isinstance(source, Bundle) else load_bundle(source)
        self._pool = WorkerPool(bundle, self._checked(bundle), _Worker)

    @property
    def name(self) -> str:
        """``opa_inprocess``."""
        return EngineName.OPA_INPROCESS

    @property
    def revision(self) -> str:
        """Revision of the bundle in use."""
        return self._pool.bundle.revision

    @property
    def bundle(self) -> Bundle:
        """The bundle in use."""
        return self._pool.bundle

    @property
    def capabilities(self) -> EngineCapabilities:
        """Everything that OPA has."""
        return EngineCapabilities(builtins=OPA_BUILTINS, tracing=True, coverage=True)

    def swap(self, bundle: Bundle) -> None:
        """Use another bundle from the next evaluation on.

        Args:
            bundle: the new bundle.

        Raises:
            PolicyLoadError: it can't be used; the old one stays.
        """
        self._pool.swap(bundle, self._checked(bundle))

    def _checked(self, bundle: Bundle) -> _Worker:
        from agenttool_otel.policy.check import load_program

        defined = {rule.path for rule in load_program(bundle).rules}
        for entry_point in self._entry_points:
            if entry_path(entry_point) not in defined:
                raise PolicyLoadError(f"the entry point {entry_point} is not defined in the bundle")
        worker = _Worker(bundle)
        try:
            # modules compile at the first question
            worker.evaluate(".".join(entry_path(self._entry_points[0])), {}, 30.0)
        except PolicyEvaluationError:
            # undefined for an empty input, or an error of evaluation, says nothing about the bundle
            if worker.refusal:
                worker.stop()
                raise PolicyLoadError(f"OPA refuses the bundle: {worker.refusal}") from None
        except PolicyTimeout:
            raise PolicyLoadError("OPA did not get ready with the bundle in 30 s") from None
        return worker

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate; see ``PolicyEngine``.

        Args:
            entry_point: full name of a rule.
            document: the input.
            timeout: seconds that it may take.

        Raises:
            PolicyEvaluationError: error or undefined result.
            PolicyTimeout: the deadline passed.
            PolicyUnavailable: the engine is closed, or too many evaluations were given up and still run.
        """
        path = ".".join(entry_path(entry_point))
        encode_document(document, limit=self._max_input_bytes)
        self._check_abandoned()
        bundle, worker = self._pool.lend()
        try:
            value = worker.evaluate(path, document, timeout)
        except PolicyTimeout:
            with self._lock:
                self._abandoned.append(worker)
            worker.stop()
            raise
        except BaseException:
            self._pool.give_back(bundle, worker)
            raise
        self._pool.give_back(bundle, worker)
        return EngineAnswer(value, bundle.revision)

    async def aevaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate without blocking the event loop; as ``evaluate``.

        Args:
            entry_point: as ``evaluate``.
            document: as ``evaluate``.
            timeout: as ``evaluate``.
        """
        return await asyncio.to_thread(self.evaluate, entry_point, document, timeout=timeout)

    def _check_abandoned(self) -> None:
        with self._lock:
            self._abandoned = [worker for worker in self._abandoned if worker.busy]
            if len(self._abandoned) >= _MAX_ABANDONED:
                raise PolicyUnavailable("too many policy evaluations were given up and still run")

    def close(self) -> None:
        """End the helper threads that are free; further calls raise PolicyUnavailable."""
        self._pool.close()
