"""Grants by facts and the options of programs: what a sentence leaves out neither writes, nor loads
code, nor sends.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import ApprovalAnswer, GovernedOutcome, agent_context
from agenttool_otel.approvals.display import describe_suggestion
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.testing import capture


class Once:
    """Agrees to one question, by facts where that is offered, and never again."""

    def __init__(self) -> None:
        self.there = True
        self.offers: list[str] = []

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        if not self.there:
            return None
        self.there = False
        self.offers = [describe_suggestion(one) for one in request.suggested_updates]
        numbers = [
            number
            for number, one in enumerate(request.suggested_updates)
            if one.get("args") == "facts"
        ]
        return ApprovalAnswer(
            approved=True, answered_by="user:ada", remember=numbers[-1] if numbers else None
        )


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    for folder in ("src", "tests", "app", "twine"):
        (tmp_path / folder).mkdir()
    for name in (
        "src/tool.py",
        "src/other.py",
        "tests/test_a.py",
        "app/__init__.py",
        "app/__main__.py",
        "app/cli.py",
    ):
        (tmp_path / name).write_text("")
    # no package: an installed one is run instead
    (tmp_path / "twine" / "__main__.py").write_text("")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with agent_context(
        actor="agent:a", session_id="s", roots=[str(tmp_path)], cwd=str(tmp_path), interactive=True
    ):
        yield tmp_path


def runs(honest: str, *later: str) -> tuple[list[str], list[str]]:
    """What runs unasked of later lines after an honest one was agreed to, and what was offered for
    that.
    """
    approver = Once()
    with capture(policy=None, approver=approver) as captured:

        def run(command: str) -> str:
            """Run a shell command."""
            return ""

        tool: Callable[..., Any] = captured.governor.govern(
            run,
            command_args=["command"],
            tool_kind="shell_command",
            access_kinds=["file_read", "file_write", "code_execution"],
            read_only="classifier:command_read_only",
            destructive="classifier:command_destructive",
        )
        tool(honest)
        assert not approver.there, honest  # it was asked about
        unasked = []
        for line in later:
            try:
                tool(line)
            except GovernedOutcome:
                continue
            unasked.append(line)
        return unasked, approver.offers


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


INERT = {
    "pytest -q": """
        pytest -q tests/test_a.py
        pytest -xvs tests
        pytest -k 'a and not b' --tb=short --lf
        pytest --maxfail=2 -n 4 -rA
        pytest --cov=src --cov-report=term-missing
        python -m pytest tests/test_a.py::test_one
        timeout 60 pytest -x 2>&1 | tail -5
        bash -c 'pytest -x tests'""",
    "mypy src": "mypy --strict src/tool.py\npython3 -m mypy src",
    "ruff check": "ruff check src --select E501 --statistics",
    "go test ./...": "go test -v -run TestX -count=1 ./src/...",
    "cargo test": "cargo test --release parse -- --nocapture",
    "make test": "make -j4 -s test",
    "npm run build": "npm run build --silent",
    "tox -e py312": "tox -q -e py312",
    "git checkout -b one": "git checkout -q -b two",
    "git commit -m one": "git commit -am two",
    "git add src": "git add -A\ngit add tests/test_a.py",
    "python src/tool.py": "python -u src/other.py --fast\npython -m app\npython3 -m app.cli x",
    "pytest -p xdist": "pytest -p xdist -q tests",
}
OTHER = {
    "pytest -q": """
        pytest --basetemp=src
        pytest -q --basetemp src
        pytest --junitxml=.git/HEAD
        pytest --junit-xml=src/tool.py
        pytest --report-log=src/tool.py
        pytest --html=src/tool.py
        pytest --debug=src/tool.py
        pytest --debug src/tool.py
        pytest --cov-report=html:src
        pytest --cov-report xml:src/tool.py
        pytest --pastebin=all
        pytest --pastebin failed
        pytest -p src.tool
        pytest -psrc.tool
        pytest -qp src.tool
        pytest -c src/tool.ini
        pytest -o cache_dir=src
        pytest --override-ini=addopts=-x
        pytest --rootdir=src
        pytest --confcutdir=src
        pytest --cov-config=src/x
        pytest --pdbcls=os:system
        pytest -W error::src.tool.Warn
        pytest --unheard-of
        pytest @src/args
        pytest --pyargs twine
        python -m pytest -p src.tool
        strace -o src/tool.py pytest
        bash -c 'pytest -p src.tool'
        env PYTEST_ADDOPTS=--basetemp=src pytest
        PYTEST_ADDOPTS=--basetemp=src pytest
        ls | xargs pytest
        pytest *""",
    "mypy src": """
        mypy --install-types --non-interactive src
        mypy --html-report src/r src
        mypy --cache-dir=src src
        mypy --python-executable=src/tool.py src
        mypy --config-file=src/x src
        mypy -c 'import os'""",
    "ruff check": "ruff check --fix src\nruff check --config src/x\nruff check -o src/tool.py\nruff format src",
    "go test ./...": """
        go test -exec=src/tool.py ./...
        go test -toolexec src/tool.py ./...
        go test -o src/tool.py ./...
        go test -coverprofile=src/tool.py ./...
        go test -ldflags=-X ./...
        go test -test.outputdir=src ./...
        go test example.org/other
        go build ./...""",
    "cargo test": """
        cargo test --config src/x.toml
        cargo test --target-dir=src
        cargo test -- --logfile src/tool.py
        cargo +nightly test
        cargo bench
        cargo run""",
    "make test": """
        make deploy
        make test deploy
        make
        make --eval='x:; id' test
        make -f src/Makefile test
        make -f - test
        make -C src test
        make CC=src/tool.py test
        make test SHELL=src/tool.py""",
    "npm run build": """
        npm run deploy
        npm run build -- --out src
        npm run build src
        npm run build --prefix src
        npm run build --script-shell=src/tool.py
        npm test""",
    "npm test": "npm test -- --config=src/x\nnpm test x\nnpm run test:all\nnpm publish",
    "jest": """
        jest --config=src/x
        jest --globalSetup=./src/x.js
        jest --outputFile=src/tool.py
        jest -u
        vitest""",
    "eslint src": """
        eslint --fix src
        eslint -f ./src/f.js src
        eslint --rulesdir src src
        eslint -o src/tool.py src""",
    "tox -e py312": """
        tox -e deploy
        tox
        tox -c src/x -e py312
        tox -e py312 -- --x
        tox -x testenv.commands=id -e py312""",
    "nox -s tests": "nox -s publish\nnox -f src/x.py -s tests\nnox -s tests -- --x",
    "python -m unittest tests.test_a": "python -m unittest antigravity\npython -m unittest discover -s /",
    "gcc src/a.c -o src/a": """
        gcc -wrapper src/tool.py src/a.c -o src/a
        gcc -fplugin=src/x.so src/a.c -o src/a
        gcc @src/x""",
    "cmake --build build": """
        cmake -E rm -rf src
        cmake -P src/x.cmake
        cmake --build build -- SHELL=x
        cmake --install build""",
    "python src/tool.py": """
        python3 -m twine upload dist/x
        python3 -m keyring get system ada
        python3 -m http.server
        python3 -m app.missing
        python -c 'import app'
        python -
        python src/tool.py < /dev/null | python
        python -i src/tool.py
        python -X importtime src/tool.py
        pytest
        tox""",
    "node src/x.js": "node -e 1\nnode -r ./src/y.js src/x.js\nnode --eval 1\nnode --import ./src/y.js src/x.js",
    "pip install a": """
        pip install -r requirements.txt
        pip install --target src a
        pip install -i https://example.org a
        pip install --report=src/tool.py a
        pip install --pre git+https://example.org/a
        pip install -c x.txt a""",
    "git checkout -q -b one": """
        git checkout .
        git checkout src/tool.py
        git checkout -- src
        git checkout HEAD~1 -- src
        git checkout main
        git checkout -B one
        git switch -c one
        git switch --discard-changes main
        git restore src""",
    "git checkout src/tool.py": "git checkout .\ngit checkout src\ngit checkout src/other.py",
    "git stash": "git stash drop\ngit stash pop\ngit stash -u\ngit stash push src",
    "git commit -m one": """
        git commit --no-verify -m x
        git commit -n -m x
        git commit --amend -m x
        git commit -F x""",
    "git add src": "git add -f src\ngit add -p",
    "git branch one": "git branch -f one two\ngit branch -d one\ngit branch --set-upstream-to=x one",
    "git switch one": "git switch two\ngit switch -f one",
    "git merge one": "git merge two\ngit merge -X theirs one\ngit merge --abort",
    "git tag one": "git tag -d one\ngit tag -f one\ngit tag -s one",
}
INLINE = """
python3 -c 'import app; print(app.version())'
python -c 'print(1)'
node -e 'console.log(1)'
ruby -e 'puts 1'
perl -e 'print 1'
php -r 'echo 1;'
awk 'BEGIN{system("id")}'
bash <<'E'
"""


@pytest.mark.parametrize("honest", INERT)
def test_inert_options_are_covered(honest: str, root: Path) -> None:
    later = lines(INERT[honest])
    unasked, offers = runs(honest, *later)
    assert unasked == later, offers


@pytest.mark.parametrize("honest", OTHER)
def test_other_options_and_words_are_asked_about(honest: str, root: Path) -> None:
    unasked, offers = runs(honest, *lines(OTHER[honest]))
    assert unasked == [], offers


@pytest.mark.parametrize("line", [line for line in lines(INLINE) if "<<" not in line])
def test_inline_code_is_remembered_by_its_text_only(line: str, root: Path) -> None:
    unasked, offers = runs(line, line)
    assert unasked == []  # by facts nothing was offered, so nothing was remembered
    assert offers == ["Also exactly these arguments for this session, for 1 h"]


@pytest.mark.parametrize(
    "text", ["python - <<'E'\nprint(1)\nE", "node <<'E'\n1\nE", "bash <<'E'\nrm src/tool.py\nE"]
)
def test_code_from_the_input_is_not_agreed_to_by_facts(text: str, root: Path) -> None:
    assert runs(text)[1] == ["Also exactly these arguments for this session, for 1 h"]


def test_the_sentence_names_what_is_not_inert(root: Path) -> None:
    offers = runs("pytest -q -p xdist --junitxml=src/r.xml tests")[1]
    assert offers[1] == (
        f"Also `pytest -p xdist` inside {root}, with any words that only choose or show, writes inside {root}/src"
        " for this session, for 1 h"
    )


def test_a_word_that_is_redacted_is_offered_by_no_facts(root: Path) -> None:
    token = (
        "ghp_"
        + base64.b64encode(hashlib.sha256(b"invented").digest())
        .decode()
        .translate({43: 97, 47: 98})[:36]
    )
    offers = runs(f"pytest --token={token}")[1]
    assert offers == ["Also exactly these arguments for this session, for 1 h"]


def test_words_that_are_split_otherwise_are_other_words(root: Path) -> None:
    assert runs("make 'a b'", "make a b")[0] == []
