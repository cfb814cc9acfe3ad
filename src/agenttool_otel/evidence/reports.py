"""A replay's report for other readers: SARIF for code hosts, and a page of HTML without anything from
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.records.base import JsonObject

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_HOME: Final = "https://pypi.org/project/agenttool-otel/"
_COLUMNS: Final = ("before", "after", "count", "tool", "rule_before", "rule_after")
_STYLE: Final = """
body { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8886; padding: .35rem .6rem; text-align: left }
td { overflow-wrap: anywhere; vertical-align: top }
tr.wider td:first-child { border-left: .3rem solid #c22 }
p.wider { color: #c22; font-weight: 600 }
"""


def sarif(report: Mapping[str, Any], bundle: Bundle) -> JsonObject:
    """Return a replay's report as SARIF 2.1.0.

    Args:
        report: of ``agenttool policy replay``.
        bundle: the candidate, in whose files the rules are looked up.
    """
    results = [_result(change, bundle) for change in report["changes"]]
    results += [
        {
            "ruleId": "agenttool.replay.unsure",
            "level": "warning",
            "message": {"text": f"{count} decisions are unsure: {reason}"},
        }
        for reason, count in report["unsure"].items()
    ]
    rules = [{"id": name} for name in sorted({result["ruleId"] for result in results})]
    driver = {"name": "agenttool policy replay", "informationUri": _HOME, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(change: Mapping[str, Any], bundle: Bundle) -> JsonObject:
    rule = change["rule_after"]
    text = (
        f"{change['count']} decisions on {change['tool']} would be {change['after']} by {rule};"
        f" they were {change['before']} by {change['rule_before']}"
    )
    found: JsonObject = {
        "ruleId": rule,
        "level": "error" if change["widens"] and not change["approved"] else "note",
        "message": {"text": text},
        "properties": {"examples": change["examples"]},
    }
    place = place_of(rule, bundle)
    if place is not None:
        file, line = place
        location = {"artifactLocation": {"uri": file}, "region": {"startLine": line}}
        found["locations"] = [{"physicalLocation": location}]
    return found


def place_of(rule: str, bundle: Bundle) -> tuple[str, int] | None:
    """Return the file and the line of a rule's name; ``None`` where no file has it.

    Args:
        rule: as decisions name it.
        bundle: the policy.
    """
    for file, text in bundle.modules.items():
        at = text.find(f'"{rule}"')
        if at >= 0:
            return file, text.count("\n", 0, at) + 1
    return None


def page(report: Mapping[str, Any]) -> str:
    """Return a replay's report as one page of HTML: no script, and nothing that is loaded.

    Args:
        report: of ``agenttool policy replay``.
    """
    body = "\n".join(_lines(report))
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>Policy replay</title>\n<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield "<h1>Policy replay</h1>"
    yield f"<p>{report['decisions']} decisions, {report['same']} with the same answer by the same rule.</p>"
    if report["widened"]:
        yield f'<p class="wider">{report["widened"]} decisions would permit more.</p>'
    for reason, count in report["unsure"].items():
        yield f'<p class="wider">{count} are unsure: {escape(reason)}.</p>'
    if report["lost"]:
        yield f"<p>{report['lost']} decisions were lost before they were written.</p>"
    if not report["changes"]:
        return
    heads = "".join(f"<th>{name.replace('_', ' ')}" for name in (*_COLUMNS, "examples"))
    yield f"<table>\n<thead><tr>{heads}</thead>"
    for change in report["changes"]:
        wider = ' class="wider"' if change["widens"] and not change["approved"] else ""
        cells = "".join(f"<td>{escape(str(change[name]))}" for name in _COLUMNS)
        examples = "<br>".join(
            f"<code>{escape(each['invocation_id'])}</code> {escape(each['time'])}"
            for each in change["examples"]
        )
        yield f"<tr{wider}>{cells}<td>{examples}"
    yield "</table>"
