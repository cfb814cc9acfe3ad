"""The compiled form of a bundle, and the guards that make its silence about errors harmless.

Calls whose arguments are not proven to have the right types go through guard functions, and bodies that could give a
rule a second value begin with a guard. A guard that finds what would be an error makes the machine run into its
instruction limit, the one failure that it does not swallow. Whoever asked then asks the interpreter, which says
exactly what went wrong. Policies for which this can't be arranged are not compiled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from agenttool_otel.policy.bundle import Bundle
from agenttool_otel.policy.check import entry_path
from agenttool_otel.policy.native import new_engine, regorus_module
from agenttool_otel.policy.rego import Call, Program, Rule
from agenttool_otel.policy.rvm_safety import Safety, walk

__all__ = ["CompiledProgram", "compile_program"]

_GUARD: Final = "agenttool_guard"
_TOTAL: Final = frozenset(
    {"is_array", "is_boolean", "is_null", "is_number", "is_object", "is_set", "is_string", "type_name"}
)

# For each builtin the types that its arguments may have without any chance of an error.
_ARGUMENTS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    **dict.fromkeys(("lower", "upper", "trim_space"), (("string",),)),
    **dict.fromkeys(
        ("startswith", "endswith", "contains", "split", "trim", "trim_left", "trim_right", "trim_prefix",
         "trim_suffix"),
        (("string",), ("string",)),
    ),
    "count": (("string", "array", "object", "set"),),
    **dict.fromkeys(("sort", "min", "max"), (("array", "set"),)),
    "array.concat": (("array",), ("array",)),
    "object.union": (("object",), ("object",)),
    "object.keys": (("object",),),
    "object.get": (("object",), (), ()),
}  # fmt: skip

_SPECIAL: Final = f"""
strings(items) if {{
	is_array(items)
	every item in items {{
		is_string(item)
	}}
}}

strings(items) if {{
	is_set(items)
	every item in items {{
		is_string(item)
	}}
}}

concat(delimiter, items) := stop(0) if {{
	not is_string(delimiter)
}} else := stop(0) if {{
	not strings(items)
}} else := concat(delimiter, items)

glob_delimiters(delimiters) if delimiters == null

glob_delimiters(delimiters) if {{
	is_array(delimiters)
	strings(delimiters)
}}

glob_match(pattern, delimiters, text) := stop(0) if {{
	not is_string(pattern)
}} else := stop(0) if {{
	not is_string(text)
}} else := stop(0) if {{
	not glob_delimiters(delimiters)
}} else := stop(0) if {{
	not regex.match(`^[A-Za-z0-9_.:/@ *?-]*$`, pattern)
}} else := glob.match(pattern, delimiters, text)

regex_match(pattern, text) := stop(0) if {{
	not is_string(text)
}} else := regex.match(pattern, text)

substring(text, start, length) := stop(0) if {{
	not is_string(text)
}} else := substring(text, start, length)

loop := [{", ".join("0" for _ in range(32))}]

stop(_) := count([1 | some a in loop; some b in loop; some c in loop; some d in loop; a == b; c == d])
"""


class CompiledProgram(NamedTuple):
    """A program that any thread can instantiate.

    Attributes:
        binary: the serialised program; empty when there is none.
        reason: why there is none.
    """

    binary: bytes
    reason: str = ""


def compile_program(bundle: Bundle, program: Program, entry_points: Sequence[str]) -> CompiledProgram:
    """Compile a bundle, if that is safe.

    Args:
        bundle: the bundle.
        program: its modules.
        entry_points: rules that will be asked for.
    """
    rules: dict[int, Rule] = {}
    for entry_point in entry_points:
        rules.update((id(rule), rule) for rule in program.reachable(entry_path(entry_point)))
    safety = Safety(program)
    for problem in safety.problems(list(rules.values())):
        return CompiledProgram(b"", problem)
    edits: dict[str, list[tuple[int, int, str]]] = {module.file: [] for module in program.modules}
    guards: dict[str, str] = {}
    for rule in rules.values():
        for call, arguments in _calls(rule):
            if (guard := _guard(call, arguments, rule, safety, guards)) is not None:
                edits[rule.file].append((call.start, call.end, f"data.{_GUARD}.{guard}"))
    for rule, body in safety.doubtful_bodies(list(rules.values())):
        if body is None or not body["query"]["stmts"]:
            return CompiledProgram(b"", f"{rule.file}:{rule.line}: {rule.name}: could have several values")
        edits[rule.file].extend(_stop_before(body))
    text = "\n\n".join(["package agenttool_guard", *guards.values(), _SPECIAL])
    modules = [(module.file, _edited(module.text, edits[module.file])) for module in program.modules]
    try:
        # no variable for the native program: a panic's traceback would carry it to other threads (owned.py)
        binary = (
            regorus_module()
            .Program.compile_from_modules(bundle.data_json, [*modules, (f"{_GUARD}.rego", text)], list(entry_points))
            .serialize_binary()
        )
        return CompiledProgram(bytes(binary))
    except Exception as error:
        return CompiledProgram(b"", str(error).split("Stack backtrace:")[0].strip()[-300:])


def _calls(rule: Rule) -> list[tuple[Call, list[Any]]]:
    """Pair each builtin call with its arguments' trees."""
    arguments: dict[int, list[Any]] = {}
    for node in walk(rule.node):
        if "Call" in node and isinstance(node["Call"], dict):
            function = node["Call"]["fcn"]
            while "Var" not in function:
                function = next(iter(function.values()))["refr"]
            arguments[function["Var"]["span"]["start"]] = node["Call"]["params"]
    return [(call, arguments[call.start]) for call in rule.calls]


def _guard(call: Call, arguments: list[Any], rule: Rule, safety: Safety, guards: dict[str, str]) -> str | None:
    """Return the name of the guard that a call needs, making it when it is new."""
    if call.name in _TOTAL:
        return None
    types = [safety.type_of(argument, rule) for argument in arguments]
    wanted = _ARGUMENTS.get(call.name)
    if wanted is not None and len(wanted) == len(types):
        doubtful = [index for index, allowed in enumerate(wanted) if allowed and types[index] not in allowed]
        if not doubtful:
            return None
        name = f"{call.name.replace('.', '_')}_{'_'.join(map(str, doubtful))}"
        guards.setdefault(name, _typed_guard(name, call.name, wanted, doubtful))
        return name
    if call.name == "concat" and len(types) == 2:
        items = arguments[1].get("Array", {}).get("items")
        if types[0] == "string" and items is not None and all(safety.type_of(i, rule) == "string" for i in items):
            return None
        return "concat"
    if call.name == "glob.match" and len(types) == 3:
        return "glob_match"
    if call.name == "regex.match" and len(types) == 2 and _valid_regex(arguments[0]):
        return "regex_match"
    if call.name == "substring" and len(types) == 3 and _number(arguments[1], 0) and _number(arguments[2], -1):
        return "substring"
    name = f"stop_{call.arity}"
    parameters = ", ".join(f"a{index}" for index in range(call.arity))
    guards.setdefault(name, f"{name}({parameters}) := stop(0)")
    return name


def _typed_guard(name: str, builtin: str, wanted: tuple[tuple[str, ...], ...], doubtful: list[int]) -> str:
    parameters = ", ".join(f"a{index}" for index in range(len(wanted)))
    lines = []
    for index in doubtful:
        checks = "\n".join(f"\tnot is_{kind}(a{index})" for kind in wanted[index])
        lines.append(f"stop(0) if {{\n{checks}\n}}")
    return f"{name}({parameters}) := " + " else := ".join([*lines, f"{builtin}({parameters})"])


def _valid_regex(node: Any) -> bool:
    literal = node.get("String") or node.get("RawString")
    if literal is None:
        return False
    engine = new_engine()
    engine.add_policy("p.rego", f'package p\n\nok := regex.match({json.dumps(literal["value"])}, "")\n')
    try:
        return json.loads(engine.eval_rule_as_json("data.p.ok")) in (True, False)
    except Exception:
        return False


def _number(node: Any, least: int) -> bool:
    value = node.get("Number", {}).get("value")
    return isinstance(value, int) and value >= least


def _stop_before(body: dict[str, Any]) -> list[tuple[int, int, str]]:
    query = body["query"]
    start = query["span"]["start"]
    call = f"data.{_GUARD}.stop(0)"
    if query["stmts"][0]["span"]["start"] > start:
        return [(start + 1, start + 1, f" {call}\n")]
    end = max(node["span"]["end"] for node in walk(query) if "span" in node)
    return [(start, start, f"{{ {call}\n"), (end, end, "\n}")]


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    content = text.encode("utf-8")
    for start, end, replacement in sorted(edits, reverse=True):
        content = content[:start] + replacement.encode() + content[end:]
    return content.decode("utf-8")
