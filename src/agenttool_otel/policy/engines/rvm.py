"""The compiled form of a bundle, and the guards that make its silence about errors harmless.

Calls whose arguments are not proven to have the right types go through guard functions, and bodies
that could give a rule a second value begin with a guard. A guard that finds what would be an error
makes the machine run into its instruction limit, the one failure that no rule swallows. Whoever
asked then asks the interpreter, which says exactly what went wrong. Policies for which this can't
be arranged are not compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.check import entry_path
from agenttool_otel.policy.engines.rewriting import Definedness, Edits, Uneditable, bind_values
from agenttool_otel.policy.engines.rvm_safety import Safety, only
from agenttool_otel.policy.rego.builtins import NONDETERMINISTIC
from agenttool_otel.policy.rego.native import (
    UNDEFINED,
    native_error,
    new_machine,
    regorus_module,
)
from agenttool_otel.policy.rego.syntax import Call, Program, Rule, calls_with_arguments, walk
from agenttool_otel.values.tables import load_table

_GUARD: Final = "agenttool_guard"
_TYPES: Final[dict[str, Any]] = load_table(__package__, "builtin_types.toml")
_TOTAL: Final = frozenset(_TYPES["total"])

# The machine stops at 25,000 instructions, which takes a millisecond. In its suspendable mode it
# could stop at once, but there it loses the values of some rules.
_STOP: Final = f"""
loop := [{", ".join("0" for _ in range(32))}]

stop(_) := count([1 | some a in loop; some b in loop; some c in loop; some d in loop; a == b; c == d])
"""


class CompiledProgram(NamedTuple):
    """A program that any thread can instantiate."""

    binary: bytes  # the serialised program; empty when there is none
    reason: str = ""  # why there is none


def compile_program(
    bundle: Bundle, program: Program, entry_points: Sequence[str]
) -> CompiledProgram:
    """Compile a bundle, if that is safe."""
    rules: dict[int, Rule] = {}
    for entry_point in entry_points:
        rules.update((id(rule), rule) for rule in program.reachable(entry_path(entry_point)))
    safety, defined = Safety(program), Definedness(program)
    for problem in safety.problems(list(rules.values())):
        return CompiledProgram(b"", problem)
    edits = {module.file: Edits(module) for module in program.modules}
    guards: dict[str, str] = {}
    for rule in rules.values():
        for call, arguments in calls_with_arguments(rule):
            if (guard := _guard(call, arguments, rule, safety, guards)) is not None:
                edits[rule.file].replace(call.start, call.end, f"data.{_GUARD}.{guard}")
    try:
        for rule in rules.values():
            bind_values(rule, defined, edits[rule.file])
            _check_values(rule, defined, edits[rule.file])
        for rule, body in safety.doubtful_bodies(list(rules.values())):
            if body is None or not body["query"]["stmts"]:
                return CompiledProgram(
                    b"", f"{rule.file}:{rule.line}: {rule.name}: could have several values"
                )
            edits[rule.file].begin(body["query"], f"data.{_GUARD}.stop(0)")
        modules = [(module.file, edits[module.file].edited()) for module in program.modules]
    except Uneditable as error:
        return CompiledProgram(b"", str(error))
    text = "\n\n".join([f"package {_GUARD}", _STOP, *guards.values()])
    try:
        # no variable for the native program: a panic's traceback would carry it to other threads
        # (native.py)
        binary = (
            regorus_module()
            .Program.compile_from_modules(
                bundle.data_json, [*modules, (f"{_GUARD}.rego", text)], list(entry_points)
            )
            .serialize_binary()
        )
        return CompiledProgram(bytes(binary))
    except Exception as error:
        return CompiledProgram(b"", str(error).split("Stack backtrace:")[0].strip()[-300:])


def _check_values(rule: Rule, defined: Definedness, edits: Edits) -> None:
    """Take for false what has no value: an argument that is ignored, and an assignment (``x = y``
    for ``x := y``).
    """
    spec = rule.node.get("Spec")
    if spec is None:
        return
    for number, argument in enumerate(only(spec["head"])[1].get("args") or []):
        for node in walk(argument):
            if node.get("Var", {}).get("value") == "_":
                span = node["Var"]["span"]
                edits.replace(span["start"], span["end"], f"ignored_{number}_{span['start']}")
    for body in spec["bodies"]:
        if any("AssignExpr" in item for item in walk(body["query"]["stmts"])):
            edits.end_of(body["query"])
    for item in rule.nodes:
        assignment = item.get("AssignExpr")
        if assignment is None or assignment["op"] != "ColEq" or "Var" not in assignment["lhs"]:
            continue
        if any(defined.unproven(assignment["rhs"], rule)):
            edits.unify(assignment["lhs"]["Var"]["span"], assignment["lhs"]["Var"]["value"])


def _guard(
    call: Call, arguments: list[Any], rule: Rule, safety: Safety, guards: dict[str, str]
) -> str | None:
    """Return the name of the guard that a call needs, making it when it is new; ``None``: it can't
    fail.
    """
    if call.name in _TOTAL:
        return None
    types = [safety.type_of(argument, rule) for argument in arguments]
    wanted = _TYPES["arguments"].get(call.name, ())
    if len(wanted) == len(types) > 0 and all(
        not allowed or kind in allowed for kind, allowed in zip(types, wanted, strict=True)
    ):
        return None
    if call.name == "concat" and types[0] == "string":
        items = arguments[1].get("Array", {}).get("items")
        if items is not None and all(safety.type_of(item, rule) == "string" for item in items):
            return None
    name = f"guarded_{call.name.replace('.', '_')}_{call.arity}"
    parameters = ", ".join(f"a{index}" for index in range(call.arity))
    # a builtin has no value exactly when it has failed
    answer = "stop(0)" if call.name in NONDETERMINISTIC else f"{call.name}({parameters})"
    guards[name] = (
        f"{name}({parameters}) := answer if {{\n\tsome answer\n\tanswer = {answer}\n}} else := stop(0)"
    )
    return name


class Machine:
    """The compiled form in one thread."""

    __slots__ = ("_machine", "runs", "stops")

    def __init__(self, compiled: CompiledProgram, bundle: Bundle) -> None:
        self._machine = new_machine(compiled.binary)
        self._machine.set_data_json(bundle.data_json)
        self.runs = self.stops = 0

    def evaluate(self, entry_point: str, text: str) -> tuple[Any] | None:
        """Return the value for an input as JSON, or ``None`` when the interpreter has to be
        asked.
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
        return None if value == UNDEFINED else (value,)
