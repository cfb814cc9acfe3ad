"""Finds out for one input which bodies of rules hold, and where each of the others fails first.

For every body the module gets probe rules beside it, in a copy that decides nothing: one for the
first expression, one for the first two, and so on. They are evaluated one after the other until one
is not true. So the report is what the engine itself computed, and not a second reading of Rego.

For ``deny contains f if { input.tool.name == "deploy"; not office_hours }``:

    agenttool_probe_0_1 if { input.tool.name == "deploy" }
    agenttool_probe_0_2 if { input.tool.name == "deploy"; not office_hours }
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.bodies import Body, Expression, bodies_of, imports_of
from agenttool_otel.errors import PolicyError, PolicyEvaluationError, PolicyLoadError
from agenttool_otel.policy.rego.native import UNDEFINED, loaded_engine, native_error
from agenttool_otel.policy.rego.syntax import Program, Rule

_MARK: Final = "agenttool_probe"
_MAX_EXPRESSIONS: Final = 16
_MAX_FOUND: Final = 300
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`')
_OPERATOR: Final = re.compile(r"(==|!=|<=|>=|<|>|\bin\b)")
_WITH: Final = re.compile(r"\s+with\s+(?:input|data)\b")
_OPENING: Final = "([{"
_CLOSING: Final = ")]}"
_READY: Final = f"package {_MARK}\n\nready := true\n"


class Reading(NamedTuple):
    """What became of one body."""

    body: Body  # the body
    fired: bool  # every expression held
    passed: int  # how many expressions held before one failed
    # the first one that failed; ``None`` when it fired, or when that is not known
    failed: Expression | None = None
    values: tuple[Any, ...] = ()  # what it adds to its set
    problem: str = ""  # an error of evaluation, or why it could not be looked at


class Prober:
    """A copy of a program with probes.

    Args:
        program: All modules.
        data_json: The data, as JSON.
        rules: The rules to probe; with none, all modules are compiled and nothing else.

    Raises:
        PolicyLoadError: The program does not compile, probes apart.
    """

    def __init__(self, program: Program, data_json: str, rules: Iterable[Rule]) -> None:
        self._program = program
        self._data_json = data_json
        modules = {module.file: module for module in program.modules}
        self.bodies: list[Body] = []
        for rule in rules:
            self.bodies.extend(bodies_of(rule, modules[rule.file]))
        self._engine = self._ready_engine()

    def readings(self, document: Any) -> list[Reading]:
        """Evaluate the probes of every body for an input; ``None`` is no input at all, as in tests."""
        if document is not None:
            self._engine.set_input_json(json.dumps(document))
        return [self._reading(number, body) for number, body in enumerate(self.bodies)]

    def cases(self, number: int) -> list[Any] | None:
        """Return all cases of a test over many, whether they hold or not."""
        body = self.bodies[number]
        if not body.case or not body.readable:
            return None
        # test_x[case] if { some case, x in cases; ... }: the first expressions that give the case a
        # value name all cases, the later ones only those that hold
        for count in range(1, len(body.order) + 1):
            head = f"{_MARK}_cases contains {body.case}"
            probe = _probe(head, body.ordered()[:count])
            engine = self._base_engine()
            try:
                engine.add_policy(f"{_MARK}.rego", _module(body, [probe]))
                return list(_evaluate(engine, f"{_package(body)}.{_MARK}_cases"))
            except BaseException as error:
                native_error(error, PolicyError)
        return None

    def found_instead(self, reading: Reading) -> str:
        """Return the value of the left side of a failed comparison, as JSON; empty where it is not
        known.
        """
        if reading.failed is None:
            return ""
        parts = compared(reading.failed.shown)
        if parts is None:
            return ""
        body = reading.body
        value = f"{_MARK}_value"
        lines = [expression.text for expression in body.ordered()[: reading.passed]]
        lines.append(f"{value} := {parts.left} {parts.modifiers}")
        probe = _rule(f"{_MARK}_got contains {value}", lines)
        engine = self._base_engine()
        try:
            engine.add_policy(f"{_MARK}.rego", _module(body, [probe]))
            values = _evaluate(engine, f"{_package(body)}.{_MARK}_got")
        except BaseException as error:
            # a panic of the engine too: the test has failed anyway
            native_error(error, PolicyError)
            return ""
        if values == UNDEFINED or not values:
            return "undefined"
        text = ", ".join(json.dumps(item, ensure_ascii=False) for item in values)
        if len(text) > _MAX_FOUND:
            return f"{text[:_MAX_FOUND]}..."
        return text

    def _reading(self, number: int, body: Body) -> Reading:
        if not body.readable:
            problem = "its source can't be cut into expressions"
            return Reading(body, fired=False, passed=0, problem=problem)
        path = f"{_package(body)}.{_MARK}_{number}"
        for passed, expression in enumerate(body.ordered()):
            value: Any = UNDEFINED
            problem = ""
            try:
                value = _evaluate(self._engine, f"{path}_{passed + 1}")
            except PolicyError as error:
                problem = str(error)
            if value is not True:
                return Reading(
                    body,
                    fired=False,
                    passed=passed,
                    failed=expression,
                    problem=problem,
                )
        count = len(body.expressions)
        # a body without expressions, as deny contains "x" without if, has no probe
        if count == 0 or not body.key:
            values = self._values_of_rule(body)
            return Reading(body, fired=True, passed=count, values=values)
        try:
            found = _evaluate(self._engine, f"{path}_found")
        except PolicyError as error:
            return Reading(body, fired=False, passed=count, problem=str(error))
        return Reading(body, fired=True, passed=count, values=tuple(found))

    def _values_of_rule(self, body: Body) -> tuple[Any, ...]:
        try:
            value = _evaluate(self._engine, body.rule.name)
        except PolicyError:
            return ()
        if value == UNDEFINED:
            return ()
        if isinstance(value, list):
            return tuple(value)
        return (value,)

    # --- engines ----------------------------------------------------------------------------------

    def _base_engine(self) -> Any:
        modules = [(module.file, module.text) for module in self._program.modules]
        return loaded_engine(modules, self._data_json)

    def _ready_engine(self) -> Any:
        """Add the probes; a body whose expressions need another order gets it, or is given up.

        Rego orders expressions itself: in ``x > 3; x := input.n`` the first one has no value for
        ``x`` yet, so a probe of it alone does not compile.
        """
        while True:
            engine = self._base_engine()
            numbers = {}
            try:
                engine.add_policy(f"{_MARK}.rego", _READY)
                for number, body in enumerate(self.bodies):
                    if not body.readable or not body.expressions:
                        continue
                    file = f"{_MARK}_{number}.rego"
                    numbers[file] = number
                    engine.add_policy(file, _probe_module(number, body))
                # the first evaluation compiles all modules
                engine.eval_rule_as_json(f"data.{_MARK}.ready")
                return engine
            except BaseException as error:
                failure = native_error(error, PolicyLoadError)
            # agenttool_probe_3.rego:4: var x is unsafe
            file, _, _ = str(failure).partition(":")
            if file not in numbers:
                raise failure
            if not self._reorder(numbers[file]):
                self.bodies[numbers[file]].readable = False

    def _reorder(self, number: int) -> bool:
        """Put expressions in an order in which each prefix is safe, by trial."""
        body = self.bodies[number]
        if len(body.expressions) > _MAX_EXPRESSIONS:
            return False
        order: list[int] = []
        remaining = list(range(len(body.expressions)))
        while remaining:
            index = self._next_safe(body, order, remaining)
            if index is None:
                return False
            order.append(index)
            remaining.remove(index)
        changed = order != body.order
        body.order = order
        return changed

    def _next_safe(self, body: Body, order: list[int], remaining: list[int]) -> int | None:
        for index in remaining:
            if self._compiles(body, [*order, index]):
                return index
        return None

    def _compiles(self, body: Body, order: Sequence[int]) -> bool:
        engine = self._base_engine()
        probe = _probe(f"{_MARK}_trial", [body.expressions[index] for index in order])
        try:
            engine.add_policy(f"{_MARK}_trial.rego", _module(body, [probe]))
            engine.add_policy(f"{_MARK}.rego", _READY)
            engine.eval_rule_as_json(f"data.{_MARK}.ready")
        except BaseException as error:
            native_error(error, PolicyLoadError)
            return False
        return True


def _package(body: Body) -> str:
    return ".".join(("data", *body.module.package))


def _probe_module(number: int, body: Body) -> str:
    """The probes of one body: of its first expression, of the first two, and so on."""
    ordered = body.ordered()
    probes = []
    for count in range(1, len(ordered) + 1):
        probes.append(_probe(f"{_MARK}_{number}_{count}", ordered[:count]))
    if body.key:
        probes.append(_probe(f"{_MARK}_{number}_found contains {body.key}", ordered))
    return _module(body, probes)


def _module(body: Body, probes: Sequence[str]) -> str:
    first, *others = body.module.package
    # a package may have a part that is no name: package agenttool.custom["my-shop"]
    package = f"package {first}"
    for part in others:
        package += f"[{json.dumps(part)}]"
    return "\n\n".join([package, imports_of(body.module), *probes, ""])


def _probe(head: str, expressions: Sequence[Expression]) -> str:
    return _rule(head, [expression.text for expression in expressions])


def _rule(head: str, lines: Sequence[str]) -> str:
    body = "\n".join(lines)
    return f"{head} if {{\n{body}\n}}"


def _evaluate(engine: Any, path: str) -> Any:
    try:
        return json.loads(engine.eval_rule_as_json(path))
    except BaseException as error:
        raise native_error(error, PolicyEvaluationError, "evaluation failed: ") from None


class Compared(NamedTuple):
    """One comparison."""

    left: str  # source of what is compared
    modifiers: str  # source of its ``with`` modifiers, or an empty text


def compared(text: str) -> Compared | None:
    """Cut the left side out of a comparison, so that its value can be shown where it failed."""
    # input.note == "a > b": the string is blanked before an operator is looked for
    blank = _STRING.sub(lambda match: "_" * len(match[0]), text)
    if blank.startswith(("some ", "every ", "not ")) or ":=" in blank:
        return None
    modifiers = _WITH.search(blank)
    end = modifiers.start() if modifiers else len(blank)
    operator = _outer_operator(blank, end)
    if operator is None:
        return None
    left = text[:operator].strip()
    if not left:
        return None
    return Compared(left, text[end:].strip())


def _outer_operator(blank: str, end: int) -> int | None:
    """The place of the comparison's operator, which stands in no brackets: ``f(a < b) == c``."""
    depth = 0
    for index, letter in enumerate(blank[:end]):
        if letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        if depth == 0 and index > 0 and _OPERATOR.match(blank, index, end):
            return index
    return None
