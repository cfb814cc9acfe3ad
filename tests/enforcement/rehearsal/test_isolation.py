"""A rehearsed command reads no secret, connects to nothing, writes nowhere else and ends in time."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest
from rehearsal_support import PYTHON

from agenttool_otel.enforcement.rehearsal import (
    Rehearsals,
    RehearsalUnavailable,
    RehearsedRun,
    SealedLayer,
)
from agenttool_otel.enforcement.rehearsal.masks import secrets_of_home


def rehearsed(
    rehearsals: Rehearsals, root: Path, line: str, **options: object
) -> tuple[RehearsedRun, SealedLayer]:
    with rehearsals.open([root]) as layer:
        run = layer.run(["sh", "-c", line], cwd=root, **options)  # type: ignore[arg-type]
        return run, layer.finish()


@pytest.mark.parametrize("name", [".env", "id_rsa", ".ssh/config"])
def test_a_secret_in_a_root_is_masked(rehearsals: Rehearsals, root: Path, name: str) -> None:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("hidden")
    run, sealed = rehearsed(rehearsals, root, f"cat {name}; cp {name} copy; tar c . | cat")
    assert b"hidden" not in run.stdout + run.stderr
    assert all(change.path != str(path) for change in sealed.effects.changes)


def test_secrets_of_a_home_and_of_the_host_are_masked(
    rehearsals: Rehearsals, root: Path, tmp_path: Path
) -> None:
    home = root.parent / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("hidden")
    (home / ".netrc").write_text("hidden")
    with rehearsals.open([root, home], places=[home]) as layer:
        run = layer.run(
            ["sh", "-c", f"cat {home}/.aws/credentials {home}/.netrc /etc/shadow"], cwd=root
        )
    assert run.stdout == b""
    assert run.exit_code != 0


def test_loops_of_links_in_a_home_hide_no_secret(tmp_path: Path) -> None:
    (tmp_path / "secret_token.txt").write_text("hidden")
    for number in range(20):
        (tmp_path / f"loop{number}").symlink_to(f"loop{number}")
    assert str(tmp_path / "secret_token.txt") in secrets_of_home(tmp_path)


def test_what_the_caller_names_is_masked(rehearsals: Rehearsals, root: Path) -> None:
    with rehearsals.open([root], masked=[root / "sub"]) as layer:
        assert layer.run(["ls", "sub"], cwd=root).stdout == b""
        assert layer.run(["sh", "-c", "echo > sub/x"], cwd=root).exit_code != 0


def test_the_state_directory_is_hidden(rehearsals: Rehearsals, root: Path, tmp_path: Path) -> None:
    run, _ = rehearsed(rehearsals, root, f"ls {tmp_path}/state")
    assert run.stdout == b""


def test_a_walk_that_is_cut_refuses(
    rehearsals: Rehearsals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsals._walk, "_limit", 2)
    with pytest.raises(RehearsalUnavailable, match="secrets may be among them"):
        rehearsals.open([root])


def test_nothing_is_written_outside_of_the_roots(
    rehearsals: Rehearsals, root: Path, tmp_path: Path
) -> None:
    name = f"{tmp_path.name}-{os.getpid()}"
    outside = tmp_path.parent / name
    run, sealed = rehearsed(
        rehearsals,
        root,
        f"mkdir {outside}; echo > /etc/written; echo > /tmp/{name}; cat /tmp/{name}",
    )
    assert not outside.exists()
    assert not Path("/etc/written").exists()
    assert not Path("/tmp", name).exists()
    assert b"/etc/written" in run.stderr
    assert sealed.effects.changes == ()


def test_a_hard_link_leads_nowhere(rehearsals: Rehearsals, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    os.link(outside, root / "inside")
    rehearsed(rehearsals, root, "echo > inside")
    assert outside.read_text() == "kept"


CONNECT = """
import socket, sys
for kind, call in ((socket.SOCK_STREAM, "connect"), (socket.SOCK_DGRAM, "sendto")):
    one = socket.socket(socket.AF_INET, kind)
    try:
        if call == "connect":
            one.connect(("127.0.0.1", int(sys.argv[1])))
        else:
            one.sendto(b"x", ("203.0.113.7", 53))
        print("connected")
    except OSError as error:
        print(type(error).__name__)
"""


def test_no_connection_is_made_and_each_is_counted(rehearsals: Rehearsals, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        port = listener.getsockname()[1]
        with rehearsals.open([root]) as layer:
            run = layer.run([PYTHON, "-S", "-c", CONNECT, str(port)], cwd=root)
            effects = layer.finish().effects
        with pytest.raises(TimeoutError):
            listener.accept()
    assert b"connected" not in run.stdout
    if not effects.connections_counted:
        pytest.skip("this host has no seccomp notifications")
    assert [(one.host, one.port, one.family) for one in effects.connections] == [
        ("127.0.0.1", port, "inet"),
        ("203.0.113.7", 53, "inet"),
    ]


def test_a_socket_of_the_host_is_not_reached(rehearsals: Rehearsals, root: Path) -> None:
    place = Path.home() / f".rehearsal-{os.getpid()}.sock"
    try:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(place))
    except OSError:
        pytest.skip("no socket can be made in the home directory")
    try:
        listener.listen()
        code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(place)!r})"
        with rehearsals.open([root]) as layer:
            # made after the sockets that are there were masked
            run = layer.run([PYTHON, "-S", "-c", code], cwd=root)
            late = layer.finish().effects
    finally:
        listener.close()
        place.unlink()
    assert run.exit_code == 1
    if b"FileNotFound" in run.stderr:
        return  # a home below /tmp, which is private in the layer: not even the name is there
    assert b"ConnectionRefused" in run.stderr or b"Permission" in run.stderr
    if late.connections_counted:
        assert [one.family for one in late.connections] == ["unix"]


def test_a_server_inside_can_be_reached_inside(rehearsals: Rehearsals, root: Path) -> None:
    code = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).sendall(b"x")
print(server.accept()[0].recv(1))
"""
    with rehearsals.open([root]) as layer:
        run = layer.run([PYTHON, "-S", "-c", code], cwd=root)
    assert run.stdout == b"b'x'\n"


def test_a_background_child_ends_with_the_command(rehearsals: Rehearsals, root: Path) -> None:
    started = time.monotonic()
    run, _ = rehearsed(rehearsals, root, "setsid sleep 987 & echo started")
    assert run.stdout == b"started\n"
    assert time.monotonic() - started < 60


def test_a_time_limit_kills_all_of_it(rehearsals: Rehearsals, root: Path) -> None:
    run, sealed = rehearsed(rehearsals, root, "echo > x; sleep 987 & sleep 986", timeout=2)
    assert run.timed_out
    assert run.exit_code == 137
    assert len(sealed.effects.changes) == 1


def test_output_is_kept_to_its_limit(rehearsals: Rehearsals, root: Path) -> None:
    run, _ = rehearsed(rehearsals, root, "yes | head -c 100000", output_limit=10)
    assert (len(run.stdout), run.truncated, run.exit_code) == (10, True, 0)


def test_input_environment_and_exit_status_are_passed(rehearsals: Rehearsals, root: Path) -> None:
    run, _ = rehearsed(
        rehearsals, root, 'cat; echo "$ONE"; exit 7', input=b"in\n", env={"ONE": "1"}
    )
    assert (run.stdout, run.exit_code) == (b"in\n1\n", 7)


def test_secrets_of_the_environment_stay_outside(
    rehearsals: Rehearsals, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "hidden")
    assert b"hidden" not in rehearsed(rehearsals, root, "env")[0].stdout


def test_a_program_that_is_missing_has_status_127(rehearsals: Rehearsals, root: Path) -> None:
    with rehearsals.open([root]) as layer:
        assert layer.run(["no-such-program"], cwd=root).exit_code == 127


def test_a_command_keeps_few_rights(rehearsals: Rehearsals, root: Path) -> None:
    run, _ = rehearsed(rehearsals, root, "grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    held, new = run.stdout.decode().split("\n")[:2]
    assert int(held.split()[1], 16) & ~0xFB == 0
    assert new.split()[1] == "1"


def test_a_secret_that_is_gone_meanwhile_is_no_failure(rehearsals: Rehearsals, root: Path) -> None:
    secret = root / "id_rsa"
    secret.write_text("hidden")
    with rehearsals.open([root]) as layer:
        secret.unlink()
        run = layer.run(["true"], cwd=root)
    assert run.exit_code == 0, run.stderr
