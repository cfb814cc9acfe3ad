"""Builtins whose result can be of any size are refused at load, unless a rule writes out what
bounds it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agenttool_otel.errors import PolicyUnsupported
from agenttool_otel.policy.bundles.bundle import bundle_from_files
from agenttool_otel.policy.engines.embedded import EmbeddedEngine

ENTRY = "data.agenttool.permission.decision"


def load(expression: str) -> EmbeddedEngine:
    text = (
        "package agenttool.permission\n"
        f'decision := {{"behavior": "allow"}} if {{ count({expression}) > 0 }}\n'
        'shape := "%d"\n'
    )
    return EmbeddedEngine(
        bundle_from_files({"p.rego": text.encode()}, origin="test"), entry_points=(ENTRY,)
    )


@pytest.mark.parametrize(
    "expression",
    [
        "numbers.range(1, 1000000000)",
        "numbers.range(-1000000000, 1)",
        "numbers.range(1, input.input.n)",
        "numbers.range_step(1, 1000000000, 1)",
        'net.cidr_expand("10.0.0.0/8")',
        'net.cidr_expand("2001:db8::/32")',
        "net.cidr_expand(input.input.network)",
        'sprintf("%999999999d", [1])',
        'sprintf("%.999999999f", [1])',
        'sprintf("%-+0999999999d", [1])',
        'sprintf("%*d", [999999999, 1])',
        'sprintf("%s %.*f", ["a", 999999999, 1])',
        "sprintf(`%999999999d`, [1])",
        "sprintf(input.input.format, [1])",
        "sprintf(shape, [1])",
    ],
)
def test_a_builtin_without_bounds_is_refused(expression: str) -> None:
    with pytest.raises(PolicyUnsupported, match=r"p\.rego:2: .*decision uses"):
        load(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "numbers.range(1, 100)",
        "numbers.range(10, -10)",
        "numbers.range_step(0, 100, 5)",
        'net.cidr_expand("192.168.0.0/24")',
        'sprintf("%s is %5.2f %%", ["a", 1.5])',
        "sprintf(`%d`, [1])",
    ],
)
def test_a_builtin_within_its_bounds_is_taken(expression: str) -> None:
    load(expression)


def test_a_policy_that_would_fill_the_memory_aborts_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "agenttool" / "custom"
    folder.mkdir(parents=True)
    folder.joinpath("c.rego").write_text(
        "package agenttool.custom\n"
        'deny contains {"rule": "custom.x", "message": "m"} if { count(numbers.range(1, 1000000000)) > 5 }\n'
    )
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "from agenttool_otel import Governor, PolicyLoadError\n"
        f"try: Governor(extension={str(tmp_path)!r})\n"
        "except PolicyLoadError as error: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("refused", 0), done.stderr


XS = "xs := numbers.range(1, 3000)"
NESTED = "some a in xs; some b in xs; some c in xs; a * b * c == 7777777777"


@pytest.mark.parametrize(
    "rules",
    [
        f"deny if {{ {XS}; {NESTED} }}",
        f"{XS}\ndeny if {{ {NESTED} }}",
        f"{XS}\ndeny if {{ some a in xs; count([b | some b in xs; b == a]) > 1 }}",
        f"{XS}\ndeny if {{ some a in xs; every b in xs {{ b > a }} }}",
    ],
)
def test_loops_in_one_another_are_refused_beyond_a_limit(rules: str) -> None:
    text = f'package agenttool.permission\ndecision := {{"behavior": "allow"}}\n{rules}\n'
    with pytest.raises(PolicyUnsupported, match=r"p\.rego:\d: .*deny loops [\d,]+ times"):
        EmbeddedEngine(
            bundle_from_files({"p.rego": text.encode()}, origin="test"), entry_points=(ENTRY,)
        )


def test_loops_of_usual_sizes_are_taken() -> None:
    text = (
        'package agenttool.permission\ndecision := {"behavior": "allow"}\nxs := numbers.range(1, 90)\n'
        "deny if { some a in xs; some b in xs; some c in input.list; a + b == c }\n"
    )
    EmbeddedEngine(
        bundle_from_files({"p.rego": text.encode()}, origin="test"), entry_points=(ENTRY,)
    )
