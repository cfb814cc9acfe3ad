"""Programs of jq: whether they read no more than their input, and have an end."""

from __future__ import annotations

import re

from agenttool_otel.readers.shell.tables import programs

_MAX_STEPS = 24

# A name right behind one dot is a field.
_NAME = re.compile(r"(?<![A-Za-z0-9_])(?<!(?<![.0-9])\.)[A-Za-z_][A-Za-z0-9_]*")
_STRING = re.compile(r'"(?:[^"\\]|\\[^(])*"')
_PART = re.compile(r"def\s+\w+|\w+|\S")
_BRACKET_STEPS = {
    "(": 1,
    "[": 1,
    "{": 1,
    ")": -1,
    "]": -1,
    "}": -1,
}
_REPEATS = re.compile(r"\b(?:def|reduce|foreach)\b")
_DEFINES = re.compile(r"\bdef\s")

# "x" * 99999999, [1000000]
_WIDE_TEXT = r"\"\s*\*"
_WIDE_ARRAY = r"\[\s*[0-9]{6}"
_WIDE_NUMBER = r"\*\s*[0-9]{5}|[0-9]{5}\s*\*"
_WIDE = re.compile(f"{_WIDE_TEXT}|{_WIDE_ARRAY}|{_WIDE_NUMBER}")

_BOUND = r"\s*(?:[0-9]{1,4}|length)\s*"
_SMALL_RANGE = re.compile(rf"\brange\({_BOUND}(?:;{_BOUND})?\)")


def jq_program(program: str) -> str:
    """Return why a jq program may read more than its input or go on for ever, or an empty text."""
    if _WIDE.search(program) or len(_DEFINES.findall(program)) > 1:
        return "jq without a bound"
    if program.count("|") > _MAX_STEPS:
        return "jq without a bound"
    # several ranges would multiply
    if program.count("range") == 1 and not _REPEATS.search(program):
        program = _SMALL_RANGE.sub("0", program)
    for name in _NAME.findall(program):
        if name in programs()["jq"]["forbidden"] or "load" in name:
            return f"jq {name}"
        if name == "def" and _may_call_itself(program):
            return f"jq {name}"
    return ""


def _may_call_itself(program: str) -> bool:
    """Whether a function's name occurs before the semicolon that ends its definition."""
    plain = _STRING.sub("0", program)
    if '"' in plain or "#" in plain:
        return True
    depth = 0
    defining: list[tuple[str, int]] = []
    for part in _PART.findall(plain):
        depth += _BRACKET_STEPS.get(part, 0)
        # "def  double", but not the word "default"
        if part.startswith("def") and part[3:4].isspace():
            name = part[3:].strip()
            defining.append((name, depth))
        elif part == ";" and defining and defining[-1][1] == depth:
            defining.pop()
        elif any(part == name for name, _ in defining):
            return True
    return bool(defining)
