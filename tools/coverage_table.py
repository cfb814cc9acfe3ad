"""Write docs/coverage.md: every object, field and word of the standard with its place and the test
that shows it.

``python tools/coverage_table.py`` writes the page; with ``--run`` it first runs the acceptance
scenarios and notes in tests/conformance/evidence.json which of them showed which field and word.
Rows that a review wrote by hand are in tests/conformance/rows.tsv.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from agenttool_otel import names  # noqa: E402

SCHEMAS = ROOT / "src" / "agenttool_otel" / "conformance" / "schemas"
DATA = ROOT / "tests" / "conformance"
PAGE = ROOT / "docs" / "coverage.md"
SCENARIOS = "tests/conformance/test_conformance.py"
EVERY_WORD = "tests/conformance/test_every_word.py"
_WORDS = ("invocation state", "result status", "error class", "progress status", "hook event")
SEEN = ("Event classes", *(f"Words: {words}" for words in _WORDS))
"""Chapters of which that test sees every word in the records of real calls."""
OBJECTS = {
    "tool_declaration": ("tool-declaration", "records/declaration.py"),
    "tool_interface": ("tool-interface", "records/interface.py"),
    "tool_surface": ("tool-surface", "records/surface.py"),
    "deferred_tool_ref": ("deferred-tool", "records/surface.py"),
    "tool_execution_profile": ("execution-profile", "records/execution_profile.py"),
    "tool_permission_profile": ("permission-profile", "records/permission_profile.py"),
    "tool_permission_decision": ("permission-decision", "records/permission_decision.py"),
    "tool_invocation": ("invocation", "records/invocation.py"),
    "input_mutation": ("input-mutation", "records/mutation.py"),
    "tool_hook": ("hook", "records/hook.py"),
    "tool_scheduler_policy": ("scheduler-policy", "records/scheduler_policy.py"),
    "tool_progress": ("progress", "records/progress.py"),
    "tool_result": ("result", "records/result.py"),
    "tool_result_persistence": ("result-persistence", "records/persistence.py"),
    "tool_event": ("event", "records/event.py"),
}
WORDS: dict[str, type[StrEnum]] = {
    "invocation state": names.InvocationStatus,
    "result status": names.ResultStatus,
    "error class": names.ErrorClass,
    "lifecycle": names.Lifecycle,
    "tool kind": names.ToolKind,
    "surface scope": names.SurfaceScope,
    "reason on a surface": names.BlockReason,
    "loading state": names.LoadingState,
    "behavior": names.Behavior,
    "decision reason": names.ReasonType,
    "mutation source": names.MutationSource,
    "hook event": names.HookEvent,
    "persistence strategy": names.PersistenceStrategy,
    "progress status": names.ProgressStatus,
    "abort reason": names.AbortReason,
    "sibling policy": names.SiblingFailurePolicy,
}
EVENTS = [
    *("declared", "surface.created", "surface.updated", "deferred.discovered", "deferred.loaded"),
    *(
        "invocation.planned",
        "invocation.selected",
        "invocation.arguments_ready",
        "invocation.validation_failed",
    ),
    *(
        "hook.pre.started",
        "hook.pre.completed",
        "permission.requested",
        "permission.decided",
        "invocation.queued",
    ),
    *(
        "invocation.started",
        "invocation.progress",
        "invocation.partial_result",
        "hook.post.started",
    ),
    *(
        "hook.post.completed",
        "result.persisted",
        "invocation.yielded",
        "invocation.succeeded",
        "invocation.failed",
    ),
    *("invocation.canceled", "invocation.timed_out", "result.created", "result.redacted"),
]
"""The standard's 27 event classes, without ``tool.``."""


EVIDENCE: dict[str, dict[str, Any]] = json.loads(
    (DATA / "evidence.json").read_text(encoding="utf-8")
)
"""Which scenario showed what, and for the rest which test was found to look at it."""


class Row(NamedTuple):
    """One requirement."""

    chapter: str
    requirement: str
    where: str
    test: str
    reason: str = ""


@cache
def _texts() -> dict[str, str]:
    folders = (
        "conformance",
        "records",
        "surfaces",
        "batch",
        "hooks",
        "results",
        "approvals",
        "core",
        "langchain",
    )
    files = [
        path for folder in folders for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))
    ]
    files += [path for path in sorted((ROOT / "tests").glob("*/test_*.py")) if path not in files]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}


def looks_at(text: str, word: str, *, field: bool) -> bool:
    """Tell whether a test looks at a field, or names a word as text or as the member of its
    vocabulary.
    """
    as_field = rf'(?:\.{word}\b|["\']{word}["\']|\b{word}=)'
    as_word = rf'(?:["\'/.]{re.escape(word)}["\'(]|\b{word.upper()}\b)'
    return re.search(as_field if field else as_word, text) is not None


def _test_of(word: str, *, field: bool) -> str:
    return next((name for name, text in _texts().items() if looks_at(text, word, field=field)), "")


def rows() -> Iterator[Row]:
    """Return the rows that schemas and vocabularies give, and those written by hand."""
    evidence = EVIDENCE
    reasons = json.loads((DATA / "reasons.json").read_text(encoding="utf-8"))

    def row(chapter: str, requirement: str, where: str, word: str, *, field: bool) -> Row:
        if chapter in SEEN:
            return Row(chapter, requirement, where, EVERY_WORD, reasons.get(requirement, ""))
        scenario = evidence["scenarios"].get(requirement)
        known = evidence["tests"].get(requirement, "")
        if not scenario and not (known and looks_at(_texts().get(known, ""), word, field=field)):
            known = evidence["tests"][requirement] = _test_of(word, field=field)
        test = f"{SCENARIOS} (scenario {scenario})" if scenario else known
        reason = reasons.get(requirement, "")
        return Row(chapter, requirement, where, "" if reason.startswith("Not") else test, reason)

    for name, (file, where) in OBJECTS.items():
        schema = json.loads((SCHEMAS / f"agenttool-{file}.schema.json").read_text(encoding="utf-8"))
        for field in schema["properties"]:
            yield row(f"Fields of `{name}`", f"{name}.{field}", where, field, field=True)
    for chapter, vocabulary in WORDS.items():
        place = f"names/{vocabulary.__module__.rpartition('.')[2]}.py"
        for word in vocabulary:
            yield row(f"Words: {chapter}", f"{chapter} {word}", place, word.value, field=False)
    for name in EVENTS:
        yield row(
            "Event classes", f"event tool.{name}", "names/telemetry.py", f"tool.{name}", field=False
        )
    for line in (DATA / "rows.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            _, chapter, requirement, source, where, test, reason = line.split("\t")
            yield Row(f"Review: {chapter}", f"{requirement} ({source})", where, test, reason)


def page() -> str:
    """Write the page."""
    found = list(rows())
    met = sum(bool(row.test) for row in found)
    lines = [
        "# Coverage of Agent Tool v0.2.0",
        "",
        "Generated by `tools/coverage_table.py` from the standard's schemas and words, and rows of a review.",
        "`agenttool conformance` runs the acceptance scenarios.",
        "",
        f"{len(found)} requirements: {met} have a test, {len(found) - met} are not met, each with its reason.",
    ]
    chapter = ""
    for row in found:
        if row.chapter != chapter:
            chapter = row.chapter
            lines += [
                "",
                f"## {chapter}",
                "",
                "| requirement | where | test | remark |",
                "|---|---|---|---|",
            ]
        cells = (
            row.requirement.replace("|", "\\|"),
            f"`{row.where}`" if row.where else "",
            row.test,
            row.reason,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def seen() -> dict[str, int]:
    """Run the scenarios and return which one first showed each field and word."""
    from agenttool_otel.conformance import own
    from agenttool_otel.conformance.scenarios import SCENARIOS as ALL

    found: dict[str, int] = {}
    for scenario in ALL:
        scenario.run(own)
        for line in own.records():
            for key in _shown(line["object"], line["record"]):
                found.setdefault(key, scenario.number)
    return found


def _shown(kind: str, record: dict[str, Any]) -> Iterator[str]:
    yield from (
        f"{kind}.{field}" for field, value in record.items() if value not in (None, "", [], {})
    )
    match kind:
        case "tool_event":
            yield f"event {record['event_type']}"
        case "tool_invocation":
            yield from (
                f"invocation state {step['status']}"
                for step in record.get("status_transitions", ())
            )
        case "tool_result":
            yield f"result status {record['status']}"
            yield f"error class {(record.get('error') or {}).get('error_class')}"
        case "tool_permission_decision":
            yield f"behavior {record['behavior']}"
            yield f"decision reason {record['reason']['type']}"
        case "tool_progress":
            yield f"progress status {record['status']}"
        case "tool_result_persistence":
            yield f"persistence strategy {record['strategy']}"
        case "input_mutation":
            yield f"mutation source {record['source_type']}"
        case "tool_hook":
            yield f"hook event {record['hook_event']}"


def main() -> int:
    """Write the page, after a run if that is wanted."""
    if "--run" in sys.argv:
        EVIDENCE["scenarios"] = seen()
    PAGE.write_text(page(), encoding="utf-8")
    (DATA / "evidence.json").write_text(
        json.dumps(EVIDENCE, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    for row in rows():
        if not row.test and not row.reason:
            print("no test and no reason:", row.requirement)
    return 0


if __name__ == "__main__":
    sys.exit(main())
