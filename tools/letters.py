"""Count which letters follow which in names and words, and write ``redaction/letters.toml``.

The words are those of Python's own standard library, so that anyone can count again; another Python
version moves a few entries by one step. Not a step of ``make docs``: the table is data, and is
meant to stay as it was measured.
"""

from __future__ import annotations

import math
import re
import string
import sysconfig
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src/agenttool_otel/redaction/letters.toml"
LEFT_OUT = ("test/", "encodings/", "site-packages/", "lib2to3/tests/", "idlelib/idle_test/")
HEAD = """\
# How much more often a letter follows another in names and words than it would by chance, in steps of a factor of two:
# 4 is as often as by chance, 5 twice as often, 0 at most a sixteenth. Row: first letter; column: second, from a to z.
# Counted over the words of Python's standard library by tools/letters.py.
"""


def words() -> dict[str, int]:
    """Words of the standard library that occur at least twice, with their counts."""
    root = Path(sysconfig.get_path("stdlib"))
    found: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        if not path.relative_to(root).as_posix().startswith(LEFT_OUT):
            text = path.read_text("utf-8", "replace")
            found.update(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text))
    return {word: count for word, count in found.items() if count > 1 and 3 <= len(word) <= 14}


def table(counts: dict[str, int]) -> dict[str, str]:
    """One row of digits for each first letter."""
    pairs: defaultdict[str, float] = defaultdict(float)
    for word, count in counts.items():
        for first, second in pairwise(word):
            # rare words count nearly as much as frequent ones: it is about what can be a word
            pairs[first + second] += math.log2(1 + count)
    rows = {}
    for first in string.ascii_lowercase:
        whole = sum(pairs[first + second] for second in string.ascii_lowercase)
        ratios = [
            (pairs[first + second] / whole + 0.0005) / 1.013 * 26
            for second in string.ascii_lowercase
        ]
        rows[first] = "".join(
            str(round(max(-4.0, min(4.0, math.log2(ratio)))) + 4) for ratio in ratios
        )
    return rows


if __name__ == "__main__":
    lines = [f'{first} = "{row}"\n' for first, row in table(words()).items()]
    TARGET.write_text(HEAD + "\n[follows]\n" + "".join(lines), "utf-8")
