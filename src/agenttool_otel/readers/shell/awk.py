"""Programs of awk: whether they can only print.

They must not write, run or open anything by name. Loops are not read, but for those over the keys
of an array.
"""

from __future__ import annotations

import re

from agenttool_otel.readers.shell.tables import programs

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_LOOP = re.compile(r"(?<![A-Za-z0-9_])(?:while|do|for)(?![A-Za-z0-9_])")
_LOOP_OVER_KEYS = re.compile(r"for\s*\(\s*\w+\s+in\s+\w+\s*\)")

# What makes many fields or wide texts: NF = 99999999, printf "%99999d", $100000, NR = 5.
_SMALL_COUNT = r"(?:NF\s*-\s*)?[0-9]{1,4}\s*(?:[;}\n]|\Z)"
_SETS_FIELD_COUNT = rf"NF\s*(?:[*/%^]=|=(?!=)(?!\s*{_SMALL_COUNT}))"
_ASSIGNS = r"\s*(?:=(?!=)|[-+*/%^]=|\*\*=|\+\+|--)"
_SETS_COUNT = rf"(?<![\w.$])(?:{_SETS_FIELD_COUNT}|F?NR{_ASSIGNS})"
_WIDE_FORMAT = r"%[-+ #.0-9]*(?:\*|[0-9]{5})"
_FAR_FIELD = r"\$\s*[0-9]{5}"
# a format that is no literal text may hold any width
_UNKNOWN_FORMAT = r"(?<!\w)s?printf(?!\w)\s*\(?\s*(?![\s(\"])"
_WIDENS = re.compile("|".join((_SETS_COUNT, _WIDE_FORMAT, _FAR_FIELD, _UNKNOWN_FORMAT)))

_PRINTS = re.compile(r"(?<![A-Za-z0-9_])printf?(?![A-Za-z0-9_])")
_TOKEN = re.compile(r"printf?(?![A-Za-z0-9_])|[A-Za-z0-9_]+|>=|[>(){}]|.", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SLASH = re.compile(rf'((?:[^"/#\\]|{_STRING.pattern})*)/(?!=)')
_BRACKET = r"\[\^?(?:\[:\w+:\]|[^\]\[/\\\n^])[^\]\[/\\\n]*\]"
_PATTERN = re.compile(rf"(?:\\.|{_BRACKET}|[^/\\\[\n])*/")
# behind NR, $3, 2.5 or a[k] a slash is a division
_NUMBER_OR_FIELD = r"(?<![\w.$])\$?(?:[0-9]+(?:\.[0-9]+)?|N[RF]|FNR)"
_OPERAND = re.compile(rf"(?:\]|{_NUMBER_OR_FIELD}) *\Z", re.ASCII)
_BRACE_STEPS = {"{": 1, "}": -1}
_BRACKET_STEPS = {"(": 1, ")": -1}
_BEFORE_OPERAND = frozenset((*"{};(,!~&|", ""))


def awk_program(program: str) -> str:
    """Return why an awk program may do more than print, or an empty text.

    Output redirection needs ``>`` or ``|``, indirect calls and extensions ``@``, everything else a
    name, which may not occur anywhere, not even in a string. The others may, in strings and as
    comparisons, where it is sure that they are.
    """
    if "\\\n" in program:
        return "awk program with a broken line"
    program, named = _without_patterns(program)
    plain = _without_strings(program)
    if any(char in (plain or program) for char in "@`"):
        return "awk program with @"
    if _may_redirect(program, plain):
        return "awk program with > or |"
    reason = _unknown_name(named, plain)
    if reason:
        return reason
    if _WIDENS.search(program) or _LOOP.search(_LOOP_OVER_KEYS.sub(" ", plain or program)):
        return "awk loop without a bound"
    return ""


def _without_patterns(program: str) -> tuple[str, str]:
    """Put numbers for regular expressions and ``*`` for divisions.

    This ends at the first slash that may be either. Also returns the text with those expressions
    that stand behind a division, where a wrong reading would hide a name.
    """
    plain = named = ""
    while slash := _SLASH.match(program):
        before = plain + slash[1]
        if before.rstrip()[-1:] in _BEFORE_OPERAND:
            pattern = _PATTERN.match(program, slash.end())
            if pattern is None:
                break
            shown = program[slash.end() : pattern.end()] if "*" in plain else "0"
            plain = f"{before} 0 "
            named += f"{slash[1]} {shown} "
            program = program[pattern.end() :]
        elif _OPERAND.search(before):
            plain = f"{before}*"
            named += f"{slash[1]}*"
            program = program[slash.end() :]
        else:
            break
    return plain + program, named + program


def _without_strings(program: str) -> str:
    """Put numbers for strings; nothing is left where it is not sure where they end."""
    plain = _STRING.sub("0", program)
    return "" if any(char in plain for char in '/\\#"') else plain


def _may_redirect(program: str, plain: str) -> bool:
    """Whether ``>`` or ``|`` may redirect.

    Only ``print`` writes, never in a pattern, and in parentheses ``>`` compares.
    """
    if "|" in (plain or program).replace("||", " "):
        return True
    if ">" not in program.partition("{")[2] or not _PRINTS.search(program):
        return False
    if not plain:
        return True
    return _writes_somewhere(plain)


def _writes_somewhere(plain: str) -> bool:
    """Whether ``>`` stands in a block, outside of parentheses."""
    braces = brackets = 0
    for symbol in _TOKEN.findall(plain):
        braces += _BRACE_STEPS.get(symbol, 0)
        brackets += _BRACKET_STEPS.get(symbol, 0)
        if braces < 0 or brackets < 0:
            return True
        if symbol in ("print", "printf") and brackets:
            return True  # the start of a "for" may print
        if symbol == ">" and braces and not brackets:
            return True
    return False


def _unknown_name(named: str, plain: str) -> str:
    words = programs()["awk"]
    for name in _NAME.findall(named):
        if name in words["forbidden"]:
            return f"awk {name}"
    for name in _CALL.findall(_STRING.sub(" 0 ", named) if plain else named):
        if name not in words["calls"]:
            return f"awk call of {name}"
    return ""
