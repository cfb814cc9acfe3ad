"""How ``agenttool policy`` shows checks, tests and explanations to people."""

from __future__ import annotations

import json
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from agenttool_otel.approvals.display import visible
from agenttool_otel.authoring.checking import CheckReport
from agenttool_otel.authoring.testing import FileCoverage, TestReport, TestResult
from agenttool_otel.names.advice import would_answer

_STYLES: Final = {
    "passed": "green",
    "allow": "green",
    "warned": "yellow",
    "ask": "yellow",
    "failed": "red",
    "error": "red",
    "deny": "red",
    "skipped": "dim",
}
_SHOWN: Final = 8
_INDENT: Final = "        "


def _line(*parts: str | tuple[str, str]) -> Text:
    """Return a line of texts, some with a style; what a terminal would interpret is escaped."""
    line = Text()
    # a rule's title may come from a stranger's repository: "\x1b[2J" in it clears the screen
    for part in parts:
        if isinstance(part, str):
            line.append(visible(part))
        else:
            text, style = part
            line.append(visible(text), style=style)
    return line


def _word(word: str) -> tuple[str, str]:
    return word.ljust(7), _STYLES.get(word, "")


def show_checks(out: Console, report: CheckReport) -> None:
    """Print what was checked, what is wrong, and what was left out."""
    skipped = []
    failed = 0
    for check in report.checks:
        out.print(
            _line(
                _word(check.status),
                " ",
                (check.name, "bold"),
                "  ",
                (check.detail, "dim"),
            )
        )
        for problem in check.problems:
            place = f"{problem.place}: " if problem.file else ""
            out.print(_line(_INDENT, (place, "cyan"), problem.message))
        if check.status == "skipped":
            skipped.append(check.name)
        elif check.status == "failed":
            failed += 1
    ran = len(report.checks) - len(skipped)
    total = f"{ran} checks ran, {failed} failed"
    if skipped:
        total += f"; skipped: {', '.join(skipped)}"
    out.print(_line(total))


def show_tests(out: Console, report: TestReport, *, verbose: bool) -> None:
    """Print results and coverage.

    Args:
        out: Where to print.
        report: What ran.
        verbose: Whether tests that passed and all missed lines are printed, too.
    """
    for result in report.results:
        if verbose or _is_wrong(result):
            _show_test(out, result)
    passed = report.ran - len(report.failures)
    out.print(_line(f"{passed} of {report.ran} tests passed on {report.engine}"))
    if report.coverage is None:
        out.print(_line((f"no coverage: {report.uncovered_because}", "dim")))
        return
    for item in report.coverage:
        out.print(
            _line(
                f"{item.percent:6.1f} %  ",
                (item.file, "cyan"),
                (_missed_lines(item, verbose), "yellow"),
            )
        )
    out.print(_line(f"{report.percent:6.1f} %  of all lines"))


def _is_wrong(result: TestResult) -> bool:
    return result.outcome in ("failed", "error")


def _missed_lines(item: FileCoverage, verbose: bool) -> str:
    if not item.missed:
        return ""
    missed = list(item.missed)
    more = ""
    if len(missed) > _SHOWN and not verbose:
        missed = missed[:_SHOWN]
        more = " ..."
    numbers = ", ".join(str(number) for number in missed)
    return f"  not covered: {item.file}:{numbers}{more}"


def _show_test(out: Console, result: TestResult) -> None:
    seconds = ""
    if result.outcome == "passed":
        seconds = f"  {result.seconds * 1000:.1f} ms"
    out.print(
        _line(
            _word(result.outcome),
            " ",
            (f"{result.file}:{result.line}", "cyan"),
            f"  {result.name}",
            (seconds, "dim"),
        )
    )
    if not _is_wrong(result):
        return
    out.print(_line(f"{_INDENT}{result.message}"))
    for case in result.cases:
        out.print(_line(f"{_INDENT}case {case}"))
    if not result.failed_line:
        return
    out.print(
        _line(
            _INDENT,
            (f"{result.file}:{result.failed_line}", "cyan"),
            f"  {result.failed_text}",
        )
    )
    if result.found:
        out.print(_line(_INDENT, ("found", "dim"), f"  {result.found}"))


def show_explanation(out: Console, explanation: dict[str, Any], *, every: bool) -> None:
    """Print an explanation.

    Args:
        out: Where to print.
        explanation: The object of ``Explanation.to_json_object``, redacted.
        every: Whether the rules are printed, too, that did not come near.
    """
    decision = explanation["decision"]
    reason = decision["reason"]
    behavior = decision["behavior"]
    style = f"bold {_STYLES.get(behavior, '')}"
    out.print(_line((behavior.upper(), style), "  ", reason["message"]))
    if reason["rule_ref"]:
        places = [_place(place) for place in explanation["decided_by"]]
        out.print(
            _line(
                "by ",
                (reason["rule_ref"], "bold"),
                "  ",
                (", ".join(places), "cyan"),
            )
        )
    for rule in decision["open_questions"]:
        out.print(_line("open: ", (rule, "bold"), f"; would be answered by: {would_answer(rule)}"))
    for pair in decision["answered_questions"]:
        out.print(_line("answered: ", (pair["question"], "bold"), f", by {pair['by']}"))
    if decision["blocked_path"]:
        out.print(_line(f"path {decision['blocked_path']}"))
    if explanation["filled_in"]:
        fields = ", ".join(explanation["filled_in"])
        filled = f"filled in, because the input does not have it: {fields}"
        out.print(_line((filled, "dim")))
    _section(out, "Fired", explanation["fired"], every=True)
    _section(out, "Nearly", explanation["nearly"], every=every)
    others = explanation["others"]
    if every:
        _section(out, "Did not come near", others, every=True)
        return
    own = [rule for rule in others if rule["own"]]
    if own:
        _section(out, "Did not come near", own, every=True)
    left = len(others) - len(own)
    out.print(_line((f"{left} other rules did not come near (--all shows them)", "dim")))


def _place(item: dict[str, Any]) -> str:
    return f"{item['file']}:{item['line']}"


def _section(out: Console, title: str, rules: list[dict[str, Any]], *, every: bool) -> None:
    out.print()
    out.print(_line((title, "bold"), "" if rules else "  nothing"))
    shown = rules
    if not every:
        own = [rule for rule in rules if rule["own"]]
        stock = [rule for rule in rules if not rule["own"]]
        shown = own + stock[:_SHOWN]
    for rule in shown:
        _rule(out, rule)
    hidden = len(rules) - len(shown)
    if hidden:
        out.print(_line((f"  and {hidden} more of the stock bundle (--all)", "dim")))


def _rule(out: Console, rule: dict[str, Any]) -> None:
    kind = rule["kind"]
    title = f"  {rule['title']}" if rule["title"] else ""
    out.print(
        _line(
            "  ",
            (kind.ljust(5), _STYLES.get(kind, "")),
            " ",
            (_place(rule), "cyan"),
            "  ",
            (rule["label"] or rule["rule"], "bold"),
            (title, "dim"),
        )
    )
    # a rule that fired has its findings instead of the expression that stopped it
    if "findings" not in rule:
        _stopped(out, rule, _INDENT)


def _stopped(out: Console, rule: dict[str, Any], indent: str) -> None:
    """Print which expression stopped a rule, what it read, and why its helpers do not hold."""
    failed = rule["failed"]
    if failed is None:
        problem = rule["problem"] or "not known"
        out.print(_line(indent, (problem, "yellow")))
        return
    out.print(
        _line(
            indent,
            (f"{rule['passed']} of {rule['expressions']} hold; stopped at ", "dim"),
            (_place(failed), "cyan"),
            "  ",
            failed["expression"],
        )
    )
    deeper = f"{indent}  "
    for path, value in failed["reads"].items():
        shown = value
        # "undefined" is Rego's own word and stands without quotes
        if value != "undefined":
            shown = json.dumps(value, ensure_ascii=False)
        out.print(_line(deeper, (f"{path} = {shown}", "dim")))
    if rule["problem"]:
        out.print(_line(deeper, (rule["problem"], "red")))
    for helper in rule["because"]:
        holds = "holds" if helper["fired"] else "does not hold"
        out.print(
            _line(
                deeper,
                (helper["rule"], "bold"),
                f" {holds}  ",
                (_place(helper), "cyan"),
            )
        )
        if not helper["fired"]:
            _stopped(out, helper, f"{indent}    ")
