"""Show what the conformance runner notices of the package's independent mutants.

``python tools/independent_mutants.py`` examines the package once for each mutant of
``tests/conformance/independent_mutants.json`` and prints what the runner notices, by the standard
alone and with this package's own expectations. It takes about eight minutes on two cores; ``--only ID``
tries some.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Final

from mutants import ROOT, LineMutant

LIST: Final = ROOT / "tests" / "conformance" / "independent_mutants.json"
SUBJECT: Final = ROOT / "tests" / "conformance" / "mutated_subject.py"
LEAST: Final = 38
"""How many of the 40 the runner has to notice."""
_REPLY_S: Final = 300.0  # a machine that is busy is no finding
_SHOWN: Final = 2  # findings of each mutant
_SHOWN_CHARS: Final = 160


@dataclass(frozen=True)
class IndependentMutant:
    """A mutant by someone who had not read the scenarios.

    Attributes:
        id: its name.
        breaks: which requirement of the standard a user would miss.
        change: the text that is replaced.
    """

    id: str
    breaks: str
    change: LineMutant

    @property
    def command(self) -> list[str]:
        """What starts the broken package as a subject."""
        change = json.dumps(asdict(self.change))
        return [sys.executable, str(SUBJECT), change]


@dataclass
class Noticed:
    """What the runner found.

    Attributes:
        standard: what the standard asks for and does not hold.
        ours: this package's own expectations that do not hold.
    """

    standard: list[str] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """How the mutant fared."""
        if self.standard:
            return "noticed"
        if self.ours:
            return "ours alone"
        return "NOT NOTICED"


def independent_mutants() -> list[IndependentMutant]:
    """Return the mutants of the list."""
    made = []
    for entry in json.loads(LIST.read_text(encoding="utf-8")):
        change = LineMutant(
            file=entry["file"],
            old=entry["old"],
            new=entry["new"],
        )
        mutant = IndependentMutant(
            id=entry["id"],
            breaks=entry["breaks"],
            change=change,
        )
        made.append(mutant)
    return made


def examine_mutant(mutant: IndependentMutant) -> Noticed:
    """Run all scenarios against a mutant.

    Args:
        mutant: the mutant.
    """
    from agenttool_otel.conformance.checking import examine
    from agenttool_otel.conformance.process import SubjectProcess
    from agenttool_otel.conformance.scenarios import read_scenarios

    # the runner is in this process, where the package is whole
    start = partial(SubjectProcess, mutant.command, time_limit=_REPLY_S)
    report = examine(start, read_scenarios())
    noticed = Noticed()
    for outcome in report.outcomes:
        found = [*outcome.failures]
        if outcome.broken or outcome.lacks:
            found.append(outcome.broken or outcome.lacks)
        for text in found:
            noticed.standard.append(f"{outcome.number}: {text}")
        for text in outcome.ours_failed:
            noticed.ours.append(f"{outcome.number}: {text}")
    return noticed


def _lines(mutant: IndependentMutant, noticed: Noticed) -> Iterator[str]:
    yield f"{noticed.word:12} {mutant.id}"
    findings = noticed.standard or noticed.ours
    for text in findings[:_SHOWN]:
        yield f"{'':12} {text[:_SHOWN_CHARS]}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="ID")
    parser.add_argument("--jobs", type=int, default=2, help="subjects that run at once")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Examine the mutants, and return 1 where too few are noticed.

    Args:
        arguments: of the command line.
    """
    options = _parser().parse_args(arguments)
    chosen = independent_mutants()
    least = LEAST
    if options.only:
        chosen = [mutant for mutant in chosen if mutant.id in options.only]
        least = len(chosen)
    words = []
    with ThreadPoolExecutor(options.jobs) as threads:
        found = threads.map(examine_mutant, chosen)
        for mutant, noticed in zip(chosen, found, strict=True):
            words.append(noticed.word)
            print("\n".join(_lines(mutant, noticed)), flush=True)
    by_standard = words.count("noticed")
    by_any = by_standard + words.count("ours alone")
    print(f"noticed {by_standard} of {len(chosen)} by the standard, {by_any} with our own rules")
    return int(by_standard < least)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
