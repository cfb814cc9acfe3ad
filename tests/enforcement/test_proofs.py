"""What makes a profile available, and what makes it unavailable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel import SandboxUnavailable
from agenttool_otel.enforcement import (
    available,
    canaries,
    hold,
    privileges,
    proofs,
    seccomp,
    thread,
)
from agenttool_otel.enforcement.mechanism import Landlock
from agenttool_otel.values.tables import load_table

PROOF = available()["read"]
pytestmark = pytest.mark.skipif(not PROOF.proven, reason=PROOF.reason)


class Harmless(Landlock):
    """A mechanism that ends no process: with a hole, its signals could reach others."""

    def sweep(self, scratch: str, since: Any) -> bool:
        return True


class Nothing(Harmless):
    def confine(self, prepared: Any, scratch: str) -> None: ...


class OnlyFilter(Harmless):
    def confine(self, prepared: Any, scratch: str) -> None:
        from agenttool_otel.enforcement.landlock import set_no_new_privs

        set_no_new_privs()
        seccomp.install(0)


class Everything(Landlock):
    def prepare(self, masked: frozenset[Path]) -> Any:
        return super().prepare(masked | {Path("/tmp"), Path("/usr")})


class Broken(Harmless):
    def confine(self, prepared: Any, scratch: str) -> None:
        raise OSError(1, "no")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    proofs._proofs.clear()
    yield
    seccomp._program.cache_clear()
    proofs._proofs.clear()


def test_this_host_has_proven_it() -> None:
    proof = proofs.prove(Landlock(), "read")
    assert (proof.proven, proof.mechanism, proof.reason) == (True, "landlock", "")


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (Nothing(), "a write outside"),
        (OnlyFilter(), "a write outside"),
        (Everything(), "refused"),
        (Broken(), "no"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_mechanism_with_a_hole_proves_nothing(mechanism: Landlock, reason: str) -> None:
    proof = proofs.prove(mechanism, "read")
    assert not proof.proven
    assert reason in proof.reason


@pytest.mark.parametrize(
    ("group", "canary"),
    [("modes_and_owners", "a change of mode"), ("connections", "a datagram by UDP")],
)
def test_a_group_of_calls_left_out_is_noticed(
    group: str, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = load_table("agenttool_otel.enforcement", "data/refused_calls.toml")
    del table[group]
    monkeypatch.setattr(seccomp, "load_table", lambda *_: table)
    seccomp._program.cache_clear()
    assert canary in proofs.prove(Harmless(), "read").reason


def test_memory_that_is_not_hidden_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def open_memory() -> Iterator[None]:
        yield

    monkeypatch.setattr(privileges, "hidden_memory", open_memory)
    assert "the parent's memory" in proofs.prove(Harmless(), "read").reason


def test_a_canary_that_fails_without_the_profile_proves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(101, "no network")

    monkeypatch.setattr(canaries, "_send", fail)
    assert "fails without the profile" in proofs.prove(Landlock(), "read").reason


def test_what_can_not_be_tried_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(canaries.socket, "AF_UNIX")
    assert "AttributeError" in proofs.prove(Landlock(), "read").reason


def test_without_a_proof_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MECHANISMS", {"read": Nothing()})
    ran: list[int] = []
    with pytest.raises(SandboxUnavailable, match="a write outside"):
        hold("read", ran.append, (1,))
    assert ran == []


@pytest.mark.parametrize("module", ["py_landlock", "pyseccomp"])
def test_without_a_library_it_is_unavailable(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("agenttool_otel.enforcement.landlock", "agenttool_otel.enforcement.seccomp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.delattr(
            sys.modules["agenttool_otel.enforcement"], name.rpartition(".")[2], raising=False
        )
    monkeypatch.setitem(sys.modules, module, None)
    assert module in available()["read"].reason


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_an_older_kernel_has_no_profile(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import py_landlock

    from agenttool_otel.enforcement import landlock

    landlock.check.cache_clear()
    monkeypatch.setattr(py_landlock, "get_abi_version", lambda: version)
    assert "requires Landlock" in available()["read"].reason


def test_a_kernel_without_landlock_has_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    import py_landlock

    def missing() -> int:
        raise py_landlock.LandlockNotAvailableError("none")

    from agenttool_otel.enforcement import landlock

    landlock.check.cache_clear()
    monkeypatch.setattr(py_landlock, "get_abi_version", missing)
    assert "LandlockNotAvailableError" in available()["read"].reason


def test_an_old_libseccomp_has_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyseccomp

    monkeypatch.setattr(pyseccomp, "resolve_syscall", lambda *_: -1)
    seccomp._program.cache_clear()
    assert "does not know the system call" in available()["read"].reason


def test_canaries_run_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = available()
    monkeypatch.setattr(proofs, "prove", None)
    assert available() == first


def test_a_walk_that_would_be_cut_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from agenttool_otel.enforcement import readable

    monkeypatch.setattr(readable, "_MOST_RULES", 5)
    ran: list[int] = []
    with pytest.raises(SandboxUnavailable, match="too many places"):
        thread.hold_by(Landlock(), "read", lambda: ran.append(1), [tmp_path / "never seen"])
    assert ran == []


def test_where_no_thread_can_be_started_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    available()

    def fail(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(thread.threading.Thread, "start", fail)
    with pytest.raises(SandboxUnavailable, match="can't start"):
        hold("read", len, ("",))
