"""The compiled form of a bundle, and the guards that make its silence about errors harmless.

Calls whose arguments are not proven to have the right types go through guard functions, and bodies
that could give a rule a second value begin with a guard. A guard that finds what would be an error
makes the machine run into its instruction limit, the one failure that no rule swallows. The
caller then asks the interpreter, which reports exactly what went wrong. Policies for which this can't
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
from agenttool_otel.policy.engines.rvm_safety import Safety
from agenttool_otel.policy.rego.builtins import NONDETERMINISTIC
from agenttool_otel.policy.rego.native import (
    UNDEFINED,
    native_error,
    new_machine,
    regorus_module,
)
from agenttool_otel.policy.rego.syntax import Call, Program, Rule, calls_with_arguments
from agenttool_otel.policy.rego.tree import Node, assigned_variable, only, variable, walk
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
    """Compile a bundle, if that is safe.

    Args:
        bundle: the bundle, for its data.
        program: its modules as a tree.
        entry_points: full names of the rules that the machine will be asked for.
    """
    rules = _reachable_rules(program, entry_points)
    safety = Safety(program)
    for problem in safety.problems(rules):
        return CompiledProgram(b"", problem)
    edits = {module.file: Edits(module) for module in program.modules}
    guards = _guard_calls(rules, safety, edits)
    try:
        _edit_bodies(rules, program, safety, edits)
        modules = [(module.file, edits[module.file].edited()) for module in program.modules]
    except Uneditable as error:
        return CompiledProgram(b"", str(error))
    guard_text = "\n\n".join([f"package {_GUARD}", _STOP, *guards.values()])
    modules.append((f"{_GUARD}.rego", guard_text))
    try:
        # no variable for the native program: a panic's traceback would carry it to other threads
        # (native.py)
        binary = (
            regorus_module()
            .Program.compile_from_modules(bundle.data_json, modules, list(entry_points))
            .serialize_binary()
        )
        return CompiledProgram(bytes(binary))
    except Exception as error:
        message = str(error).split("Stack backtrace:")[0].strip()
        return CompiledProgram(b"", message[-300:])


def _reachable_rules(program: Program, entry_points: Sequence[str]) -> list[Rule]:
    rules: dict[int, Rule] = {}
    for entry_point in entry_points:
        for rule in program.reachable(entry_path(entry_point)):
            rules[id(rule)] = rule
    return list(rules.values())


def _guard_calls(rules: list[Rule], safety: Safety, edits: dict[str, Edits]) -> dict[str, str]:
    """Let each call that can fail go through a guard; return the text of the guards by name."""
    guards: dict[str, str] = {}
    for rule in rules:
        for call, arguments in calls_with_arguments(rule):
            if _never_fails(call, arguments, rule, safety):
                continue
            name = f"guarded_{call.name.replace('.', '_')}_{call.arity}"
            guards[name] = _guard_text(name, call)
            edits[rule.file].replace(call.start, call.end, f"data.{_GUARD}.{name}")
    return guards


def _edit_bodies(
    rules: list[Rule],
    program: Program,
    safety: Safety,
    edits: dict[str, Edits],
) -> None:
    """Make the bodies mean in compiled form what they mean in the interpreter.

    Raises:
        Uneditable: there is a body of which that can't be made.
    """
    defined = Definedness(program)
    for rule in rules:
        bind_values(rule, defined, edits[rule.file])
        _check_values(rule, defined, edits[rule.file])
    for rule, body in safety.doubtful_bodies(rules):
        if body is None or not body["query"]["stmts"]:
            raise Uneditable(f"{rule.file}:{rule.line}: {rule.name}: could have several values")
        edits[rule.file].begin(body["query"], f"data.{_GUARD}.stop(0)")


def _check_values(rule: Rule, defined: Definedness, edits: Edits) -> None:
    """Take for false what has no value: an argument that is ignored, and an assignment (``x = y``
    for ``x := y``).
    """
    spec = rule.node.get("Spec")
    if spec is None:
        return
    _name_ignored_arguments(spec, edits)
    for body in spec["bodies"]:
        statements = body["query"]["stmts"]
        if any("AssignExpr" in node for node in walk(statements)):
            edits.end_of(body["query"])
    for node in rule.nodes:
        name = assigned_variable(node)
        if name is None:
            continue
        assignment = node["AssignExpr"]
        if any(defined.unproven(assignment["rhs"], rule)):
            edits.unify(assignment["lhs"]["Var"]["span"], name)


def _name_ignored_arguments(spec: Node, edits: Edits) -> None:
    """Write ``f(ignored_0_12)`` for ``f(_)``, which the machine calls with an undefined value."""
    _, head = only(spec["head"])
    for number, argument in enumerate(head.get("args") or []):
        for node in walk(argument):
            if variable(node) == "_":
                span = node["Var"]["span"]
                start = span["start"]
                edits.replace(start, span["end"], f"ignored_{number}_{start}")


def _never_fails(call: Call, arguments: list[Any], rule: Rule, safety: Safety) -> bool:
    """Return whether a builtin is shown to get arguments of the types that it takes."""
    if call.name in _TOTAL:
        return True
    types = [safety.type_of(argument, rule) for argument in arguments]
    wanted = _TYPES["arguments"].get(call.name, ())
    if types and len(wanted) == len(types) and all(map(_is_allowed, types, wanted)):
        return True
    # concat(", ", ["a", input.b]) fails if b is no string: each item has to be one
    if call.name == "concat" and types[0] == "string":
        items = arguments[1].get("Array", {}).get("items")
        if items is None:
            return False
        return all(safety.type_of(item, rule) == "string" for item in items)
    return False


def _is_allowed(kind: str | None, allowed: Sequence[str]) -> bool:
    return not allowed or kind in allowed


def _guard_text(name: str, call: Call) -> str:
    """Return the function that calls a builtin, and stops the machine where that has no value."""
    parameters = ", ".join(f"a{index}" for index in range(call.arity))
    if call.name in NONDETERMINISTIC:
        answer = "stop(0)"
    else:
        # a builtin has no value exactly when it has failed
        answer = f"{call.name}({parameters})"
    body = f"{{\n\tsome answer\n\tanswer = {answer}\n}}"
    return f"{name}({parameters}) := answer if {body} else := stop(0)"


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
            # a guard stopped it, or it failed: the interpreter finds out which
            native_error(error, PolicyEvaluationError)
            self.stops += 1
            return None
        # undefined can be an error that was swallowed
        return None if value == UNDEFINED else (value,)
