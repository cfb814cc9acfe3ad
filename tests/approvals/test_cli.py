"""``agenttool approvals``: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from approval_helpers import ARGS, a_request, no, yes
from typer.testing import CliRunner

from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.cli.approvals import EXIT_CODES, app
from agenttool_otel.names import ApprovalStatus as Status

AS_ADA = ["--as", "user:ada", "--role", "operator", "--yes"]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    target = tmp_path / "approvals.db"
    monkeypatch.setenv("AGENTTOOL_APPROVALS_URL", str(target))
    monkeypatch.setenv("COLUMNS", "200")
    return target


@pytest.fixture
def store(path: Path) -> ApprovalStore:
    return ApprovalStore(path)


def run(*arguments: str, input: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=input)


def test_requests_are_listed_as_a_table_and_as_json(store: ApprovalStore) -> None:
    first = store.create(a_request(message="hid\u202eden"), ARGS)
    second = store.create(a_request(), ARGS)
    store.answer(second.request_id, no())
    table = run("list")
    assert table.exit_code == 0
    assert first.request_id in table.output
    assert second.request_id not in table.output
    assert r"hid\u{202e}den" in table.output
    [only] = json.loads(run("list", "--json").output)
    assert only["request_id"] == first.request_id
    assert len(json.loads(run("list", "--status", "all", "--json").output)) == 2
    assert run("list", "--status", "odd").exit_code == EXIT_CODES["usage"]


def test_the_list_has_the_question_and_says_what_it_leaves_out(store: ApprovalStore) -> None:
    for number in range(3):
        store.create(a_request(question=f"path is a file of team {number}.", session_id=None), ARGS)
    shown = run("list", "--limit", "2").output
    assert "path is a file of team 0." in shown
    assert "2 of 3; --limit shows more." in shown
    assert "--limit" not in run("list").output


@pytest.mark.parametrize(
    "options",
    [
        ["--identity-header", "X-Forwarded-User"],
        ["--identity-header", "X-Forwarded-User", "--proxy-secret", "short"],
        ["--identity-header", "X-Forwarded-User", "--proxy-address", "127.0.0.1"],
        ["--roles-header", "X-Forwarded-Groups"],
    ],
)
def test_a_page_that_would_believe_anybody_is_not_served(path: Path, options: list[str]) -> None:
    assert run("serve", "--port", "0", *options).exit_code == EXIT_CODES["usage"]


def test_a_request_is_shown_by_its_id_or_its_invocations(store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    for ref in (request.request_id, request.invocation_id):
        assert "notes.txt" in run("show", ref).output
        assert json.loads(run("show", ref, "--json").output)["args_digest"] == request.args_digest
    assert run("show", "appr_none").exit_code == EXIT_CODES["not_found"]


def test_a_request_is_found_by_an_unambiguous_start_of_its_id(store: ApprovalStore) -> None:
    one, two = (store.create(a_request(), ARGS) for _ in range(2))
    same = next(n for n in range(len(one.request_id)) if one.request_id[n] != two.request_id[n])
    start = one.request_id[: max(8, same + 1)]
    assert json.loads(run("show", start, "--json").output)["request_id"] == one.request_id
    assert run("show", one.request_id[:4]).exit_code == EXIT_CODES["not_found"]
    shared = one.request_id[:8]
    assert run("show", shared).exit_code == (
        EXIT_CODES["usage"] if two.request_id.startswith(shared) else EXIT_CODES["ok"]
    )


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["show", "appr_none"],
        ["approve", "appr_none", "-y"],
        ["verify"],
        ["grants"],
        ["revoke", "gr_none"],
    ],
)
def test_a_store_that_is_not_there_is_told_and_not_made(path: Path, command: list[str]) -> None:
    done = run(*command)
    assert done.exit_code == EXIT_CODES["store_error"]
    assert "no approval store" in done.output
    assert list(path.parent.iterdir()) == []


def test_an_id_is_never_broken_over_lines(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = store.create(a_request(message="a reason " * 20), ARGS)
    for columns in ("80", ""):  # a narrow window, and a pipe
        monkeypatch.setenv("COLUMNS", columns)
        assert request.request_id in run("list").output


def test_a_request_is_approved_and_rejected(store: ApprovalStore) -> None:
    one, two = (store.create(a_request(), ARGS) for _ in range(2))
    assert run("approve", one.request_id, *AS_ADA).exit_code == 0
    assert (
        json.loads(run("reject", two.invocation_id, "-r", "no need", *AS_ADA, "--json").output)[
            "status"
        ]
        == "rejected"
    )
    assert store.get(one.request_id).answered_by == "user:ada"
    assert store.get(two.request_id).answer_reason == "no need"


def test_arguments_are_edited_from_a_file_and_standard_input(
    store: ApprovalStore, tmp_path: Path
) -> None:
    edited = {"path": "other.txt", "content": "hello"}
    file = tmp_path / "edit.json"
    file.write_text(json.dumps(edited))
    for source, typed in ((str(file), None), ("-", json.dumps(edited))):
        request = store.create(a_request(), ARGS)
        assert (
            run("approve", request.request_id, "--edit", source, *AS_ADA, input=typed).exit_code
            == 0
        )
        assert store.stored_call(request.request_id).arguments == edited
    request = store.create(a_request(), ARGS)
    assert (
        run("approve", request.request_id, "--edit", "-", *AS_ADA, input="[").exit_code
        == EXIT_CODES["conflict"]
    )
    assert (
        run("approve", request.request_id, "--edit", "/nowhere", *AS_ADA).exit_code
        == EXIT_CODES["usage"]
    )
    assert store.get(request.request_id).status is Status.PENDING


def test_a_suggestion_is_remembered_listed_and_revoked(store: ApprovalStore) -> None:
    request = store.create(a_request(suggested_updates=[{"type": "grant"}]), ARGS)
    assert run("approve", request.request_id, "--remember", "1", *AS_ADA).exit_code == 0
    [grant] = json.loads(run("grants", "--json").output)
    assert grant["tool_id"] in run("grants").output
    assert run("revoke", grant["grant_id"]).exit_code == 0
    assert json.loads(run("grants", "--json").output) == []


def test_the_exit_code_says_what_went_wrong(store: ApprovalStore, path: Path) -> None:
    request = store.create(a_request(), ARGS)
    assert (
        run("approve", request.request_id, "--as", "user:ada", "--yes").exit_code
        == EXIT_CODES["conflict"]
    )
    assert (
        run("approve", request.request_id, "--as", "agent:support", *AS_ADA[2:]).exit_code
        == EXIT_CODES["conflict"]
    )
    # no terminal, no --yes
    assert run("approve", request.request_id).exit_code == EXIT_CODES["usage"]
    assert run("list", "--url", "mysql://x/y").exit_code == EXIT_CODES["usage"]
    short = store.create(a_request(ttl=0.01), ARGS)
    time.sleep(0.05)  # a fast machine answers before it has expired
    assert run("approve", short.request_id, *AS_ADA).exit_code == EXIT_CODES["expired"]
    assert store.get(request.request_id).status is Status.PENDING
    store.close()
    path.write_bytes(b"no database" * 500)
    assert run("list").exit_code == EXIT_CODES["store_error"]


def test_without_a_store_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTTOOL_APPROVALS_URL", raising=False)
    result = run("list")
    assert result.exit_code == EXIT_CODES["usage"]
    assert "AGENTTOOL_APPROVALS_URL" in result.output


def between_looks(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Run one act before each of the pauses that the command makes, however slow the machine is."""
    left, pause = iter(acts), time.sleep

    def sleep(seconds: float) -> None:
        next(left, lambda: None)()
        pause(seconds)

    monkeypatch.setattr(time, "sleep", sleep)


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("act", "code", "timeout"),
    [
        (lambda store, one: store.answer(one.request_id, yes()), "ok", "60"),
        (lambda store, one: store.answer(one.request_id, no()), "conflict", "60"),
        (lambda store, one: store.cancel(one.request_id, "x"), "conflict", "60"),
        (lambda store, one: None, "timeout", "0.2"),
    ],
)
def test_watching_one_request_tells_its_end_by_the_exit_code(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch, act: Any, code: str, timeout: str
) -> None:
    request = store.create(a_request(), ARGS)
    between_looks(monkeypatch, lambda: act(store, request))
    result = run("watch", request.request_id, "--timeout", timeout, "--interval", "0.05")
    assert result.exit_code == EXIT_CODES[code]


def test_watching_all_prints_what_happens(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_looks(monkeypatch, lambda: store.create(a_request(), ARGS), press_ctrl_c)
    result = run("watch", "--timeout", "60", "--interval", "0.05", "--json")
    [line] = result.output.splitlines()
    assert json.loads(line)["kind"] == "created"


def test_the_evidence_is_verified(store: ApprovalStore) -> None:
    request = store.create(a_request(), ARGS)
    assert run("verify").exit_code == 0
    assert json.loads(run("verify", "--json").output)["entries"] == 1
    with store._db.write() as tx:
        from agenttool_otel.approvals.store.schema import log

        tx.connection.execute(log.update().values(request_id="forged"))
    result = run("verify")
    assert result.exit_code == EXIT_CODES["store_error"]
    assert "broken at entry 1" in result.output
    assert request.request_id


def test_the_key_is_changed_and_the_log_goes_on_from_its_anchor(
    store: ApprovalStore, path: Path
) -> None:
    request = store.create(a_request(), ARGS)
    result = run("rotate-key")
    assert result.exit_code == 0, result.output
    anchor = result.output.split()[-1]
    assert run("verify", "--anchor", anchor).exit_code == 0
    assert run("verify", "--anchor", "1:" + "0" * 64).exit_code == EXIT_CODES["store_error"]
    assert run("verify", "--anchor", "nonsense").exit_code == EXIT_CODES["usage"]
    assert run("show", request.request_id).exit_code == 0
    assert run("rotate-key", "--new-key-file", str(path.parent / "new.key")).exit_code == 0
    assert run("show", request.request_id).exit_code == 0


def test_serve_prints_the_link_and_serves_until_interrupted(
    store: ApprovalStore, path: Path
) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from agenttool_otel.cli.approvals import app; app()",
            "serve",
            "--port",
            "0",
        ],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "AGENTTOOL_APPROVALS_URL": str(path)},
        # a suite started with "&" hands down an ignored SIGINT, and Python then leaves it ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    link = ""
    for line in process.stderr:
        if found := re.search(r"http://\S+", line):
            link = found.group()
            break
    address = urlsplit(link)
    assert address.fragment.startswith("token=")
    assert address.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=60)
    connection.request("GET", "/login")
    assert connection.getresponse().status == 200
    connection.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    process.stderr.close()


def test_serve_without_its_extra_says_which_is_missing(store: ApprovalStore, path: Path) -> None:
    code = "import sys; sys.modules['starlette'] = None\nfrom agenttool_otel.cli.approvals import app; app()"
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "AGENTTOOL_APPROVALS_URL": str(path)},
    )
    assert done.returncode == EXIT_CODES["usage"]
    assert "pip install 'agenttool-otel[web]'" in done.stderr
    assert "Traceback" not in done.stderr
