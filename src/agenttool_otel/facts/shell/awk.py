"""Whether an awk program can only print: it can't write, run or open anything by name, nor go on for ever."""

from __future__ import annotations

import re

from agenttool_otel.facts.shell.tables import programs

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_LOOP = re.compile(r"(?<![A-Za-z0-9_])(?:while|do|for)(?![A-Za-z0-9_])")
# for (name in array), and counting up to a number, a field or a length.
_BOUNDED_LOOP = re.compile(
    r"for\s*\(\s*(?:\w+\s+in\s+\w+\s*\)"
    r"|(?P<up>\w+)\s*=\s*\w+\s*;\s*(?P=up)\s*<=?\s*(?P<limit>[0-9]{1,7}|NF|NR|length\((?P<measured>\w*)\)|n)\s*;\s*(?:(?P=up)\+\+|\+\+(?P=up))\s*\)"
    r"|(?P<down>\w+)\s*=\s*(?:NF|NR|[0-9]{1,7})\s*;\s*(?P=down)\s*>=?\s*[0-9]+\s*;\s*(?:(?P=down)--|--(?P=down))\s*\))\s*"
)
_ASSIGNS = r"\s*(?:=(?!=)|[-+*/%^]=|\*\*=|\+\+|--)"
_REPLACES = re.compile(r"sub\s*\((?!\s*\S+\s*,\s*0\s*,\s*\$?[A-Za-z_]\w*(?:\[\w+\])?\s*\))")
_WIDENS = re.compile(r"(?<![\w.$])NF\s*(?:[*/%^+]=|=(?!=)(?!\s*(?:NF\s*-|[0-9]{1,4}(?![\w.]))))")
_PRINTS = re.compile(r"(?<![A-Za-z0-9_])printf?(?![A-Za-z0-9_])")
_TOKEN = re.compile(r"printf?(?![A-Za-z0-9_])|[A-Za-z0-9_]+|>=|[>(){}]|.", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SLASH = re.compile(rf'((?:[^"/#\\]|{_STRING.pattern})*)/(?!=)')
_PATTERN = re.compile(r"(?:\\.|\[\^?(?:\[:\w+:\]|[^\]\[/\\\n^])[^\]\[/\\\n]*\]|[^/\\\[\n])*/")
_OPERAND = re.compile(r"(?:\]|(?<![\w.$])\$?(?:[0-9]+(?:\.[0-9]+)?|N[RF]|FNR)) *\Z", re.ASCII)
# Behind any other name a slash is a division, too, unless it is a keyword: enough to tell where a loop ends.
_MAY_BE_OPERAND = re.compile(
    r"(?:\]|(?<![\w.$])(?!(?:printf?|return|in|getline|else|do|length|exit|case|next|nextfile)\b)\$?\w+) *\Z", re.ASCII
)


def _without_patterns(program: str, operand: re.Pattern[str] = _OPERAND) -> tuple[str, str]:
    """Puts numbers for regular expressions and ``*`` for divisions, up to the first slash that may be either.

    Also returns the text with those expressions that stand behind a division."""
    plain = named = ""
    while slash := _SLASH.match(program):
        before = plain + slash[1]
        if before.rstrip()[-1:] in {*"{};(,!~&|", ""}:  # where an operand has to begin
            if (pattern := _PATTERN.match(program, slash.end())) is None:
                break
            named += f"{slash[1]} {program[slash.end() : pattern.end()] if '*' in plain else 0} "
            plain, program = f"{before} 0 ", program[pattern.end() :]
        elif operand.search(before):
            plain, named, program = f"{before}*", f"{named}{slash[1]}*", program[slash.end() :]
        else:
            break
    return plain + program, named + program


def _without_strings(program: str) -> str:
    """Puts numbers for strings; nothing is left where regular expressions or comments may hide where they end."""
    plain = _STRING.sub("0", program)
    return "" if any(char in plain for char in '/\\#"') else plain


def _redirects(program: str, plain: str) -> bool:
    """Whether ``>`` or ``|`` may redirect: only ``print`` writes, never in a pattern, and compares in parentheses."""
    if "|" in (plain or program).replace("||", " "):
        return True
    if ">" not in program.partition("{")[2] or not _PRINTS.search(program):
        return False
    if not plain:
        return True
    braces = brackets = 0
    for item in _TOKEN.findall(plain):
        braces += (item == "{") - (item == "}")
        brackets += (item == "(") - (item == ")")
        prints = item in ("print", "printf") and brackets  # the start of a for may print
        if braces < 0 or brackets < 0 or prints or (item == ">" and braces and not brackets):
            return True
    return False


def _endless(program: str) -> bool:
    """Whether a loop may have no end: it is of another form, or its body changes what it counts by or up to."""
    for loop in _LOOP.finditer(program):
        if (counts := _BOUNDED_LOOP.match(program, loop.start())) is None:
            return True
        if (name := counts["up"] or counts["down"]) is None:
            continue
        limit, body = counts["measured"] or counts["limit"] or "", _body(program[counts.end() :])
        if _changes(name, limit * limit.isidentifier() or name, body):
            return True
        if limit in ("NF", "length()") and _grows(name, body):
            return True
    return False


def _changes(name: str, limit: str, body: str) -> bool:
    kept = rf"(?<![\w.$])(?:{name}|{limit})(?!\w)"
    assigned = rf"{kept}(?:\s*\[[^\]]*\])?{_ASSIGNS}|(?:\+\+|--)\s*{kept}|for\s*\(\s*{kept}\s+in\b"
    return re.search(rf"{assigned}|(?:sub|split)\s*\([^;]*{kept}\s*[,)]", body) is not None


def _grows(name: str, body: str) -> bool:
    """Whether a body may give a line more fields."""
    fields = rf"\$\s*(?!{name}\b)[A-Za-z_$0]\w*(?:\s*\[[^\]]*\])?{_ASSIGNS}|\$\s*\((?s:.*)\){_ASSIGNS}|(?:\+\+|--)\s*\$"
    return re.search(fields, body) is not None or _REPLACES.search(body) is not None


def _body(text: str) -> str:
    """What a loop repeats, or more: one statement, a block, else all up to the end of the block around it."""
    if any(char in text for char in '"/#\\'):
        return text
    if not re.match(r"\{|(?:if|for|while|do)\b", text):
        return re.split(r"[;\n}]", text, maxsplit=1)[0]
    depth, last = 0, 0 if text[0] == "{" else -1
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == "}" and depth <= last:
            return text[:at]
    return text


def awk_program(program: str) -> str:
    """Why an awk program may do more than print, or ``""``.

    Output redirection needs ``>`` or ``|``, indirect calls and extensions ``@``, everything else a name, which may not
    occur anywhere, not even in a string. The others may, in strings and as comparisons, where it is sure that they are.
    """
    if "\\\n" in program:
        return "awk program with a broken line"
    loops = _without_strings(_without_patterns(program, _MAY_BE_OPERAND)[0]) or program
    endless = _WIDENS.search(program) or _endless(loops) or len(_LOOP.findall(loops)) < len(_LOOP.findall(program))
    program, named = _without_patterns(program)
    plain = _without_strings(program)
    if any(char in (plain or program) for char in "@`"):
        return "awk program with @"
    if _redirects(program, plain):
        return "awk program with > or |"
    words = programs()["awk"]
    for name in _NAME.findall(named):
        if name in words["forbidden"]:
            return f"awk {name}"
    for name in _CALL.findall(named):
        if name not in words["calls"]:
            return f"awk call of {name}"
    return "awk loop without a bound" if endless else ""
