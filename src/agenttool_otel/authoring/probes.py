"""Finds out for one input which bodies of rules hold, and where each of the others fails first.

For every body the module gets probe rules beside it, in a copy that decides nothing: one for the
first expression, one for the first two, and so on. They are evaluated one after the other until one
is not true. So what is told is what the engine itself computed, and not a second reading of Rego.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
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
_OPEN, _CLOSE = "([{", ")]}"
_READY: Final = f"package {_MARK}\n\nready := true\n"


class Reading(NamedTuple):
    """What became of one body."""

    body: Body  # the body
    fired: bool  # every expression held
    passed: int  # how many expressions held before one failed
    # the first one that failed; ``None`` when it fired, or when that can't be told
    failed: Expression | None = None
    values: tuple[Any, ...] = ()  # what it adds to its set
    problem: str = ""  # an error of evaluation, or why it could not be looked at


class Prober:
    """A copy of a program with probes."""

    def __init__(self, program: Program, data_json: str, rules: Iterable[Rule]) -> None:
        self._program = program
        self._data_json = data_json
        modules = {module.file: module for module in program.modules}
        self.bodies = [body for rule in rules for body in bodies_of(rule, modules[rule.file])]
        self._engine = self._ready_engine()

    def readings(self, document: Any) -> list[Reading]:
        """Look at every body."""
        if document is not None:
            self._engine.set_input_json(json.dumps(document))
        return [self._reading(number, body) for number, body in enumerate(self.bodies)]

    def cases(self, number: int) -> list[Any] | None:
        """Return all cases of a test over many, whether they hold or not."""
        body = self.bodies[number]
        if not body.case or not body.readable:
            return None
        for count in range(1, len(body.order) + 1):
            text = _probe(
                f"{_MARK}_cases contains {body.case}",
                [body.expressions[i] for i in body.order[:count]],
            )
            engine = self._base_engine()
            try:
                engine.add_policy(f"{_MARK}.rego", _module(body, [text]))
                return list(_evaluate(engine, f"{_package(body)}.{_MARK}_cases"))
            except BaseException as error:
                native_error(error, PolicyError)
        return None

    def found_instead(self, reading: Reading) -> str:
        """Return the value of what a failed comparison compared, as JSON; empty where that can't be
        told.
        """
        parts = compared(reading.failed.shown) if reading.failed is not None else None
        if parts is None:
            return ""
        body = reading.body
        before = [body.expressions[index] for index in body.order[: reading.passed]]
        value = f"{_MARK}_value"
        lines = "\n".join(
            [*(item.text for item in before), f"{value} := {parts.left} {parts.modifiers}"]
        )
        engine = self._base_engine()
        try:
            engine.add_policy(
                f"{_MARK}.rego", _module(body, [f"{_MARK}_got contains {value} if {{\n{lines}\n}}"])
            )
            values = _evaluate(engine, f"{_package(body)}.{_MARK}_got")
        except BaseException as error:
            # a panic of the engine too: the test has failed anyway
            native_error(error, PolicyError)
            return ""
        if values == UNDEFINED or not values:
            return "undefined"
        text = ", ".join(json.dumps(item, ensure_ascii=False) for item in values)
        return text if len(text) <= _MAX_FOUND else f"{text[:_MAX_FOUND]}..."

    def _reading(self, number: int, body: Body) -> Reading:
        count = len(body.expressions)
        if not body.readable:
            return Reading(body, False, 0, problem="its source can't be cut into expressions")
        path = f"{_package(body)}.{_MARK}_{number}"
        if count == 0:
            return Reading(body, True, 0, values=self._values_of_rule(body))
        for passed in range(count):
            problem = ""
            try:
                value = _evaluate(self._engine, f"{path}_{passed + 1}")
            except PolicyError as error:
                value, problem = UNDEFINED, str(error)
            if value is not True:
                return Reading(
                    body, False, passed, body.expressions[body.order[passed]], problem=problem
                )
        if not body.key:
            return Reading(body, True, count, values=self._values_of_rule(body))
        try:
            return Reading(
                body, True, count, values=tuple(_evaluate(self._engine, f"{path}_found"))
            )
        except PolicyError as error:
            return Reading(body, False, count, problem=str(error))

    def _values_of_rule(self, body: Body) -> tuple[Any, ...]:
        try:
            value = _evaluate(self._engine, body.rule.name)
        except PolicyError:
            return ()
        if value == UNDEFINED:
            return ()
        return tuple(value) if isinstance(value, list) else (value,)

    # --- engines ----------------------------------------------------------------------------------

    def _base_engine(self) -> Any:
        return loaded_engine(
            ((module.file, module.text) for module in self._program.modules), self._data_json
        )

    def _ready_engine(self) -> Any:
        """Add the probes; a body whose expressions need another order gets it, or is given up."""
        while True:
            engine = self._base_engine()
            probes = self._probe_modules()
            try:
                engine.add_policy(f"{_MARK}.rego", _READY)
                for file, (_, text) in probes.items():
                    engine.add_policy(file, text)
                # the first question compiles all modules
                engine.eval_rule_as_json(f"data.{_MARK}.ready")
                return engine
            except BaseException as error:
                failure = native_error(error, PolicyLoadError)
            file = str(failure).split(":", 1)[0]
            if file not in probes:
                raise failure
            number = probes[file][0]
            if not self._reorder(number):
                self.bodies[number].readable = False

    def _probe_modules(self) -> Mapping[str, tuple[int, str]]:
        """Return one module with the probes of each body, by file, with the body's index."""
        modules: dict[str, tuple[int, str]] = {}
        for number, body in enumerate(self.bodies):
            if not body.readable or not body.expressions:
                continue
            ordered = [body.expressions[index] for index in body.order]
            probes = [
                _probe(f"{_MARK}_{number}_{count}", ordered[:count])
                for count in range(1, len(ordered) + 1)
            ]
            if body.key:
                probes.append(_probe(f"{_MARK}_{number}_found contains {body.key}", ordered))
            modules[f"{_MARK}_{number}.rego"] = (number, _module(body, probes))
        return modules

    def _reorder(self, number: int) -> bool:
        """Put expressions in an order in which each prefix is safe, by trial."""
        body = self.bodies[number]
        if len(body.expressions) > _MAX_EXPRESSIONS:
            return False
        order: list[int] = []
        remaining = list(range(len(body.expressions)))
        while remaining:
            for index in remaining:
                if self._compiles(body, [*order, index]):
                    order.append(index)
                    remaining.remove(index)
                    break
            else:
                return False
        changed = order != body.order
        body.order = order
        return changed

    def _compiles(self, body: Body, order: Sequence[int]) -> bool:
        engine = self._base_engine()
        try:
            text = _probe(f"{_MARK}_trial", [body.expressions[index] for index in order])
            engine.add_policy(f"{_MARK}_trial.rego", _module(body, [text]))
            engine.add_policy(f"{_MARK}.rego", _READY)
            engine.eval_rule_as_json(f"data.{_MARK}.ready")
        except BaseException as error:
            native_error(error, PolicyLoadError)
            return False
        return True


def _package(body: Body) -> str:
    return ".".join(("data", *body.module.package))


def _module(body: Body, probes: Sequence[str]) -> str:
    package = (
        "package "
        + body.module.package[0]
        + "".join(f"[{json.dumps(part)}]" for part in body.module.package[1:])
    )
    return "\n\n".join([package, imports_of(body.module), *probes, ""])


def _probe(head: str, expressions: Sequence[Expression]) -> str:
    pieces = "\n".join(item.text for item in expressions)
    return f"{head} if {{\n{pieces}\n}}"


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
    # texts may hold anything: they are blanked before anything is looked for, and keep their length
    blank = _STRING.sub(lambda match: "_" * len(match[0]), text)
    if blank.startswith(("some ", "every ", "not ")) or ":=" in blank:
        return None
    found = _WITH.search(blank)
    end = found.start() if found else len(blank)
    depth = 0
    for index, letter in enumerate(blank[:end]):
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if depth == 0 and index and _OPERATOR.match(blank, index, end):
            left = text[:index].strip()
            return Compared(left, text[end:].strip()) if left else None
    return None
