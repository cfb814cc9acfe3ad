"""A compiled bundle, and which thread evaluates it.

Native objects are bound to the thread that made them. Making them costs a thread a millisecond or
two, parsing the rules for the interpreter ten: too much for a thread that asks once, as frameworks
start one for each tool call. So one thread of the process evaluates for those that ask seldom, and
a thread that asks often gets its own.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import orjson
from cachetools import LRUCache

from agenttool_otel.errors import PolicyEvaluationError, PolicyLoadError
from agenttool_otel.names import EntryPoint, FailClosedCause
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.check import (
    begins_with_permitted,
    check_program,
    entry_path,
    load_program,
)
from agenttool_otel.policy.bundles.flows import MARK, note_members, texts_in
from agenttool_otel.policy.bundles.reads import Guard, ReadSet, guards, read_set
from agenttool_otel.policy.engines.kept import keep
from agenttool_otel.policy.engines.kept import recall as recall_kept
from agenttool_otel.policy.engines.rewriting import rewritten
from agenttool_otel.policy.engines.rvm import CompiledProgram, Machine, compile_program
from agenttool_otel.policy.engines.shipped import recall_shipped
from agenttool_otel.policy.jsonio import encode_document
from agenttool_otel.policy.projection import Take, projection
from agenttool_otel.policy.rego.builtins import EMBEDDED_BUILTINS, verify_builtins
from agenttool_otel.policy.rego.native import UNDEFINED, loaded_engine, native_error
from agenttool_otel.policy.rego.syntax import Path, Program, literals_of
from agenttool_otel.policy.samples import sample_documents
from agenttool_otel.values.forks import in_child, new_lock

_generations = itertools.count(1)
_SELF_CHECKS: Final = 24
_MOSTLY_INTERPRETED: Final = 0.9  # of the inputs
_QUESTIONS_BEFORE_OWN: Final = 8
_KEPT_BUNDLES: Final = 4
_KEPT_GUARDS: Final = 4096
_WORTH_KEEPING: Final = 0.05  # seconds
_COMPILE_ERRORS: Final = (
    "unsafe",
    "could not find function",
    "recursion",
    "cyclic",
    "not a valid rule",
    "conflicts with",
    "used before definition",
    "statements not scheduled",
)
"""Parts of the messages with which regorus refuses a rule, and not its evaluation on an input."""


class Checked(NamedTuple):
    """What checking and compiling a bundle makes, as it is kept for the next process."""

    program: Program  # its modules, without their trees
    modules: dict[str, str]  # their text as the interpreter gets it
    compiled: CompiledProgram  # the machine's program, or why there is none
    interpreted: float  # the share of made-up inputs that the machine leaves to the interpreter
    guards: dict[str, list[Guard]]  # by entry point
    entry_points: tuple[str, ...]  # what it can be asked for in compiled form


class CompiledBundle:
    """A checked bundle, ready to be evaluated in any thread; immutable after construction.

    Args:
        bundle: the bundle.
        entry_points: full names of the rules that it has to define.
        fast: compile it, where the compiled form is shown to give the interpreter's answers.
        warm: evaluate each entry point once, so that errors of compilation come out here.
        checked: what an earlier process made of the same bundle, which is used instead.

    Raises:
        PolicyLoadError: the bundle is broken, or lacks an entry point.
        PolicyUnsupported: it uses a builtin that the engine lacks.
    """

    def __init__(
        self,
        bundle: Bundle,
        entry_points: Iterable[str],
        *,
        fast: bool = True,
        warm: bool = True,
        checked: Checked | None = None,
    ) -> None:
        self.bundle = bundle
        self.generation = next(_generations)
        self.entry_points = tuple(dict.fromkeys(str(item) for item in entry_points))
        self._known_reads: dict[tuple[str, frozenset[Path]], ReadSet | None] = {}
        self._takes: dict[Path, Take] = {}
        self._held: dict[tuple[Path, bytes], bool] = {}
        self._sorters: dict[str, tuple[list[Guard], Take]] = {}
        self._sorted: dict[tuple[str, bytes], bytes] = {}
        if checked is None:
            self._check(fast=fast, warm=warm)
        else:
            self.program = checked.program
            self.modules = checked.modules
            self.compiled = checked.compiled
            self.interpreted = checked.interpreted
            self.guards = checked.guards
            self.entry_points = checked.entry_points
        self.words = texts_in(self.bundle.data) | frozenset(self.program.words)

    @property
    def checked(self) -> Checked:
        """What was made of the bundle, for another process to begin with."""
        return Checked(
            program=self.program,
            modules=self.modules,
            compiled=self.compiled,
            interpreted=self.interpreted,
            guards=self.guards,
            entry_points=self.entry_points,
        )

    def _check(self, *, fast: bool, warm: bool) -> None:
        self.program = load_program(self.bundle)
        check_program(
            self.program,
            builtins=EMBEDDED_BUILTINS,
            entry_points=self.entry_points,
            engine="the embedded engine",
        )
        if EntryPoint.DECISION in self.entry_points and begins_with_permitted(self.program):
            self.entry_points = (*self.entry_points, EntryPoint.PERMITTED)
        verify_builtins({call.name for rule in self.program.rules for call in rule.calls})
        self.modules = rewritten(self.program)
        self.compiled = CompiledProgram(b"", "switched off")
        self.interpreted = 1.0
        instance = Instance(self)
        if warm:
            # once in this thread: what the parser accepts can still fail to compile
            for entry_point in self.entry_points:
                instance.warm(entry_point)
        if fast:
            self.compiled = self._checked_program(instance)
            instance.use(self.compiled)
        _own_instances()[id(self)] = (weakref.ref(self), instance)
        names = {part for rule in self.program.rules for part in rule.path}
        self.program.words = tuple(sorted(literals_of(self.program) | names))
        note_members(self.program)
        self.guards = {
            entry: guards(self.program, entry_path(entry)) for entry in self.entry_points
        }
        self.program.forget_trees()

    def reads(self, entry_point: str, document: Any) -> ReadSet | None:
        """Return what an entry point can read of a document; what a part of one leaves open, is
        covered.
        """
        if entry_point not in self.entry_points:
            return None
        failing = [guard for guard in self.guards[entry_point] if not self.holds(guard, document)]
        key = entry_point, frozenset(guard.path for guard in failing)
        if key not in self._known_reads:
            self._known_reads[key] = self._read_set(entry_point, failing)
        return self._known_reads[key]

    def _read_set(self, entry_point: str, failing: list[Guard]) -> ReadSet | None:
        found = read_set(self.program, entry_path(entry_point), failing)
        return None if found is None else found._replace(words=self.words)

    def sorting(self, entry_point: str, document: Any) -> bytes:
        """Return which of an entry point's guards hold that are looked at for each document.

        Args:
            entry_point: the rule.
            document: the input.
        """
        sorter = self._sorters.get(entry_point)
        if sorter is None:
            sorter = self._sorters[entry_point] = self._sorter(entry_point)
        guards, take = sorter
        key = entry_point, orjson.dumps(take(document))
        known = self._sorted.get(key)
        if known is None:
            if len(self._sorted) >= _KEPT_GUARDS:
                self._sorted.clear()
            known = bytes(self.holds(guard, document) for guard in guards)
            self._sorted[key] = known
        return known

    def _sorter(self, entry_point: str) -> tuple[list[Guard], Take]:
        guards = [guard for guard in self.guards[entry_point] if guard.sorts]
        reads = {path for guard in guards for path in guard.reads}
        return guards, projection(reads, self.words)

    def holds(self, guard: Guard, document: Any) -> bool:
        """Return whether a guard is defined and not false; an error counts as holding, and so does
        what is not stated.

        Args:
            guard: the guard.
            document: the input, or a part of it.
        """
        take = self._takes.get(guard.path)
        if take is None:
            take = self._takes[guard.path] = projection(guard.reads, self.words)
        try:
            key = guard.path, orjson.dumps(take(document))
        except TypeError:
            return True
        known = self._held.get(key)
        if known is None:
            if len(self._held) >= _KEPT_GUARDS:
                self._held.clear()
            known = self._held[key] = self._evaluated(guard, document)
        return known

    def _evaluated(self, guard: Guard, document: Any) -> bool:
        if not all(_is_stated(document, path) for path in guard.reads):
            return True
        try:
            parts = {name: document[name] for name in {path[0] for path in guard.reads}}
            if "input" in parts:
                parts["input"] = dict.fromkeys(parts["input"])  # of which a guard reads the names
            text = orjson.dumps(parts).decode("utf-8")
        except TypeError:
            return True
        try:
            return evaluate(self, ".".join(("data", *guard.path)), text)[0] is not False
        except PolicyEvaluationError as error:
            return error.cause is not FailClosedCause.UNDEFINED

    def _checked_program(self, interpreter: Instance) -> CompiledProgram:
        """Compile, and keep the result only if it never contradicts the interpreter on
        made-up inputs.
        """
        compiled = compile_program(self.bundle, self.program, self.entry_points)
        if not compiled.binary:
            return compiled
        machine = Machine(compiled, self.bundle)
        for document in sample_documents(self.program, _SELF_CHECKS):
            text = encode_document(document).decode("utf-8")
            for entry_point in self.entry_points:
                if (fast := machine.evaluate(entry_point, text)) is None:
                    continue
                try:
                    same = interpreter.interpret(entry_point, text) == fast[0]
                except PolicyEvaluationError:
                    same = False
                if not same:
                    return CompiledProgram(
                        b"", "the compiled form gave another answer than the interpreter"
                    )
        self.interpreted = machine.stops / machine.runs
        if self.interpreted > _MOSTLY_INTERPRETED:
            return CompiledProgram(
                b"", "nearly all inputs need the interpreter: a rule may have two values, or errs"
            )
        return compiled


def _is_stated(document: Any, path: Path) -> bool:
    """Return whether a document has what lies at a path, as far as the path is one of names."""
    for part in path:
        if part.startswith(MARK):
            return True
        if type(document) is not dict or part not in document:
            return False
        document = document[part]
    return True


_Shared = tuple[str, tuple[str, ...], bool]
_shared: Final[LRUCache[_Shared, CompiledBundle]] = LRUCache(_KEPT_BUNDLES)
_shared_lock = new_lock()


def compile_bundle(bundle: Bundle, entry_points: Iterable[str], *, fast: bool) -> CompiledBundle:
    """Compile a bundle, or return what was made of the same one: the last few are kept."""
    names = tuple(str(item) for item in entry_points)
    key = (bundle.digest, names, fast)
    with _shared_lock:
        known = _shared.get(key)
    if known is not None and known.bundle == bundle:
        return known
    started = time.thread_time()
    recalled = _recalled(bundle, names) if fast else None
    compiled = recalled or CompiledBundle(bundle, names, fast=fast)
    if fast and not recalled and time.thread_time() - started > _WORTH_KEEPING:
        keep(bundle, names, compiled.checked)
    with _shared_lock:
        _shared[key] = compiled
    return compiled


def _recalled(bundle: Bundle, entry_points: tuple[str, ...]) -> CompiledBundle | None:
    """Return what the wheel brought or an earlier process kept of a bundle, if this engine takes it."""
    for recall in (recall_shipped, recall_kept):
        checked = recall(bundle, entry_points)
        if checked is None:
            continue
        compiled = CompiledBundle(bundle, entry_points, checked=checked)
        try:
            _own_instance(compiled)
        except BaseException as error:
            native_error(error, PolicyLoadError)  # a program of another engine
            continue
        return compiled
    return None


class Instance:
    """A bundle in one thread: the machine where it is compiled, and the interpreter once that is
    needed.
    """

    __slots__ = ("_bundle", "_engine", "_entry_points", "_machine", "_modules")

    def __init__(self, compiled: CompiledBundle) -> None:
        self._bundle = compiled.bundle
        self._modules = compiled.modules
        self._entry_points = frozenset(compiled.entry_points)
        self._engine: Any = None
        self._machine: Machine | None = None
        self.use(compiled.compiled)

    def use(self, program: CompiledProgram) -> None:
        """Evaluate by the compiled form, if there is one."""
        if program.binary:
            self._machine = Machine(program, self._bundle)

    def warm(self, entry_point: str) -> None:
        """Evaluate once on an empty input, so that errors of compilation come out at load."""
        engine = self._interpreter()
        try:
            engine.set_input_json("{}")
            engine.eval_rule_as_json(entry_point)
        except BaseException as error:
            failure = native_error(error, PolicyLoadError, f"{entry_point}: ")
            message = str(failure)
            if any(part in message for part in _COMPILE_ERRORS):
                raise failure from None

    def evaluate(self, entry_point: str, text: str) -> Any:
        """Evaluate an entry point on an input, in compiled form where there is one."""
        if self._machine is not None and entry_point in self._entry_points:
            answer = self._machine.evaluate(entry_point, text)
            if answer is not None:
                return answer[0]
        return self.interpret(entry_point, text)

    def interpret(self, entry_point: str, text: str) -> Any:
        """Evaluate an entry point on an input with the interpreter."""
        engine = self._interpreter()
        try:
            engine.set_input_json(text)
            value = orjson.loads(engine.eval_rule_as_json(entry_point))
        except BaseException as error:
            raise native_error(error, PolicyEvaluationError, "evaluation failed: ") from None
        if value == UNDEFINED:
            raise PolicyEvaluationError(
                "the entry point is undefined for this input", cause=FailClosedCause.UNDEFINED
            )
        return value

    def _interpreter(self) -> Any:
        if self._engine is None:
            self._engine = loaded_engine(self._modules.items(), self._bundle.data_json)
        return self._engine


_local = threading.local()
_Instances = dict[int, tuple["weakref.ref[CompiledBundle]", Instance]]


def _own_instances() -> _Instances:
    """This thread's instances by the id of their bundle, without those of bundles that are gone."""
    table: _Instances | None = getattr(_local, "table", None)
    if table is None:
        table = _local.table = {}
        _local.questions = 0
    for key in [key for key, (owner, _) in table.items() if owner() is None]:
        del table[key]
    return table


def _own_instance(compiled: CompiledBundle) -> Instance:
    table = _own_instances()
    if (entry := table.get(id(compiled))) is None:
        entry = table[id(compiled)] = weakref.ref(compiled), Instance(compiled)
    return entry[1]


def evaluate(compiled: CompiledBundle, entry_point: str, text: str) -> tuple[Any, float]:
    """Evaluate an entry point on an input as JSON.

    Returns:
        the value, and the seconds of CPU time that the evaluating thread spent on it.

    Raises:
        PolicyEvaluationError: an error, a panic, or an undefined result.
    """
    entry = getattr(_local, "table", {}).get(id(compiled))
    if entry is not None and entry[0]() is compiled:
        return _timed(entry[1], entry_point, text)
    _local.questions = getattr(_local, "questions", 0) + 1
    if _local.questions >= _QUESTIONS_BEFORE_OWN:
        return _timed(_own_instance(compiled), entry_point, text)
    return _evaluator.ask(compiled, entry_point, text)


def _timed(instance: Instance, entry_point: str, text: str) -> tuple[Any, float]:
    started = time.thread_time()
    value = instance.evaluate(entry_point, text)
    return value, time.thread_time() - started


class _Evaluator:
    """The thread that evaluates for threads without instances of their own."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._questions: SimpleQueue[tuple[CompiledBundle, str, str, SimpleQueue[Any]]] = (
            SimpleQueue()
        )
        self._thread: threading.Thread | None = None

    def ask(self, compiled: CompiledBundle, entry_point: str, text: str) -> tuple[Any, float]:
        """Evaluate there, and wait for it."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    thread = threading.Thread(
                        target=self._run, name="agenttool-policy-evaluator", daemon=True
                    )
                    thread.start()
                    self._thread = thread
        reply: SimpleQueue[Any] = SimpleQueue()
        self._questions.put((compiled, entry_point, text, reply))
        answer = reply.get()
        if isinstance(answer, BaseException):
            raise answer
        found: tuple[Any, float] = answer
        return found

    def _run(self) -> None:
        while True:
            self._answer(*self._questions.get())

    @staticmethod
    def _answer(
        compiled: CompiledBundle, entry_point: str, text: str, reply: SimpleQueue[Any]
    ) -> None:
        try:
            reply.put(_timed(_own_instance(compiled), entry_point, text))
        except BaseException as error:
            reply.put(error)


_evaluator = _Evaluator()


def _after_fork() -> None:
    global _evaluator
    _evaluator = _Evaluator()  # its thread is not in the child


in_child(_after_fork)
