"""Regenerate every committed file that is derived from another: ``make docs``; tests fail when one
is stale.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS: tuple[tuple[str, ...], ...] = (
    ("tools/policy_input.py",),
    (
        "-c",
        "from agenttool_otel.policy.bundles.bundle import default_bundle_path as d; "
        "from agenttool_otel.policy.bundles.load import load_bundle as l; "
        "from agenttool_otel.policy.bundles.settings_schema import rule_names as r, settings_schema as s; "
        "import json, pathlib; text = json.dumps(s(r(l(d()).modules)), indent=2, ensure_ascii=False); "
        "pathlib.Path('docs/policy-settings.schema.json').write_text(text + chr(10), encoding='utf-8')",
    ),
    ("tools/evidence_words.py",),
    ("tools/semconv.py", "docs"),
    ("tools/make_names.py",),
    ("tools/make_boards.py",),
    ("tools/configuration.py",),
    ("tools/exit_codes.py",),
    ("tools/coverage_page.py",),
    ("tools/openapi.py",),
    ("tools/support_table.py",),
)


def main() -> int:
    """Run every generator and say which failed."""
    failed = 0
    for step in STEPS:
        done = subprocess.run([sys.executable, *step], cwd=ROOT, check=False)
        failed |= done.returncode
        print(
            "ok  " if done.returncode == 0 else "FAIL",
            step[0] if step[0] != "-c" else "policies/schemas",
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
