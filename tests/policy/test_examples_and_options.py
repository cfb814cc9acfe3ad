"""Every example of the docs that lets a program run is tried with options from the program's own
manual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import agent_context
from agenttool_otel.testing import capture
from samples import one_in

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RULES = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```rego[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    )
    if "allow contains" in block
]
LISTED = sorted(
    {
        " ".join(words)
        for page in PAGES
        for found in re.findall(r'"allow": (\[\[.*?\]\])', page.read_text("utf-8"))
        for words in json.loads(found)
    }
)
MANUAL = {
    "pytest": """
        --basetemp=src|--basetemp src|--junitxml=src/keep.txt|--junit-xml /home/u/.bashrc|--pastebin=all|-p evil|-pevil
        -o cache_dir=.git|--override-ini=x=y|-c evil.ini|--rootdir=/etc|--confcutdir=/|--debug=src/keep.txt
        --log-file=src/keep.txt|--pdbcls=os:system|--report-log=src/keep.txt|--html=src/keep.txt|--cov-report=html:src
        --cov-config=/etc/x|-W error::evil.X|--unheard-of|@args|/etc|--pyargs os|--tx ssh=x""",
    "npm": "-- --x|--prefix /etc|--script-shell=./x|--node-options=--require=./x|extra|--unheard-of",
    "make": "--eval=x|-f x|-C /etc|CC=x|SHELL=./x|-f -|-I /etc",
    "go": "-exec ./x|-toolexec ./x|-o src/keep.txt|-coverprofile=src/keep.txt|-modfile=x|-overlay x|-ldflags=-X",
    "cargo": "--config x|--target-dir=src|--manifest-path /etc/x|-Z x|-- --logfile=src/keep.txt|-C /etc",
    "mypy": "--install-types|--html-report src|--cache-dir=src|--python-executable=./x|-c 1|--config-file x|-p os",
    "ruff": "--fix|--config x|-o src/keep.txt|--cache-dir /etc|--output-file=src/keep.txt|/etc",
    "tox": "-c x|--workdir=src|--override x=y|--result-json src/keep.txt|-- x|--devenv src",
    "jest": "-c x|--globalSetup=./x|--outputFile=src/keep.txt|--reporters=./x|-u|--coverageDirectory src",
    "eslint": "--fix|-f ./x|-c x|--rulesdir src|-o src/keep.txt|--resolve-plugins-relative-to /",
    "black": "--config x|-c 1|/etc|--unheard-of",
    "coverage": "--rcfile=/etc/x|--data-file=src/keep.txt|-m os",
    "gcc": "-o src/keep.txt|-wrapper x|-fplugin=x|-specs=x|@x|-B src|-MF src/keep.txt",
    "cmake": "-P x|-E rm|-C x|-B src|--install src|-D X=y",
    "python": "-c 1|-m http.server|-|-i x.py|-X x",
    "node": "-e 1|-r ./x y.js|--import ./x y.js|-p 1",
    "git": "--receive-pack=x|--exec=x|https://example.org/x main",
    "docker": "-v /:/x|--privileged",
}
"""Options that write, load code or send, by program."""

HONEST = {
    "pytest": ["-q", "-x -k one", "-q tests", "--tb=short -vv"],
    "npm": ["", "--silent"],
    "git": ["", "-q"],
}
COMMON = [
    "pytest", "npm test", "npm run build", "make test", "go test", "cargo test", "mypy", "ruff check", "tox", "jest",
    "eslint", "black", "coverage run", "gcc", "cmake", "python", "node", "git push", "docker run",
]  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    for name in ("src/keep.txt", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    with agent_context(actor="agent:a", session_id="s", roots=[str(tmp_path)], cwd=str(tmp_path)):
        yield tmp_path


def allowed(lines: list[str], **options: Any) -> list[str]:
    """Which of these lines would run without a question."""

    def run(command: str) -> str:
        """Run a shell command."""
        raise AssertionError("ran")

    with capture(**options) as captured:
        tool = captured.governor.govern(
            run,
            command_args=["command"],
            tool_kind="shell_command",
            access_kinds=["file_read", "file_write", "code_execution"],
            read_only="classifier:command_read_only",
            destructive="classifier:command_destructive",
        ).tool
        return [line for line in lines if tool.check(command=line).behavior == "allow"]


def attacks(words: str) -> list[str]:
    """A program's words with options of its manual."""
    options = [one.strip() for one in re.split(r"[|\n]", MANUAL[words.split()[0]]) if one.strip()]
    return [f"{words} {option}" for option in options]


def listing(*entries: str) -> dict[str, Any]:
    allow = [entry.split() for entry in entries]
    return {"agenttool": {"settings": {"shell": {"commands": {"allow": allow}}}}}


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_of_the_docs_lets_options_pass(
    rule: str, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    house = tmp_path_factory.mktemp("house")
    (house / "agenttool" / "custom").mkdir(parents=True)
    (house / ".manifest").write_text(
        '{"revision": "t", "rego_version": 1, "roots": ["agenttool/custom"]}'
    )
    (house / "agenttool" / "custom" / "rule.rego").write_text(rule, encoding="utf-8")
    programs = [words for words in COMMON if f'"{words.split()[0]}"' in rule] or COMMON
    lines = [line for words in programs for line in attacks(words)]
    assert allowed(lines, extension=str(house)) == []


def test_a_rule_that_waives_by_a_name_lets_no_option_pass(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    house = tmp_path_factory.mktemp("house")
    (house / "agenttool" / "custom").mkdir(parents=True)
    (house / ".manifest").write_text(
        '{"revision": "t", "rego_version": 1, "roots": ["agenttool/custom"]}'
    )
    names = json.dumps(sorted({words.split()[0] for words in COMMON}))
    rule = f"""package agenttool.custom.by_name
allow contains {{"rule": "house.by_name", "message": "m", "waives": [
	"agenttool.rules.shell.not_read_only", "agenttool.rules.shell.incomplete", "agenttool.rules.declared.writes",
	"agenttool.rules.declared.access_code_execution",
]}} if {{
	some line in input.facts.shell
	every command in line.commands {{
		command.name in {names}
	}}
}}
"""
    (house / "agenttool" / "custom" / "rule.rego").write_text(rule, encoding="utf-8")
    lines = [line for words in COMMON for line in attacks(words)]
    assert allowed(lines, extension=str(house)) == []


@pytest.mark.parametrize("entry", one_in(3, sorted({*LISTED, *COMMON})))
def test_an_entry_lets_no_option_of_its_program_pass(entry: str, checkout: Path) -> None:
    assert allowed(attacks(entry), policy_data=listing(entry)) == []


@pytest.mark.parametrize("entry", sorted({"pytest", *LISTED} & {"pytest", "npm test"}))
def test_an_entry_still_lets_honest_options_pass(entry: str, checkout: Path) -> None:
    lines = [f"{entry} {options}".strip() for options in HONEST[entry.split()[0]]]
    assert allowed(lines, policy_data=listing(entry)) == lines


def test_an_entry_may_name_what_is_not_reviewed(checkout: Path) -> None:
    lines = ["docker run -d web", "docker run -d", "docker run -v /:/x web"]
    assert allowed(lines, policy_data=listing("docker run -d web")) == lines[:1]


def test_reviewed_words_of_several_programs_are_no_question(checkout: Path) -> None:
    lines = [
        "make test -j4", "go test -v -run X ./...", "cargo test --release -- --nocapture", "ruff check src --select E",
        "mypy --strict src", "tox -q -e py312", "jest --ci -t one", "eslint src --max-warnings 0", "black --check src",
    ]  # fmt: skip
    assert allowed(lines, policy_data=listing(*COMMON)) == lines
