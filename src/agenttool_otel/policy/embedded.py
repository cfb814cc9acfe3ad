"""EmbeddedEngine: Rego inside this process, the default engine.

What is true of it, plainly: an evaluation holds the interpreter lock and can't be interrupted from outside. So a
deadline is kept in two ways: programs that the compiled form accepts stop at its instruction limit, and an answer
that comes after its deadline is thrown away and counts as a timeout. Who must bound a policy that they don't trust
uses ``IsolatedEngine`` or ``OpaServerEngine``.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from agenttool_otel.errors import (
    PolicyError,
    PolicyEvaluationError,
    PolicyLoadError,
    PolicyTimeout,
    PolicyUnavailable,
)
from agenttool_otel.names import EngineName, EntryPoint, FailClosedCause
from agenttool_otel.policy.builtins import EMBEDDED_BUILTINS, verify_builtins
from agenttool_otel.policy.bundle import Bundle
from agenttool_otel.policy.check import check_program, entry_path, load_program
from agenttool_otel.policy.jsonio import MAX_INPUT_BYTES, encode_document
from agenttool_otel.policy.load import load_bundle
from agenttool_otel.policy.native import native_error, new_engine, new_machine
from agenttool_otel.policy.reads import ReadSet, read_set
from agenttool_otel.policy.rego import Program
from agenttool_otel.policy.rvm import CompiledProgram, compile_program
from agenttool_otel.policy.samples import sample_documents
from agenttool_otel.policy.shadow import without_packages
from agenttool_otel.policy.source import BundleSource
from agenttool_otel.policy.types import EngineAnswer, EngineCapabilities, PolicyInput

__all__ = ["CompiledBundle", "EmbeddedEngine"]

_UNDEFINED: Final = "<undefined>"
_generations = itertools.count(1)
_SELF_CHECKS: Final = 24
_TRIAL_RUNS: Final = 64
_MAX_MODES: Final = 64


class CompiledBundle:
    """A checked bundle, ready to be instantiated in any thread; immutable after construction.

    Args:
        bundle: the bundle.
        entry_points: rules that have to be defined.
        fast: use the compiled form where it is shown to give the same answers.

    Raises:
        PolicyLoadError: the bundle can't be used; the message names file and line.
        PolicyUnsupported: it needs a builtin that the engine lacks.
    """

    __slots__ = ("__weakref__", "_reads", "bundle", "compiled", "entry_points", "generation", "program")

    def __init__(self, bundle: Bundle, entry_points: Iterable[str], *, fast: bool = True) -> None:
        self.bundle = bundle
        self.generation = next(_generations)
        self.entry_points = tuple(dict.fromkeys(str(item) for item in entry_points))
        self.program: Program = load_program(bundle)
        check_program(
            self.program, builtins=EMBEDDED_BUILTINS, entry_points=self.entry_points, engine="the embedded engine"
        )
        verify_builtins({call.name for rule in self.program.rules for call in rule.calls})
        # once in this thread: what the parser accepts can still fail to compile
        self.compiled = CompiledProgram(b"", "switched off")
        instance = Instance(self)
        for entry_point in self.entry_points:
            instance.warm(entry_point)
        self._reads: dict[tuple[str, str], ReadSet | None] = {}
        if fast:
            self.compiled = self._checked_program(instance)

    def reads(self, entry_point: str, mode: str) -> ReadSet | None:
        """Return what an entry point can read in a mode of the session; worked out once for each of few modes.

        Args:
            entry_point: full name of a rule.
            mode: the session's mode.
        """
        key = (entry_point, mode)
        if key not in self._reads:
            if entry_point not in self.entry_points or len(self._reads) >= _MAX_MODES:
                return None
            found = read_set(self.program, entry_path(entry_point), lambda path: _instance(self).holds(path, mode))
            self._reads[key] = found
        return self._reads[key]

    def _checked_program(self, interpreter: Instance) -> CompiledProgram:
        """Compile, and keep the result only if it never contradicts the interpreter on made-up inputs."""
        compiled = compile_program(self.bundle, self.program, self.entry_points)
        if not compiled.binary:
            return compiled
        machine = Machine(compiled, self.bundle)
        for document in sample_documents(self.program, _SELF_CHECKS):
            text = encode_document(document).decode("utf-8")
            for entry_point in self.entry_points:
                fast = machine.evaluate(entry_point, text)
                if fast is None:
                    continue
                try:
                    same = interpreter.interpret(entry_point, text) == fast.value
                except PolicyEvaluationError:
                    same = False
                if not same:
                    return CompiledProgram(b"", "the compiled form gave another answer than the interpreter")
        return compiled


class Machine:
    """The compiled form in one thread.

    Args:
        compiled: the program.
        bundle: its bundle.
    """

    __slots__ = ("_machine", "runs", "stops")

    def __init__(self, compiled: CompiledProgram, bundle: Bundle) -> None:
        self._machine = new_machine(compiled.binary)
        self._machine.set_data_json(bundle.data_json)
        self.runs = self.stops = 0

    def evaluate(self, entry_point: str, text: str) -> EngineAnswer | None:
        """Return the answer, or ``None`` when the interpreter has to be asked.

        Args:
            entry_point: full name of a rule.
            text: the input as JSON.
        """
        self.runs += 1
        try:
            self._machine.set_input_json(text)
            value = orjson.loads(self._machine.execute_entry_point(entry_point))
        except BaseException as error:
            # a guard stopped it, or it failed: what that means, the interpreter says
            native_error(error, PolicyEvaluationError)
            self.stops += 1
            return None
        # undefined can be an error that was swallowed
        return None if value == _UNDEFINED else EngineAnswer(value, "")


class Instance:
    """One native engine; usable only in the thread that made it."""

    __slots__ = ("_engine", "_entry_points", "_machine")

    def __init__(self, compiled: CompiledBundle) -> None:
        engine = new_engine()
        try:
            for file, text in compiled.bundle.modules.items():
                engine.add_policy(file, text)
            engine.add_data_json(compiled.bundle.data_json)
        except BaseException as error:
            raise native_error(error, PolicyLoadError, "the bundle can't be loaded: ") from None
        self._engine = engine
        self._entry_points = frozenset(compiled.entry_points)
        self._machine = Machine(compiled.compiled, compiled.bundle) if compiled.compiled.binary else None

    def warm(self, entry_point: str) -> None:
        """Evaluate once on an empty input, so that errors of compilation come out at load."""
        try:
            self._engine.set_input_json("{}")
            self._engine.eval_rule_as_json(entry_point)
        except BaseException as error:
            failure = native_error(error, PolicyLoadError, f"{entry_point}: ")
            if _is_compile_error(str(failure)):
                raise failure from None

    def evaluate(self, entry_point: str, text: str) -> Any:
        """Evaluate an entry point on an input, in compiled form where there is one.

        Raises:
            PolicyEvaluationError: an error, a panic, or an undefined result.
        """
        machine = self._machine
        if machine is not None and entry_point in self._entry_points:
            if (answer := machine.evaluate(entry_point, text)) is not None:
                return answer.value
            if machine.runs >= _TRIAL_RUNS and machine.stops * 4 > machine.runs:
                # stopping costs more than it saves
                self._machine = None
        return self.interpret(entry_point, text)

    def holds(self, path: tuple[str, ...], mode: str) -> bool:
        """Tell whether a rule that reads nothing but the mode is defined and not false; an error counts as alive."""
        try:
            text = orjson.dumps({"session": {"mode": mode}}).decode("utf-8")
            return self.interpret(".".join(("data", *path)), text) is not False
        except PolicyEvaluationError as error:
            return error.cause is not FailClosedCause.UNDEFINED

    def interpret(self, entry_point: str, text: str) -> Any:
        """Evaluate an entry point on an input with the interpreter.

        Raises:
            PolicyEvaluationError: an error, a panic, or an undefined result.
        """
        try:
            self._engine.set_input_json(text)
            answer = self._engine.eval_rule_as_json(entry_point)
        except BaseException as error:
            raise native_error(error, PolicyEvaluationError, "evaluation failed: ") from None
        return _decode(answer)


def _decode(answer: str) -> Any:
    value = orjson.loads(answer)
    if value == _UNDEFINED:
        raise PolicyEvaluationError("the entry point is undefined for this input", cause=FailClosedCause.UNDEFINED)
    return value


def _is_compile_error(message: str) -> bool:
    return any(
        word in message
        for word in (
            "unsafe",
            "could not find function",
            "recursion",
            "cyclic",
            "not a valid rule",
            "conflicts with",
            "used before definition",
            "statements not scheduled",
        )
    )


_local = threading.local()


def _instance(compiled: CompiledBundle) -> Instance:
    """Return this thread's engine for a bundle.

    Those of bundles that are gone are dropped when the next one is made.
    """
    table: dict[int, tuple[weakref.ref[CompiledBundle], Instance]] | None = getattr(_local, "table", None)
    if table is None:
        table = _local.table = {}
    entry = table.get(id(compiled))
    if entry is not None and entry[0]() is compiled:
        return entry[1]
    for key in [key for key, (owner, _) in table.items() if owner() is None]:
        del table[key]
    instance = Instance(compiled)
    table[id(compiled)] = (weakref.ref(compiled), instance)
    return instance


class EmbeddedEngine:
    """Evaluates a bundle in this process.

    Args:
        source: a bundle, the path or URL of one, or a BundleSource, which the engine then follows.
        entry_points: rules that the bundle has to define; others of it can be queried too.
        max_input_bytes: largest encoded input that is evaluated.
        shadowed: rule packages of the bundle that block nothing; see ``shadow.py``.
        fast: use the compiled form where it is shown to give the same answers.

    Raises:
        PolicyLoadError: the bundle is missing, empty, broken or lacks an entry point.
        PolicyUnsupported: it uses a builtin that the engine lacks.
    """

    def __init__(
        self,
        source: Bundle | BundleSource | str | Path,
        *,
        entry_points: Iterable[str] = (EntryPoint.DECISION,),
        max_input_bytes: int = MAX_INPUT_BYTES,
        shadowed: Sequence[str] = (),
        fast: bool = True,
    ) -> None:
        self._fast = fast
        if isinstance(source, BundleSource):
            self._source = source.bundle
        else:
            self._source = source if isinstance(source, Bundle) else load_bundle(source)
        self._max_input_bytes = max_input_bytes
        self._entry_points = tuple(entry_points)
        self._closed = False
        self._shadowed = tuple(shadowed)
        self._derived: list[weakref.ref[EmbeddedEngine]] = []
        self._compiled = self._compile(self._source)
        if isinstance(source, BundleSource):
            source.attach(self)
            if source.bundle is not self._source:
                self.swap(source.bundle)

    @property
    def name(self) -> str:
        """``embedded``."""
        return EngineName.EMBEDDED

    @property
    def revision(self) -> str:
        """Revision of the bundle in use."""
        return self._compiled.bundle.revision

    @property
    def bundle(self) -> Bundle:
        """The bundle in use."""
        return self._source

    @property
    def interpreted_because(self) -> str:
        """Why the compiled form is not used; empty when it is."""
        return self._compiled.compiled.reason

    @property
    def capabilities(self) -> EngineCapabilities:
        """Builtins that give OPA's answers; coverage by rule."""
        return EngineCapabilities(builtins=EMBEDDED_BUILTINS, coverage=True)

    def reads(self, entry_point: str, mode: str = "") -> tuple[int, ReadSet] | None:
        """Return which parts of the input an entry point can read, with the generation of the compiled bundle.

        Args:
            entry_point: full name of a rule.
            mode: the session's mode.

        Returns:
            ``None`` when that can't be proven, or when the answer depends on more than the input.
        """
        compiled = self._compiled
        reads = compiled.reads(entry_point, mode)
        return None if reads is None else (compiled.generation, reads)

    def swap(self, bundle: Bundle) -> None:
        """Use another bundle from the next evaluation on; those that run finish with the old one.

        Args:
            bundle: the new bundle.

        Raises:
            PolicyLoadError: it can't be used; the old one stays, here and in engines made by ``shadowing``.
        """
        derived = [(engine, engine._compile(bundle)) for reference in self._derived if (engine := reference())]
        compiled = self._compile(bundle)
        for engine, its_compiled in derived:
            engine._source, engine._compiled = bundle, its_compiled
        self._source, self._compiled = bundle, compiled

    def shadowing(self, packages: Sequence[str]) -> EmbeddedEngine:
        """Return an engine for the same bundle, now and after every swap, in which some packages block nothing.

        Args:
            packages: names of rule packages.

        Raises:
            PolicyLoadError: there is no such package, or it can't be taken out.
        """
        engine = EmbeddedEngine(
            self._source,
            entry_points=self._entry_points,
            max_input_bytes=self._max_input_bytes,
            shadowed=packages,
            fast=self._fast,
        )
        self._derived.append(weakref.ref(engine))
        return engine

    def _compile(self, bundle: Bundle) -> CompiledBundle:
        reduced = without_packages(bundle, self._shadowed) if self._shadowed else bundle
        return CompiledBundle(reduced, self._entry_points, fast=self._fast)

    def evaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate; see ``PolicyEngine``.

        Args:
            entry_point: full name of a rule.
            document: the input.
            timeout: seconds after which an answer is no longer believed.

        Raises:
            PolicyEvaluationError: error, panic or undefined result.
            PolicyTimeout: the evaluation took longer.
            PolicyUnavailable: the engine was closed.
        """
        if self._closed:
            raise PolicyUnavailable("the policy engine is closed")
        started = time.monotonic()
        compiled = self._compiled
        text = encode_document(document, limit=self._max_input_bytes).decode("utf-8")
        try:
            value = _instance(compiled).evaluate(entry_point, text)
        except PolicyError:
            if time.monotonic() - started > timeout:
                raise PolicyTimeout(f"the evaluation took longer than {timeout:g} s") from None
            raise
        if time.monotonic() - started > timeout:
            raise PolicyTimeout(f"the evaluation took longer than {timeout:g} s")
        return EngineAnswer(value, compiled.bundle.revision)

    async def aevaluate(self, entry_point: str, document: PolicyInput, *, timeout: float) -> EngineAnswer:
        """Evaluate in the event loop's own thread: a decision takes less time than handing it to another.

        Args:
            entry_point: as ``evaluate``.
            document: as ``evaluate``.
            timeout: as ``evaluate``.
        """
        return self.evaluate(entry_point, document, timeout=timeout)

    def close(self) -> None:
        """Refuse further evaluations; native engines go with their threads."""
        self._closed = True
