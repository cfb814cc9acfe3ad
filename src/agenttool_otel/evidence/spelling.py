"""Which rules look inside of words, so that a digest in a word's place may be decided otherwise.

A builtin is sure where it is known to be: what is not listed here is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from agenttool_otel.evidence.terms import Terms, called
from agenttool_otel.evidence.words import SEPARATORS
from agenttool_otel.policy.rego.syntax import Call, Rule, calls_with_arguments
from agenttool_otel.policy.rego.tree import assigned_variable, first_word, variable

_SURE: Final = frozenset(
    {
        "abs",
        "array.concat",
        "array.reverse",
        "array.slice",
        "ceil",
        "floor",
        "intersection",
        "lower",  # a digest has its word's case; what that leaves open, words.py names
        "numbers.range",
        "object.filter",
        "object.get",
        "object.keys",
        "object.remove",
        "object.subset",
        "object.union",
        "print",
        "product",
        "round",
        "sum",
        "time.clock",
        "time.date",
        "time.now_ns",
        "time.weekday",
        "trace",
        "type_name",
        "union",
        "walk",
    }
)
_ORDERS: Final = frozenset({"Lt", "Le", "Gt", "Ge"})
_NO_LETTERS: Final[dict[str, tuple[int, ...]]] = {
    "Eq": (0,),
    "Ne": (0,),
    "Gt": (0,),
    "Ge": (0, 1),
    "Lt": (1,),
    "Le": (0,),
}
_VERB: Final = re.compile(r"%[-+# 0-9.]*[a-zA-Z]")


def spelling_calls(rules: Iterable[Rule]) -> list[str]:
    """Return where rules look inside of words, as file and line with the builtin or operator.

    Args:
        rules: the rules.
    """
    return [f"{rule.file}:{line} ({name})" for rule in rules for line, name in _looks(rule)]


def _looks(rule: Rule) -> Iterator[tuple[int, str]]:
    terms = Terms(rule)
    aside = {*_emptiness(rule), *_messages(rule)}
    for call, arguments in calls_with_arguments(rule):
        if call.start not in aside and not _is_sure(call, arguments, terms):
            yield call.line, call.name
    for node in rule.nodes:
        comparison = node.get("BoolExpr")
        if comparison and comparison["op"] in _ORDERS and _orders_texts(comparison, terms):
            yield comparison["span"]["line"], "order of texts"


def _orders_texts(comparison: Any, terms: Terms) -> bool:
    """Return whether both sides may be texts: ``input.input.name < "m"``."""
    sides = comparison["lhs"], comparison["rhs"]
    if any(terms.is_no_text(side) for side in sides):
        return False
    return not all(terms.is_clear(side) for side in sides)


def _emptiness(rule: Rule) -> Iterator[int]:
    """Yield where a rule counts only to know whether there is anything: ``count(text) > 0``."""
    for node in rule.nodes:
        comparison = node.get("BoolExpr")
        if not comparison or "Call" not in comparison["lhs"]:
            continue
        number = comparison["rhs"].get("Number", {}).get("value")
        call = comparison["lhs"]["Call"]
        if called(call) == "count" and number in _NO_LETTERS.get(comparison["op"], ()):
            yield first_word(call["fcn"])


def _messages(rule: Rule) -> Iterator[int]:
    """Yield where a rule makes its message, which decides nothing."""
    messages: list[Any] = []
    for node in rule.nodes:
        for _, name, value in node.get("Object", {}).get("fields", ()):
            if _text(name) == "message":
                messages.append(value)
    variables = [variable(node) for node in rule.nodes]
    for node in rule.nodes:
        # text := sprintf(...), and {"message": text}, and nowhere else
        name = assigned_variable(node)
        if variables.count(name) == 2 and name in map(variable, messages):
            messages.append(node["AssignExpr"]["rhs"])
    for value in messages:
        if "Call" in value:
            yield first_word(value["Call"]["fcn"])


def _is_sure(call: Call, arguments: list[Any], terms: Terms) -> bool:
    """Return whether a call's answer is the same for digests: ``startswith(path, "/etc/")``."""
    if call.name in _SURE or call.name.startswith("is_"):
        return True
    if all(terms.is_clear(argument) for argument in arguments):
        return True
    if call.name == "count":
        return terms.is_no_text(arguments[0])
    if call.name == "concat":
        return _text(arguments[0]) in set(SEPARATORS)
    if call.name == "sprintf":
        return _keeps_words_apart(_text(arguments[0]))
    if len(arguments) != 2:
        return False
    return _ends_at_words(call.name, _text(arguments[1]))


def _text(node: Any) -> str | None:
    """Return the text of a term that is written out."""
    for kind in ("String", "RawString"):
        if kind in node:
            return str(node[kind]["value"])
    return None


def _keeps_words_apart(form: str | None) -> bool:
    """Return whether a form puts each value between separators: ``%s/%s``, but not ``%s%s``."""
    if form is None:
        return False
    for match in _VERB.finditer(form):
        before, after = form[: match.start()][-1:], form[match.end() :][:1]
        if before + after and not set(before + after) <= set(SEPARATORS):
            return False
    return True


def _ends_at_words(name: str, literal: str | None) -> bool:
    """Return whether a text is looked for where words end."""
    if literal is None:
        return False
    if not literal:
        return True
    begins, ends = literal[0] in SEPARATORS, literal[-1] in SEPARATORS
    if name == "startswith":
        return ends
    if name == "endswith":
        return begins
    return name in ("contains", "split") and begins and ends
