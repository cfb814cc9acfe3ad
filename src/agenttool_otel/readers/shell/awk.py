"""Whether an awk program can only print: it can't write, run or open anything by name, nor go on
for ever.
"""

from __future__ import annotations

import re

from agenttool_otel.readers.shell.tables import programs

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CALL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(")
_LOOP = re.compile(r"(?<![A-Za-z0-9_])(?:while|do|for)(?![A-Za-z0-9_])")
# for (name in array), and counting from a small number to one, to that of fields or lines, or to n.
_BOUNDED_LOOP = re.compile(
    r"for\s*\(\s*(?:\w+\s+in\s+\w+\s*\)"
    r"|(?P<up>[a-z]\w*)\s*=\s*[0-9]{1,4}\s*;\s*(?P=up)\s*<=?\s*(?P<limit>[0-9]{1,4}|NF|NR|n)\s*;\s*(?:(?P=up)\+\+|\+\+(?P=up))\s*\)"
    r"|(?P<down>[a-z]\w*)\s*=\s*(?:NF|NR|[0-9]{1,4})\s*;\s*(?P=down)\s*>=?\s*[0-9]+\s*;\s*(?:(?P=down)--|--(?P=down))\s*\))\s*"
)
_ASSIGNS = r"\s*(?:=(?!=)|[-+*/%^]=|\*\*=|\+\+|--)"
_GLUED = re.compile(r"(?<!\w)(?:[0-9]+\.?|\.)[0-9]*[A-Za-z_]")  # a name right behind a number
# Many fields or lines, and wide texts.
_WIDENS = re.compile(
    rf"(?<![\w.$])(?:NF\s*(?:[*/%^+]=|=(?!=)(?!\s*(?:NF\s*-\s*)?[0-9]{{1,4}}\s*(?:[;}}\n]|\Z)))|F?NR{_ASSIGNS})"
    r"|%[-+ #.0-9]*(?:\*|[0-9]{5})|\$\s*[0-9]{5}|(?<!\w)s?printf(?!\w)\s*\(?\s*(?![\s(\"])"
)
# An n that is no count of what was read.
_N_GROWS = re.compile(
    r"(?<![A-Za-z_$])n\s*(?:[*/%^]=|\+=(?!\s*(?:NF|[0-9]{1,4})\s*(?:[;}\n]|\Z))|=(?!=)(?!\s*(?:split\(|NF\b|NR\b|length\(|[0-9]{1,4}\s*(?:[;}\n]|\Z))))"
)
_PRINTS = re.compile(r"(?<![A-Za-z0-9_])printf?(?![A-Za-z0-9_])")
_TOKEN = re.compile(r"printf?(?![A-Za-z0-9_])|[A-Za-z0-9_]+|>=|[>(){}]|.", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SLASH = re.compile(rf'((?:[^"/#\\]|{_STRING.pattern})*)/(?!=)')
_PATTERN = re.compile(r"(?:\\.|\[\^?(?:\[:\w+:\]|[^\]\[/\\\n^])[^\]\[/\\\n]*\]|[^/\\\[\n])*/")
_OPERAND = re.compile(r"(?:\]|(?<![\w.$])\$?(?:[0-9]+(?:\.[0-9]+)?|N[RF]|FNR)) *\Z", re.ASCII)
# Behind any other name a slash is a division, too, unless it is a keyword: enough to tell where a
# loop ends.
_MAY_BE_OPERAND = re.compile(
    r"(?:\]|(?<![\w.$])(?!(?:printf?|return|in|getline|else|do|length|exit|case|next|nextfile)\b)\$?\w+) *\Z",
    re.ASCII,
)


def _without_patterns(program: str, operand: re.Pattern[str] = _OPERAND) -> tuple[str, str]:
    """Puts numbers for regular expressions and ``*`` for divisions, up to the first slash that may
    be either.

    Also returns the text with those expressions that stand behind a division.
    """
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
    """Puts numbers for strings; nothing is left where regular expressions or comments may hide
    where they end.
    """
    plain = _STRING.sub("0", program)
    return "" if any(char in plain for char in '/\\#"') else plain


def _redirects(program: str, plain: str) -> bool:
    """Whether ``>`` or ``|`` may redirect: only ``print`` writes, never in a pattern, and compares
    in parentheses.
    """
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
    """Whether a loop may have no end: it is of another form, or its body may change what it counts
    by or up to.
    """
    for loop in _LOOP.finditer(program):
        if (counts := _BOUNDED_LOOP.match(program, loop.start())) is None:
            return True
        body, limit = _body(program[counts.end() :]), counts["limit"] or ""
        if limit == "n" and _N_GROWS.search(program):
            return True
        if (name := counts["up"] or counts["down"]) and (
            _GLUED.search(body) or _changes(name, limit, body)
        ):
            return True
    return False


def _changes(name: str, limit: str, body: str) -> bool:
    kept, other = rf"(?:{name}|{limit or name})(?!\w)", rf"(?!(?:{name}|{limit or name})\b)[a-z]\w*"
    if re.search(
        rf"(?<![\w$]){kept}{_ASSIGNS}|(?:\+\+|--)\s*{kept}|for\s*\(\s*{kept}\s+in\b", body
    ):
        return True
    # what is replaced or split may be the field that is counted, or another variable
    target = rf"(?:,\s*(?:\${name}|{other})\s*){'' if limit == 'NF' else '?'}"
    plain = (
        rf"\bg?sub\s*\([^(),]*,[^(),]*{target}\)|\bsplit\s*\([^(),]*,\s*{other}\s*(?:,[^(),]*)?\)"
    )
    if len(re.findall(r"(?:sub|split)\s*\(", body)) > len(re.findall(plain, body)):
        return True
    fields = re.search(rf"\$(?!\s*(?:{name}|[1-9][0-9]*|NF)(?![\w.(\[]))", body)
    return (
        limit == "NF"
        and fields is not None
        and re.search(r"(?<![=!<>])=(?![=~])|\+\+|--", body) is not None
    )


def _body(text: str) -> str:
    """What a loop repeats, or more: one statement, a block, else all up to the end of the block
    around it.
    """
    simple = re.split(r"[;}]", text, maxsplit=1)[0]
    if not ("\n" in simple or re.match(r"\{|(?:if|for|while|do)\b", text)):
        return simple
    depth, last = 0, 0 if text[:1] == "{" else -1
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        if char == "}" and depth <= last:
            return text[:at]
    return text


def awk_program(program: str) -> str:
    """Why an awk program may do more than print, or ``""``.

    Output redirection needs ``>`` or ``|``, indirect calls and extensions ``@``, everything else a
    name, which may not occur anywhere, not even in a string. The others may, in strings and as
    comparisons, where it is sure that they are.
    """
    if "\\\n" in program:
        return "awk program with a broken line"
    loops = _without_strings(_without_patterns(program, _MAY_BE_OPERAND)[0])
    program, named = _without_patterns(program)
    plain = _without_strings(program)
    endless = (
        _WIDENS.search(program)
        or _endless(loops)
        or len(_LOOP.findall(loops)) < len(_LOOP.findall(plain or program))
    )
    if any(char in (plain or program) for char in "@`"):
        return "awk program with @"
    if _redirects(program, plain):
        return "awk program with > or |"
    words = programs()["awk"]
    for name in _NAME.findall(named):
        if name in words["forbidden"]:
            return f"awk {name}"
    for name in _CALL.findall(_STRING.sub(" 0 ", named) if plain else named):
        if name not in words["calls"]:
            return f"awk call of {name}"
    return "awk loop without a bound" if endless else ""
