"""The pages hold together: tutorials do what they show, commands and links exist, and the site
builds strictly.
"""

from __future__ import annotations

import importlib.util
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

from agenttool_otel import Governor
from agenttool_otel.cli.main import app

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


TUTORIALS = tool("tutorials")
TEXTS = {page: page.read_text("utf-8") for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))}
COMMANDS = sorted(
    {
        line
        for page, text in TEXTS.items()
        if page not in TUTORIALS.PAGES  # those are run
        for block in re.findall(
            r"^```(?:console|bash|sh)?[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
        )
        for line in re.findall(r"(?:^\$ |^|&& |\(|; )(agenttool [^\n|;&)]*)", block, re.MULTILINE)
    }
)


@pytest.mark.slow  # each page starts some twenty programs
@pytest.mark.parametrize("page", TUTORIALS.PAGES, ids=lambda page: page.name)
def test_a_tutorial_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    TUTORIALS.run(page, tmp_path)


def test_what_a_tutorial_starts_ends_with_it(tmp_path: Path) -> None:
    page, pipe = tmp_path / "page.md", tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    page.write_text("```console\n$ (sleep infinity > pipe 2> err &)\n```\n", "utf-8")
    TUTORIALS.run(page, tmp_path)
    # the end of a pipe is there once all who write to it are gone
    ended, _, _ = select.select([reader], [], [], 10)
    os.close(reader)
    assert ended


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "..."], ["a", "b", "c"], True), (["a", "...", "d"], ["a", "b", "c"], False), (["x…z"], ["xyz"], True),
        (["a"], ["a", "b"], False), ([], ["a"], False), (["a.c"], ["abc"], False), (["...", "a"], ["a"], True),
    ],
)  # fmt: skip
def test_a_tutorial_that_shows_another_thing_fails(
    shown: list[str], printed: list[str], same: bool
) -> None:
    assert TUTORIALS.fits(shown, printed) is same


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_pages_exists(command: str) -> None:
    words = re.sub(r"\s+#.*", "", command).split()[1:]
    at = typer.main.get_command(app)
    while words and hasattr(at, "get_command"):
        found = at.get_command(None, words[0])  # type: ignore[arg-type]
        assert found is not None or words[0].startswith("-"), words[0]
        if found is None:
            break
        at, words = found, words[1:]
    known = {option for parameter in at.params for option in parameter.opts}
    for option in re.findall(r"(?<=\s)--?[a-z][\w-]*", " " + " ".join(words)):
        assert option in known or option == "--help", option


def test_every_link_leads_somewhere() -> None:
    checker = tool("check_links")
    assert [problem for page in checker.PAGES for problem in checker.problems(page)] == []


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checker = tool("check_links")
    monkeypatch.setattr(checker, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text(
        "# One head\n[x](b.md) [y](#one-head) [z](#two) `[q](no.md)`\n", "utf-8"
    )
    assert len(checker.problems(tmp_path / "a.md")) == 2


def test_a_link_from_the_site_to_a_file_outside_of_it_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = tool("check_links")
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(checker, "ROOT", tmp_path)
    monkeypatch.setattr(checker, "DOCS", docs)
    (tmp_path / "README.md").write_text("[a page](docs/page.md)\n", "utf-8")
    (docs / "page.md").write_text("[out](../README.md) [in](page.md)\n", "utf-8")
    assert checker.problems(tmp_path / "README.md") == []
    assert checker.problems(docs / "page.md") == [
        "docs/page.md: ../README.md is outside of the site"
    ]


@pytest.mark.parametrize("page", ["using.md", "policies.md"])
def test_the_rules_of_a_page_load(page: str, tmp_path: Path) -> None:
    for number, block in enumerate(
        re.findall(r"```rego\n(.*?)```", TEXTS[ROOT / "docs" / page], re.DOTALL)
    ):
        if "custom_test" in block:
            continue  # run by tests/bundle
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "own.rego").write_text(block, "utf-8")
        Governor(extension=folder).close()


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tutorials" / "langchain.html").exists()
