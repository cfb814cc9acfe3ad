"""Profiles of an operator's own: read from a file whole, proven, compared, and held."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from rehearsed_calls import Place, shell

from agenttool_otel import ConfigurationError, Governor, Limits, ToolDenied, run_command
from agenttool_otel.enforcement import available, hold, oblige_commands, own, proofs
from agenttool_otel.enforcement.own import OwnLimits, OwnProfile, define_profiles, strictest_of
from agenttool_otel.enforcement.profile_file import read_profiles
from agenttool_otel.enforcement.rehearsal.proof import rehearsal_failure
from agenttool_otel.enforcement.types import Proof
from agenttool_otel.errors import PolicyEvaluationError, SandboxUnavailable
from agenttool_otel.names import Attr, ErrorClass, FailClosedCause, GenAI, SandboxProfile
from agenttool_otel.policy.normalise import normalise
from agenttool_otel.policy.types import EngineAnswer, SandboxDuty
from agenttool_otel.testing import Capture, capture, decision
from function_engine import FunctionEngine

READ, REHEARSE, WRITE = SandboxProfile
Open = Callable[..., Capture]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Profiles that other tests do not see."""
    yield
    for name in own.own_profiles():
        proofs._proofs.pop(name, None)
    own._own.clear()


@pytest.fixture
def readable() -> None:
    proof = available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A place that a profile masks, and that is no key and no credential."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "plan.txt").write_text("secret plan", "utf-8")
    return folder


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens Governors whose policy obliges a sandbox, with a file of profiles."""
    contexts = []

    def open_one(
        profiles: dict[str, Any], sandbox: Any, seen: list[Any] | None = None, **options: Any
    ) -> Capture:
        def decide(document: Any) -> Any:
            if seen is not None:
                seen.append(document)
            return decision("allow", obligations={"sandbox": sandbox})

        context = capture(
            policy=FunctionEngine(decide),
            sandbox_profiles=profile_file(tmp_path, profiles),
            **options,
        )
        contexts.append(context)
        return context.__enter__()

    yield open_one
    for context in reversed(contexts):
        context.__exit__(None, None, None)


def profile_file(folder: Path, profiles: Any) -> str:
    file = folder / "profiles.json"
    file.write_text(json.dumps(profiles), "utf-8")
    return str(file)


def read_notes(path: str) -> str:
    """Read a file."""
    return Path(path).read_text("utf-8")


# --- the file -------------------------------------------------------------------------------------


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    stated = {
        "ci": {"base": "write", "masked": ["/srv/data"], "limits": {"seconds": 5}},
        "look": {"base": "read", "network": "none", "limits": {"processes": 8}},
    }
    assert read_profiles(profile_file(tmp_path, stated)) == {
        "ci": OwnProfile(WRITE, (Path("/srv/data"),), OwnLimits(seconds=5)),
        "look": OwnProfile(READ, limits=OwnLimits(processes=8)),
    }


@pytest.mark.parametrize(
    ("stated", "word"),
    [
        ({"ci": {"base": "read", "mask": []}}, "mask"),
        ({"ci": {"base": "read", "limits": {"second": 5}}}, "second"),
        ({"ci": {"base": "all"}}, "base"),
        ({"ci": {}}, "base"),
        ({"ci": {"base": "write", "network": ["pypi.org"]}}, "network"),
        ({"ci": {"base": "read", "masked": ["notes"]}}, "absolute"),
        ({"ci": {"base": "read", "masked": ["/"]}}, "not / itself"),
        ({"ci": {"base": "read", "limits": {"seconds": 0}}}, "more than 0"),
        ({"ci": {"base": "write", "limits": {"processes": 8}}}, "layer"),
        ({"CI": {"base": "read"}}, "CI"),
        ([], "an object"),
    ],
    ids=json.dumps,
)
def test_a_profile_that_is_not_understood_is_refused(
    stated: Any, word: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=word):
        Governor(sandbox_profiles=profile_file(tmp_path, stated))
    assert own.own_profiles() == {}


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="FileNotFoundError"):
        Governor(sandbox_profiles=str(tmp_path / "none.json"))


@pytest.mark.parametrize("name", ["read", "rehearse", "write"])
def test_a_stock_profile_stays_what_it_is(name: str) -> None:
    with pytest.raises(ConfigurationError, match="stock"):
        define_profiles({"ci": OwnProfile(READ), name: OwnProfile(WRITE)})
    assert own.own_profiles() == {}


def test_a_name_means_one_profile() -> None:
    define_profiles({"ci": OwnProfile(READ)})
    define_profiles({"ci": OwnProfile(READ)})
    with pytest.raises(ConfigurationError, match="otherwise"):
        define_profiles({"ci": OwnProfile(WRITE)})


# --- which is stricter ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "strictest"),
    [
        (["write", "read", "rehearse"], "read"),
        (["fast", "write"], "fast"),
        (["fast", "slow"], "fast"),
        (["fast", "read"], None),
        (["fast", "notes"], None),
        (["fast", "notes", "both"], "both"),
        (["notes", "inside"], "notes"),
        (["read", "unknown"], None),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else str(value),
)
def test_the_strictest_holds_in_whatever_order(names: list[str], strictest: str | None) -> None:
    define_profiles(
        {
            "fast": OwnProfile(WRITE, limits=OwnLimits(seconds=5)),
            "slow": OwnProfile(WRITE, limits=OwnLimits(seconds=50)),
            "notes": OwnProfile(WRITE, (Path("/srv/notes"),)),
            "inside": OwnProfile(WRITE, (Path("/srv/notes/deep"),)),
            "both": OwnProfile(READ, (Path("/srv"),), OwnLimits(seconds=5)),
        }
    )
    assert strictest_of(names) == strictest
    if "unknown" in names:
        return
    for order in itertools.permutations(names):
        joined = normalise(answer({"profiles": list(order)}), engine="e").sandbox
        assert joined is not None
        assert (joined.unordered or joined.name) == (strictest or tuple(sorted(names)))


def answer(sandbox: Any) -> EngineAnswer:
    return EngineAnswer({"behavior": "allow", "obligations": {"sandbox": sandbox}}, "r", None)


@pytest.mark.parametrize(
    "sandbox",
    [
        {"profile": "ci"},
        {"profiles": []},
        {"profiles": ["read", "ci"]},
        {"profiles": "read"},
        {"profile": "read", "profiles": ["read"]},
    ],
    ids=json.dumps,
)
def test_an_unknown_profile_is_no_decision(sandbox: Any) -> None:
    with pytest.raises(PolicyEvaluationError) as caught:
        normalise(answer(sandbox), engine="e")
    assert caught.value.cause is FailClosedCause.MALFORMED


def test_a_profile_that_is_gone_has_no_order() -> None:
    gone = SandboxDuty(READ, own="gone")
    assert gone.joined(SandboxDuty(WRITE)).unordered == ("gone", "write")


# --- held -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("readable")
def test_what_a_profile_masks_can_not_be_read(notes: Path) -> None:
    define_profiles({"ci": OwnProfile(READ, (notes,))})
    file = str(notes / "plan.txt")
    assert hold("read", read_notes, (file,)).value == "secret plan"
    held = hold("ci", read_notes, (file,))
    assert isinstance(held.exception, PermissionError)
    assert [each.kind for each in held.violations] == ["read"]


@pytest.mark.usefixtures("readable")
def test_a_mask_that_does_not_hold_proves_nothing(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenttool_otel.enforcement.thread.masked_by", lambda _: frozenset())
    define_profiles({"ci": OwnProfile(READ, (notes,))})
    assert "a place that it masks" in available()["ci"].reason
    with pytest.raises(SandboxUnavailable, match="ci"):
        hold("ci", read_notes, ("",))


@pytest.mark.usefixtures("readable")
def test_limits_hold_the_commands() -> None:
    define_profiles({"ci": OwnProfile(READ, limits=OwnLimits(seconds=1, output_bytes=10))})
    with oblige_commands("ci"):
        slow = run_command("sleep 60", timeout=50)
        loud = run_command("echo 12345678901234567890", limits=Limits(output_bytes=1000))
    assert (slow.timed_out, slow.profile) == (True, "ci")
    assert loud.stdout_omitted == 11


@pytest.mark.usefixtures("readable")
def test_memory_is_limited_by_the_profile() -> None:
    define_profiles({"ci": OwnProfile(READ, limits=OwnLimits(memory_bytes=64 << 20))})
    line = ["/usr/bin/head", "-c", "200M", "/dev/zero"]
    with oblige_commands("ci"):
        done = run_command(["/bin/sh", "-c", f"x=$({' '.join(line)} | tr '\\0' a); echo ${{#x}}"])
    assert b"209715200" not in done.stdout


@pytest.mark.usefixtures("readable")
def test_a_call_is_held_by_a_profile_of_ones_own(opened: Open, notes: Path) -> None:
    seen: list[Any] = []
    captured = opened({"ci": {"base": "read", "masked": [str(notes)]}}, {"profile": "ci"}, seen)
    tool = captured.governor.govern(read_notes, read_only=True, access_kinds=[])
    with pytest.raises(PermissionError):
        tool(str(notes / "plan.txt"))
    attributes = captured.span.attributes
    assert attributes[GenAI.ERROR_TYPE] == ErrorClass.SANDBOX_VIOLATION
    assert attributes[Attr.SANDBOX_PROFILE] == "ci"
    assert attributes[Attr.SANDBOX_ENFORCED] is True
    assert "ci" in seen[-1]["execution"]["sandboxes"]


def test_an_unproven_profile_denies(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "prove", lambda *_: Proof(False, "landlock", "a hole"))
    seen: list[Any] = []
    captured = opened({"ci": {"base": "read"}}, {"profile": "ci"}, seen)
    denied(captured, tmp_path, "a hole")
    assert "ci" not in seen[-1]["execution"]["sandboxes"]


def test_limits_of_a_tool_that_runs_no_commands_deny(opened: Open, tmp_path: Path) -> None:
    profiles = {"ci": {"base": "read", "limits": {"seconds": 1}}}
    denied(opened(profiles, {"profile": "ci"}), tmp_path, "runs_commands")


def test_profiles_without_an_order_deny(opened: Open, tmp_path: Path) -> None:
    profiles = {"ci": {"base": "write", "masked": ["/srv/notes"]}}
    captured = opened(profiles, {"profiles": ["ci", "read"]})
    denied(captured, tmp_path, "none of the sandboxes ci and read is the strictest")


def denied(captured: Capture, folder: Path, why: str) -> None:
    """Check that a call is denied because nothing can hold it, and has not run."""
    file = folder / "written"
    tool = captured.governor.govern(lambda: file.write_text("x"), name="write", read_only=True)
    with pytest.raises(ToolDenied, match=why):
        tool()
    attributes = captured.span.attributes
    assert attributes[Attr.PERMISSION_FAIL_CLOSED] == FailClosedCause.SANDBOX_UNAVAILABLE
    assert not file.exists()


# --- on a layer -----------------------------------------------------------------------------------


def test_a_layer_masks_and_limits_by_the_profile(place: Place, opened: Open) -> None:
    (place.root / "plan.txt").write_text("secret plan", "utf-8")
    profiles = {
        "ci": {
            "base": "write",
            "masked": [str(place.root / "plan.txt")],
            "limits": {"output_bytes": 10},
        }
    }
    captured = opened(
        profiles, {"profile": "ci"}, rehearsals_dir=str(place.state), policy_timeout=60
    )
    output = place.call(captured, "cat plan.txt 2>/dev/null; echo 12345678901234567890; touch made")
    assert output == "1234567890"
    assert (place.root / "made").exists()
    assert captured.span.attributes[Attr.SANDBOX_PROFILE] == "ci"


def test_the_body_over_a_layer_reads_no_masked_place(place: Place, opened: Open) -> None:
    plan = place.root / "plan.txt"
    plan.write_text("secret plan", "utf-8")

    def read_and_run(command: str) -> str:
        """Read beside the command."""
        return plan.read_text("utf-8") + shell(command)

    captured = opened(
        {"ci": {"base": "write", "masked": [str(plan)]}},
        {"profile": "ci"},
        rehearsals_dir=str(place.state),
        policy_timeout=60,
    )
    with pytest.raises(PermissionError):
        place.call(captured, "true", read_and_run)


def test_a_layer_without_the_mask_is_not_proven(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenttool_otel.enforcement.rehearsal.rehearsals import Rehearsals

    whole = Rehearsals.open

    def forgetful(self: Rehearsals, roots: Any, *, masked: Any, places: Any = None) -> Any:
        return whole(self, roots, masked=masked[:1], places=places)

    # a test's directory is in /tmp, of which commands have one of their own
    with NamedTemporaryFile("w", prefix=".masked-", dir=Path.cwd()) as file:
        file.write("secret plan")
        file.flush()
        masked = (Path(file.name),)
        assert rehearsal_failure(place.state, masked) == ""
        monkeypatch.setattr(Rehearsals, "open", forgetful)
        assert "masked" in rehearsal_failure(place.state.parent / "other", masked)
