"""How ``agenttool policy`` shows checks, tests and explanations to people."""

from __future__ import annotations

import json
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from agenttool_otel.approvals.display import visible
from agenttool_otel.authoring.checking import CheckReport
from agenttool_otel.authoring.testing import TestReport, TestResult

_STYLES: Final = {
    **dict.fromkeys(("passed", "allow"), "green"),
    **dict.fromkeys(("warned", "ask"), "yellow"),
    **dict.fromkeys(("failed", "error", "deny"), "red"),
    "skipped": "dim",
}
_SHOWN: Final = 8


def _line(*parts: str | tuple[str, str]) -> Text:
    # everything may come from a file that somebody else wrote
    return Text.assemble(
        *(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts)
    )


def _word(word: str) -> tuple[str, str]:
    return word.ljust(7), _STYLES.get(word, "")


def show_checks(out: Console, report: CheckReport) -> None:
    """Show what was checked, and with what."""
    for check in report.checks:
        out.print(
            _line(_word(check.status), " ", (check.name, "bold"), "  ", (check.detail, "dim"))
        )
        for problem in check.problems:
            place = f"{problem.place}: " if problem.file else ""
            out.print(_line("        ", (place, "cyan"), problem.message))
    failed = sum(check.status == "failed" for check in report.checks)
    ran = sum(check.status != "skipped" for check in report.checks)
    skipped = [check.name for check in report.checks if check.status == "skipped"]
    left_out = f"; skipped: {', '.join(skipped)}" if skipped else ""
    out.print(_line(f"{ran} checks ran, {failed} failed{left_out}"))


def show_tests(out: Console, report: TestReport, *, verbose: bool) -> None:
    """Show results and coverage."""
    for result in report.results:
        if verbose or result.outcome in ("failed", "error"):
            _show_test(out, result)
    passed = report.ran - len(report.failures)
    out.print(_line(f"{passed} of {report.ran} tests passed on {report.engine}"))
    if report.coverage is None:
        out.print(_line((f"no coverage: {report.uncovered_because}", "dim")))
        return
    for item in report.coverage:
        missed = list(item.missed if verbose else item.missed[:_SHOWN])
        more = "" if len(missed) == len(item.missed) else " ..."
        lines = f"  not covered: {item.file}:{', '.join(map(str, missed))}{more}" if missed else ""
        out.print(_line(f"{item.percent:6.1f} %  ", (item.file, "cyan"), (lines, "yellow")))
    out.print(_line(f"{report.percent:6.1f} %  of all lines"))


def _show_test(out: Console, result: TestResult) -> None:
    place = f"{result.file}:{result.line}"
    seconds = f"  {result.seconds * 1000:.1f} ms" if result.outcome == "passed" else ""
    out.print(
        _line(_word(result.outcome), " ", (place, "cyan"), f"  {result.name}", (seconds, "dim"))
    )
    if result.outcome not in ("failed", "error"):
        return
    out.print(_line(f"        {result.message}"))
    for case in result.cases:
        out.print(_line(f"        case {case}"))
    if result.failed_line:
        out.print(
            _line(
                "        ",
                (f"{result.file}:{result.failed_line}", "cyan"),
                f"  {result.failed_text}",
            )
        )
        if result.found:
            out.print(_line("        ", ("found", "dim"), f"  {result.found}"))


def show_explanation(out: Console, told: dict[str, Any], *, every: bool) -> None:
    """Show an explanation."""
    decision = told["decision"]
    reason = decision["reason"]
    behavior = decision["behavior"]
    out.print(
        _line((behavior.upper(), f"bold {_STYLES.get(behavior, '')}"), "  ", reason["message"])
    )
    places = ", ".join(f"{place['file']}:{place['line']}" for place in told["decided_by"])
    if reason["rule_ref"]:
        out.print(_line("by ", (reason["rule_ref"], "bold"), "  ", (places, "cyan")))
    if decision["blocked_path"]:
        out.print(_line(f"path {decision['blocked_path']}"))
    if told["filled_in"]:
        out.print(
            _line(
                (
                    f"filled in, because the input does not say: {', '.join(told['filled_in'])}",
                    "dim",
                )
            )
        )
    _section(out, "Fired", told["fired"], every=True)
    _section(out, "Nearly", told["nearly"], every=every)
    own = [rule for rule in told["others"] if rule["own"]]
    if own and not every:
        _section(out, "Did not come near", own, every=True)
    if every:
        _section(out, "Did not come near", told["others"], every=True)
    else:
        left = len(told["others"]) - len(own)
        out.print(_line((f"{left} other rules did not come near (--all shows them)", "dim")))


def _section(out: Console, title: str, rules: list[dict[str, Any]], *, every: bool) -> None:
    out.print()
    out.print(_line((title, "bold"), "" if rules else "  nothing"))
    others = [rule for rule in rules if not rule["own"]]
    shown = rules if every else [rule for rule in rules if rule["own"]] + others[:_SHOWN]
    for rule in shown:
        _rule(out, rule)
    if len(shown) < len(rules):
        out.print(
            _line((f"  and {len(rules) - len(shown)} more of the stock bundle (--all)", "dim"))
        )


def _rule(out: Console, rule: dict[str, Any]) -> None:
    name = rule["label"] or rule["rule"]
    place = f"{rule['file']}:{rule['line']}"
    title = f"  {rule['title']}" if rule["title"] else ""
    kind = rule["kind"].ljust(5), _STYLES.get(rule["kind"], "")
    out.print(_line("  ", kind, " ", (place, "cyan"), "  ", (name, "bold"), (title, "dim")))
    if "findings" not in rule:
        _stopped(out, rule, "        ")


def _stopped(out: Console, rule: dict[str, Any], indent: str) -> None:
    failed = rule["failed"]
    if failed is None:
        out.print(_line(indent, (rule["problem"] or "can't be told", "yellow")))
        return
    count = f"{rule['passed']} of {rule['expressions']} hold; stopped at "
    out.print(
        _line(
            indent,
            (count, "dim"),
            (f"{failed['file']}:{failed['line']}", "cyan"),
            "  ",
            failed["expression"],
        )
    )
    for path, value in failed["reads"].items():
        shown = value if value == "undefined" else json.dumps(value, ensure_ascii=False)
        out.print(_line(indent, "  ", (f"{path} = {shown}", "dim")))
    if rule["problem"]:
        out.print(_line(indent, "  ", (rule["problem"], "red")))
    for helper in rule["because"]:
        place = f"{helper['file']}:{helper['line']}"
        holds = "holds" if helper["fired"] else "does not hold"
        out.print(_line(indent, "  ", (helper["rule"], "bold"), f" {holds}  ", (place, "cyan")))
        if not helper["fired"]:
            _stopped(out, helper, indent + "    ")
