"""What the approval tests share; a plain module, imported by name."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.store.schema import requests
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.names import ApprovalLogKind
from agenttool_otel.values.ids import new_id

ARGS = {"path": "notes.txt", "content": "hello"}


class FakeClock:
    """A wall clock that the test sets; its ticks stand still, so that only the wall counts."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def ticks(self) -> float:
        return 1000.0

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def a_request(
    arguments: dict[str, Any] | None = None, *, ttl: float | None = 600, **values: Any
) -> ApprovalRequest:
    created = datetime.now(UTC)
    base: dict[str, Any] = {
        "invocation_id": new_id("inv"),
        "tool_id": "local.files/write_file",
        "tool_name": "write_file",
        "declaration_digest": "sha256:tool-v1",
        "args_digest": args_digest(ARGS if arguments is None else arguments),
        "actor_id": "agent:support",
        "tenant": "acme",
        "session_id": "s-1",
        "policy_revision": "rev-1",
        "rule_ref": "agenttool.rules.approval.write",
        "message": "Writing files needs approval.",
        "arguments_preview": dict(ARGS if arguments is None else arguments),
        "approver_roles": ["operator"],
        "created_at": created,
        "expires_at": None if ttl is None else created + timedelta(seconds=ttl),
    }
    return ApprovalRequest(**{**base, **values})


def stored_request(
    store: ApprovalStore, arguments: dict[str, Any] | None = None, **values: Any
) -> ApprovalRequest:
    """Store a request about some arguments, and return it."""
    given = ARGS if arguments is None else arguments
    return store.create(a_request(given, **values), given)


def yes(**values: Any) -> ApprovalAnswer:
    return ApprovalAnswer(
        **{"approved": True, "answered_by": "user:ada", "roles": ("operator",), **values}
    )


def no(**values: Any) -> ApprovalAnswer:
    return yes(**{"approved": False, "reason": "too risky", **values})


def bindings(request: ApprovalRequest, **changes: Any) -> dict[str, Any]:
    return {
        "args_digest": request.args_digest,
        "actor_id": request.actor_id,
        "tenant": request.tenant,
        "session_id": request.session_id,
        "declaration_digest": request.declaration_digest,
        "policy_revision_seen": request.policy_revision,
        **changes,
    }


def held_by(store: ApprovalStore, owner: str, request_id: str | None = None) -> None:
    """Make another process the holder of the store's claims, as if it had taken them over."""
    with store._db.write() as tx:
        for row in tx.connection.execute(
            select(requests).where(requests.c.claim_id.is_not(None))
        ).all():
            if request_id in {None, row.request_id}:
                tx.update(
                    requests,
                    row,
                    {"claim_owner": owner},
                    ApprovalLogKind.CLAIM_TAKEN_OVER,
                    row.request_id,
                )


def postgres_binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return found[0].parent if found else None


def _as_unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root; run it as its own user then."""
    if os.geteuid() != 0:
        return {}
    import pwd

    user = pwd.getpwnam(
        "postgres" if "postgres" in {entry.pw_name for entry in pwd.getpwall()} else "nobody"
    )
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def running_postgres() -> Iterator[str]:
    """A PostgreSQL server of this test run alone; gives its URL without a database name."""
    binaries = postgres_binaries()
    assert binaries is not None
    run_as = _as_unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="agt-pg-", dir="/tmp"))
    if run_as:
        os.chown(folder, run_as["user"], run_as["group"])
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run(
            [str(binaries / command[0]), *command[1:]],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=120,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
            **run_as,
        )

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    try:
        run("initdb", "-D", str(data), "-U", "agt", "-A", "trust", "-E", "UTF8", "--no-sync")
        # the tests kill clients, never the server's machine, so its flushes would only cost time
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} "
            "-c max_connections=60 -c fsync=off"
        )
        run("pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://agt@127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
