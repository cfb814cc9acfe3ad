"""Writes dashboards/grafana/boards/*.json, or with ``check`` tells whether they are what the code
gives.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from boards import generate

FOLDER: Final = Path(__file__).resolve().parent.parent / "dashboards" / "grafana" / "boards"


def main(arguments: list[str]) -> int:
    """Write or compare."""
    made = generate()
    if arguments == ["check"]:
        old = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.json")}
        if old != made:
            print(
                "dashboards/grafana/boards is not what tools/boards gives: run python tools/make_boards.py"
            )
        return int(old != made)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for stale in FOLDER.glob("*.json"):
        stale.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
