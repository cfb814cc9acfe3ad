"""What a path fact says about its surroundings, and that saying it never fails, hangs or changes
its mind.
"""

from __future__ import annotations

import json
import os
import string
import time
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenttool_otel.facts import PathChanged, open_checked
from agenttool_otel.facts.types import FactEnvironment
from agenttool_otel.names import PathClass
from agenttool_otel.readers.paths import path_fact
from agenttool_otel.readers.paths.text import normalize_path
from agenttool_otel.readers.types import PathFact
from agenttool_otel.values.tables import load_table
from agenttool_otel.values.unicode import skeleton

LEXICAL = FactEnvironment(
    roots=("/srv/ws",), cwd="/srv/ws", home="/home/agent", read_file_system=False
)


def fact_of(value: Any, env: FactEnvironment = LEXICAL, access: str = "read") -> PathFact:
    return path_fact(value, argument="/path", access=access, surroundings=env)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "src").mkdir(parents=True)
    (tmp_path / "ws" / "a.txt").write_text("content")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path


def env_of(ws: Path, **kwargs: Any) -> FactEnvironment:
    return FactEnvironment(
        **{"roots": (str(ws / "ws"),), "cwd": str(ws / "ws"), "home": str(ws / "home"), **kwargs}
    )


# --- roots ----------------------------------------------------------------------------------------


def test_a_root_given_by_a_link_is_where_the_link_leads(ws: Path) -> None:
    (ws / "alias").symlink_to(ws / "ws")
    env = env_of(ws, roots=(str(ws / "alias"),))
    for name in ("alias", "ws"):
        fact = fact_of(str(ws / name / "a.txt"), env)
        assert fact["inside"], name
        assert fact["roots"] == [str(ws / "alias")]


def test_a_path_into_a_root_through_an_outer_link_is_outside(ws: Path) -> None:
    # who can change the link decides where it leads next time
    (ws / "alias").symlink_to(ws / "ws")
    fact = fact_of(str(ws / "alias" / "a.txt"), env_of(ws))
    assert (fact["inside"], fact["escapes"], fact["roots"]) == (False, False, [str(ws / "ws")])


def test_a_root_that_became_a_link_takes_its_paths_along(ws: Path) -> None:
    env = env_of(ws)
    assert fact_of("a.txt", env)["resolved"] == str(ws / "ws" / "a.txt")
    (ws / "ws").rename(ws / "old")
    (ws / "ws").symlink_to(ws / "outside")
    assert fact_of("secret", env)["resolved"] == str(ws / "outside" / "secret")


def test_without_roots_nothing_is_inside(ws: Path) -> None:
    fact = fact_of("a.txt", env_of(ws, roots=()))
    assert (fact["inside"], fact["roots"], fact["exists"]) == (False, [], True)


def test_a_path_can_lie_in_several_roots(ws: Path) -> None:
    env = env_of(ws, roots=(str(ws), str(ws / "ws"), str(ws / "outside")))
    assert fact_of("a.txt", env)["roots"] == [str(ws), str(ws / "ws")]


def test_a_link_from_one_root_into_another_is_inside(ws: Path) -> None:
    (ws / "ws" / "way").symlink_to(ws / "outside")
    fact = fact_of("way/secret", env_of(ws, roots=(str(ws / "ws"), str(ws / "outside"))))
    assert fact["inside"]
    assert not fact["escapes"]


def test_an_escape_says_where_it_leads(ws: Path) -> None:
    (ws / "ws" / "way").symlink_to(ws / "outside")
    fact = fact_of("way/secret", env_of(ws))
    assert fact["escapes"]
    assert fact["symlink"]
    assert fact["lexical"] == str(ws / "ws" / "way" / "secret")
    assert fact["resolved"] == str(ws / "outside" / "secret")


def test_dots_behind_a_link_are_followed_as_the_kernel_does(ws: Path) -> None:
    (ws / "outside" / "deep").mkdir()
    (ws / "ws" / "way").symlink_to(ws / "outside" / "deep")
    fact = fact_of("way/../secret", env_of(ws))
    assert fact["lexical"] == str(ws / "ws" / "secret")
    assert (
        fact["resolved"]
        == os.path.realpath(ws / "ws" / "way" / ".." / "secret")
        == str(ws / "outside" / "secret")
    )
    assert not fact["inside"]


def test_a_path_below_a_file_does_not_exist(ws: Path) -> None:
    fact = fact_of("a.txt/x", env_of(ws))
    assert (fact["exists"], fact["inside"], fact["certain"]) == (False, True, True)


def test_without_the_file_system_nothing_is_certain(ws: Path) -> None:
    fact = fact_of("a.txt", env_of(ws, read_file_system=False))
    assert (fact["inside"], fact["certain"], fact["resolved"], fact["exists"]) == (
        True,
        False,
        None,
        None,
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every directory")
def test_an_unreadable_directory_makes_the_fact_uncertain(ws: Path) -> None:
    (ws / "ws" / "closed").mkdir(mode=0)
    fact = fact_of("closed/x", env_of(ws))
    assert (fact["resolved"], fact["exists"], fact["inside"], fact["certain"]) == (
        None,
        None,
        False,
        False,
    )


def test_a_relative_working_directory_or_home_is_no_ground(ws: Path) -> None:
    assert not fact_of("a.txt", env_of(ws, cwd="ws"))["certain"]
    assert not fact_of("~/a.txt", env_of(ws, home="home"))["certain"]


def test_a_missing_working_directory_is_the_process_s_own(
    ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ws / "ws")
    assert fact_of("a.txt", env_of(ws, cwd=None))["resolved"] == str(ws / "ws" / "a.txt")


def test_home_is_inside_only_when_both_its_meanings_are(ws: Path) -> None:
    inside = env_of(ws, home=str(ws / "ws" / "home"))
    assert fact_of("~/x", inside)["inside"]
    assert fact_of("~/x", inside)["home"]
    assert not fact_of("~/x", env_of(ws))["inside"]
    # the expanded path is inside, but a tool that does not expand would write elsewhere
    assert not fact_of("~/x", env_of(ws, home=str(ws / "ws" / "home"), cwd=str(ws / "outside")))[
        "inside"
    ]


# --- protected and sensitive ----------------------------------------------------------------------


def test_a_protected_place_is_known_by_every_name_that_it_has(ws: Path) -> None:
    store = ws / "ws" / "data" / "state.bin"
    store.parent.mkdir()
    store.write_text("x")
    (ws / "ws" / "link").symlink_to(store)
    os.link(store, ws / "ws" / "hard")
    env = env_of(ws, protected=((str(store), "approval"), (str(ws / "ws" / "bundle"), "policy")))
    for name in ("data/state.bin", "data/../data/state.bin", "link", "hard", "DATA/State.bin"):
        assert fact_of(name, env)["sensitive"] == "approval", name
    for name in ("bundle", "bundle/rules/x", "Bundle/x"):
        assert fact_of(name, env)["sensitive"] == "policy", name
    assert fact_of("a.txt", env)["sensitive"] is None


def test_a_directory_around_a_protected_place_is_protected(ws: Path) -> None:
    env = env_of(ws, protected=((str(ws / "ws" / "a" / "b" / "store"), "approval"),))
    assert fact_of("a", env, access="write")["sensitive"] == "approval"
    assert fact_of("a/b", env, access="unknown")["sensitive"] == "approval"
    assert fact_of("a", env, access="read")["sensitive"] is None
    # the root itself is the operator's choice
    assert fact_of(".", env, access="write")["sensitive"] is None


def test_a_protected_place_given_by_the_name_of_a_link_is_found(ws: Path) -> None:
    (ws / "alias").symlink_to(ws / "ws")
    env = env_of(ws, protected=((str(ws / "alias" / "a.txt"), "policy"),))
    assert fact_of("a.txt", env)["sensitive"] == "policy"


def test_a_roots_own_name_makes_its_files_no_dotfiles() -> None:
    env = FactEnvironment(
        roots=("/home/u/.cursor/worktrees/ws",), cwd="/home/u/.cursor/worktrees/ws"
    )
    assert fact_of("src/x.py", env)["sensitive"] is None
    assert fact_of(".cursor/mcp.json", env)["sensitive"] is not None
    keys = FactEnvironment(roots=("/home/u/.ssh/ws",), cwd="/home/u/.ssh/ws")
    assert fact_of("x", keys)["sensitive"] == "key"
    assert fact_of("etc/passwd", FactEnvironment(roots=("/",), cwd="/"))["sensitive"] == "system"
    assert (
        fact_of("x", FactEnvironment(roots=("/usr/src/ws",), cwd="/usr/src/ws"))["sensitive"]
        is None
    )


def test_every_class_of_the_data_is_a_class_of_the_vocabulary() -> None:
    data = load_table("agenttool_otel.readers.paths", "data/sensitive_paths.json")
    classes = {kind.value for kind in PathClass}
    assert data["order"] == [kind.value for kind in PathClass]
    for table in ("components", "names", "patterns"):
        assert set(data[table]) <= classes
        for kind, entries in data[table].items():
            assert len(entries) == len(set(entries)), (table, kind)
            assert all(entry == entry.lower() for entry in entries), (table, kind)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [None, 3, 2.5, True, b"a", bytearray(b"a"), object(), [], {}, ("a",)]
)
def test_what_is_no_text_is_said_to_be_none(value: object) -> None:
    fact = fact_of(value)
    assert fact["rejected"] == "not_text"
    assert not fact["inside"]
    assert not fact["certain"]


def test_path_objects_and_str_subclasses_are_text_others_not() -> None:
    class Sly(str):
        def __str__(self) -> str:
            return "innocent"

    class Asked:
        def __fspath__(self) -> str:
            raise AssertionError("the package ran somebody's code")

    assert fact_of(PurePosixPath("x/../../y"))["lexical"] == "/srv/y"
    assert fact_of(Sly("../y"))["lexical"] == "/srv/y"
    assert fact_of(Asked())["rejected"] == "not_text"


# --- opening --------------------------------------------------------------------------------------


def test_the_checked_file_is_opened_in_every_mode(ws: Path) -> None:
    env = env_of(ws)
    with open_checked(fact_of("a.txt", env)) as opened:
        assert opened.read() == "content"
    with open_checked(fact_of("a.txt", env), "rb") as opened:
        assert opened.read() == b"content"
    with open_checked(fact_of("a.txt", env, "write"), "a", encoding="utf-8") as opened:
        opened.write("+")
    with open_checked(fact_of("a.txt", env, "write"), "r+") as opened:
        assert opened.read() == "content+"
    with open_checked(fact_of("a.txt", env, "write"), "w") as opened:
        opened.write("new")
    assert (ws / "ws" / "a.txt").read_text() == "new"
    with open_checked(fact_of("b.txt", env, "write"), "x") as opened:
        opened.write("made")
    assert (ws / "ws" / "b.txt").read_text() == "made"
    with open_checked(fact_of("src/c.bin", env, "write"), "wb", permissions=0o600) as opened:
        opened.write(b"c")
    assert (ws / "ws" / "src" / "c.bin").stat().st_mode & 0o777 == 0o600


def test_no_descriptor_is_left_open_whatever_happens(ws: Path) -> None:
    env = env_of(ws)
    before = len(os.listdir("/proc/self/fd"))
    fact = fact_of("a.txt", env, "write")
    with open_checked(fact):
        pass
    (ws / "ws" / "a.txt").unlink()
    os.mkfifo(ws / "ws" / "a.txt")
    for mode in ("r", "w", "a"):
        with pytest.raises(PathChanged):
            open_checked(fact, mode)
    with pytest.raises(IsADirectoryError):
        open_checked(fact_of("src", env))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("name", "access", "mode"),
    [
        ("../outside/secret", "read", "r"),
        ("", "read", "r"),
        ("a.txt", "read", "w"),
        ("a.txt ", "write", "w"),
    ],
)
def test_a_fact_that_gives_no_ground_opens_nothing(
    ws: Path, name: str, access: str, mode: str
) -> None:
    with pytest.raises(PathChanged):
        open_checked(fact_of(name, env_of(ws), access), mode)
    assert (ws / "ws" / "a.txt").read_text() == "content"


def test_a_file_replaced_by_another_is_not_opened(ws: Path) -> None:
    fact = fact_of("a.txt", env_of(ws), "write")
    (ws / "ws" / "other").write_text("other")
    (ws / "ws" / "a.txt").rename(ws / "ws" / "kept")  # keeps its inode in use
    (ws / "ws" / "other").rename(ws / "ws" / "a.txt")
    with pytest.raises(PathChanged):
        open_checked(fact, "w")
    assert (ws / "ws" / "a.txt").read_text() == "other"


def test_a_file_that_got_another_name_is_not_written_to(ws: Path) -> None:
    fact = fact_of("a.txt", env_of(ws), "write")
    os.link(ws / "ws" / "a.txt", ws / "outside" / "a")
    with pytest.raises(PathChanged):
        open_checked(fact, "w")
    assert (ws / "outside" / "a").read_text() == "content"


def test_a_file_that_vanished_or_appeared_is_noticed(ws: Path) -> None:
    env = env_of(ws)
    gone, new = fact_of("a.txt", env, "write"), fact_of("new.txt", env, "write")
    (ws / "ws" / "a.txt").unlink()
    (ws / "ws" / "new.txt").write_text("somebody's")
    for fact in (gone, new):
        with pytest.raises(PathChanged):
            open_checked(fact, "w")
    assert (ws / "ws" / "new.txt").read_text() == "somebody's"
    with pytest.raises(FileNotFoundError):
        open_checked(fact_of("nothing", env))
    with pytest.raises(FileExistsError):
        open_checked(fact_of("new.txt", env, "write"), "x")
    with pytest.raises(ValueError):
        open_checked(fact_of("new.txt", env), "rw")


def test_documented_as_not_guaranteed_the_content_may_be_another(ws: Path) -> None:
    # the same file, written to in between: open_checked promises the file, not what is in it
    fact = fact_of("a.txt", env_of(ws))
    (ws / "ws" / "a.txt").write_text("changed")
    with open_checked(fact) as opened:
        assert opened.read() == "changed"


def test_not_guaranteed_a_tool_that_opens_by_name_follows_a_swap(ws: Path) -> None:
    # why open_checked exists
    fact = fact_of("a.txt", env_of(ws))
    (ws / "ws" / "a.txt").unlink()
    (ws / "ws" / "a.txt").symlink_to(ws / "outside" / "secret")
    assert (ws / "ws" / fact["raw"]).read_text() == "secret"
    with pytest.raises(PathChanged):
        open_checked(fact)


# --- any text -------------------------------------------------------------------------------------

NASTY = st.text(
    alphabet=st.sampled_from(
        list("ab./\\~$%{}:!`*? \x00\n\t\u202e\u200b\uff0e\uff0f\u0301\ud800CONX~1")
    ),
    max_size=40,
)


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=300) | NASTY, st.sampled_from(["read", "write", "unknown"]))
def test_no_text_makes_it_raise_and_every_fact_can_be_encoded(text: str, access: str) -> None:
    for env in (LEXICAL, FactEnvironment(roots=("/tmp",), cwd="/tmp")):
        fact = path_fact(text, argument="/p", access=access, surroundings=env)
        assert set(fact) == set(PathFact.__annotations__)
        json.dumps(fact).encode("utf-8")
        assert fact["rejected"] != "internal"
        if fact["inside"]:
            assert fact["rejected"] is None
            assert fact["roots"]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=100) | NASTY)
def test_normalising_twice_changes_nothing(text: str) -> None:
    fact = fact_of(text)
    if fact["lexical"]:
        again = fact_of(fact["lexical"])
        # "" where the text is refused for what it holds
        assert again["lexical"] in (fact["lexical"], "")
        assert normalize_path([], start=fact["lexical"]) == fact["lexical"]
        assert fact["lexical"] == "/" or not fact["lexical"].endswith("/")
        assert not {"..", ".", ""} & set(fact["lexical"].split("/")[1:]) or fact["lexical"] == "/"


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(["a", "b", "..", "../..", "a/b", "/", "c/..", "."]),
        ),
        max_size=4,
    ),
    st.lists(st.sampled_from(["a", "b", "c", "..", ".", "x"]), min_size=1, max_size=6),
)
def test_resolution_agrees_with_the_operating_system(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[str, str]], parts: list[str]
) -> None:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("resolve", numbered=True)))
    (base / "a" / "b").mkdir(parents=True)
    for name, target in links:
        if not os.path.lexists(base / name):
            (base / name).symlink_to(target)
    env = FactEnvironment(roots=(str(base),), cwd=str(base))
    text = "/".join(parts)
    fact = fact_of(text, env)
    if fact["rejected"] == "loop":
        assert any(_refused(f"{base}/{reading}") for reading in (text, os.path.normpath(text)))
        return
    assert fact["resolved"] == os.path.realpath(f"{base}/{text}")
    assert fact["exists"] == os.path.exists(fact["resolved"])
    if fact["exists"]:
        status = os.stat(fact["resolved"])
        assert fact["identity"] == f"{status.st_dev}:{status.st_ino}"
        real = fact["resolved"]
        assert fact["inside"] <= (
            (real == str(base) or real.startswith(f"{base}/"))
            and fact["escapes"] is False
            and fact["roots"] != []
            and (fact["lexical"] == str(base) or fact["lexical"].startswith(f"{base}/"))
        )
    else:
        assert not os.path.exists(f"{base}/{text}")


def _refused(text: str) -> bool:
    try:
        os.stat(text)
    except OSError:
        return True
    return False


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["l", "m", "a/l", "a/b/l"]),
            st.sampled_from(
                ["a/b", "../out", "../../out", ".env", "gone", "../.env", "b", "..", "gone/../.env"]
            ),
        ),
        max_size=4,
    ),
    st.lists(
        st.sampled_from(["a", "b", "l", "m", "..", "..", "ghost", "file", ".env"]),
        min_size=1,
        max_size=6,
    ),
)
def test_a_path_is_inside_only_where_every_reader_stays_inside(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[str, str]], parts: list[str]
) -> None:
    # Path.resolve() and realpath go on behind a name that is not there; abspath and normpath never
    # look at links.
    base = Path(os.path.realpath(tmp_path_factory.mktemp("readers", numbered=True)))
    project = base / "proj"
    (project / "a" / "b").mkdir(parents=True)
    (base / "out").mkdir()
    for place in (
        project / ".env",
        project / "file",
        project / "a" / "file",
        base / "out" / "file",
    ):
        place.write_text("x")
    for name, target in links:
        if not os.path.lexists(project / name):
            (project / name).symlink_to(target)
    env = FactEnvironment(roots=(str(project),), cwd=str(project))
    text = "/".join(parts)
    fact = fact_of(text, env)
    whole = f"{project}/{text}"
    readers = {
        os.path.realpath(whole),
        os.path.realpath(os.path.normpath(whole)),
        str(Path(whole).resolve()),
    }
    if fact["inside"]:
        assert all(f"{real}/".startswith(f"{project}/") for real in readers), fact
    if fact["certain"]:
        assert len(readers) == 1, fact
    if (
        fact["inside"]
        and fact["rejected"] is None
        and any(real.endswith("/.env") for real in readers)
    ):
        assert fact["sensitive"] == "credential", fact


@pytest.mark.speed
@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "/",
        "../",
        "a/",
        "%2e",
        "%25",
        "%",
        "$",
        "~",
        "\\",
        ":",
        "\u0301",
        "a\u0301",
        "\uff0e",
        "\x00",
        "\n",
        " ",
        "é",
        "\ud800",
        "%A",
        "${",
        "!a",
    ],
)
def test_a_megabyte_of_anything_takes_bounded_time(piece: str) -> None:
    for size in (4_000, 1_000_000):
        text = (piece * (size // len(piece) + 1))[:size]
        before = time.thread_time()
        fact_of(text, FactEnvironment(roots=("/tmp",), cwd="/tmp"))
        assert time.thread_time() - before < 2


@settings(max_examples=200)
@given(st.text(alphabet=string.ascii_letters + string.digits + ".-", max_size=20))
def test_texts_without_case_or_look_alikes_have_one_skeleton(text: str) -> None:
    assert skeleton(text) == skeleton(text.upper()) == skeleton(text.lower())


@pytest.mark.parametrize(
    "text",
    [
        "ghost/../link",
        "no/such/../../link",
        "ghost/.././link",
        "dangling/../link",
        "folder/../link",
        "folder/../ghost/../link",
        "x/../y/../link",
    ],
)
def test_parent_references_behind_a_link_hide_no_target(tmp_path: Path, text: str) -> None:
    project = tmp_path / "proj"
    (project / "sub" / "a" / "b").mkdir(parents=True)
    (tmp_path / "outside").write_text("x")
    (project / "link").symlink_to(tmp_path / "outside")
    (project / "folder").symlink_to("sub/a/b")
    (project / "dangling").symlink_to("sub/none")
    env = FactEnvironment(roots=(str(project),), cwd=str(project))
    fact = fact_of(text, env)
    assert (fact["inside"], fact["escapes"]) == (False, True)
    (project / "link").unlink()
    (project / ".env").write_text("x")
    (project / "link").symlink_to(".env")
    assert fact_of(text, env)["sensitive"] == "credential"


def test_a_path_that_readers_take_for_two_files_is_uncertain(tmp_path: Path) -> None:
    (tmp_path / "sub" / "a").mkdir(parents=True)
    (tmp_path / "folder").symlink_to("sub/a")
    (tmp_path / "notes").write_text("x")
    (tmp_path / "sub" / "notes").write_text("x")
    env = FactEnvironment(roots=(str(tmp_path),), cwd=str(tmp_path))
    assert fact_of("folder/../notes", env)["certain"] is False
    assert fact_of("sub/../notes", env)["certain"] is True
    assert fact_of("ghost/../notes", env)["certain"] is True


@pytest.mark.parametrize("text", ["out/x", "sub/../out/x"])
def test_leaving_a_root_given_by_a_link_is_an_escape(tmp_path: Path, text: str) -> None:
    project = tmp_path / "proj"
    (project / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (project / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "root_link").symlink_to(project)
    for start in (project, tmp_path / "root_link"):
        env = FactEnvironment(roots=(str(tmp_path / "root_link"),), cwd=str(start))
        fact = fact_of(text, env)
        assert (fact["inside"], fact["escapes"]) == (False, True)
        assert fact_of("sub/x", env)["inside"] is True


@pytest.mark.parametrize(
    "text",
    [
        *(
            "\u0153uvre.txt",
            "\u0110or\u0111e.md",
            "b\u00f8ger.txt",
            "ma\u0142e.txt",
            "K\u0131rm\u0131z\u0131.txt",
        ),
        *(
            "\u00c6gir.md",
            "\uff08\u6700\u7ec8\u7248\uff09.docx",
            "\uff01.md",
            "\uff1a7\u6708.txt",
            "x\u00b2.txt",
        ),
        *(
            "\u00bd.md",
            "\u21165.txt",
            "a\u2122.md",
            "\u00b5m.txt",
            "\ufb01n.txt",
            "wait\u2026.md",
            "a\u2011b.txt",
        ),
        *("a\u00a0b.txt", "10.30.00\u202fAM.png", "\u2764\ufe0f.md", "1\ufe0f\u20e3.md"),
        *(
            "\U0001f469\u200d\U0001f469\u200d\U0001f467.png",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.txt",
        ),
    ],
)
def test_names_as_people_write_them_are_not_confusable(text: str) -> None:
    fact = fact_of(text)
    assert (fact["confusable"], fact["rejected"], fact["windows"]) == (False, None, [])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "p\u0430ypal.txt",
            "a\u200bb",
            "a\u202eb",
            "\uff0eenv",
            "\uff0e\uff0e/x",
            "a\uff0fb",
            "a\u2215b",
            "\u2025/x",
        ),
        *(
            "\uff5e/x",
            "a\u200db",
            "a\ufe0fb",
            "\uff04HOME",
            "\u2100x",
            "pa\u0131\u0430",
            "\ufe52env",
            "a\u2024b",
        ),
        *("\u0441onfig", "\u200c\u0645", "x\u2044y"),
    ],
)
def test_letters_that_mislead_are_confusable(text: str) -> None:
    assert fact_of(text)["confusable"] is True


@pytest.mark.parametrize(
    "name", ["$name/etc/passwd", "sub/$name/../../etc", "$Entry/x", "a$HOME/x"]
)
def test_a_name_that_leads_elsewhere_when_empty_is_not_certain(name: str, tmp_path: Path) -> None:
    env = FactEnvironment(roots=(str(tmp_path),), cwd=str(tmp_path))
    fact = path_fact(name, argument="/path", access="read", surroundings=env)
    assert not fact["certain"]


@pytest.mark.parametrize("name", ["routes/users.$id.tsx", "routes/$id/edit.tsx", "$id.tsx"])
def test_a_parameter_of_a_route_is_certain(name: str, tmp_path: Path) -> None:
    env = FactEnvironment(roots=(str(tmp_path),), cwd=str(tmp_path))
    fact = path_fact(name, argument="/path", access="read", surroundings=env)
    assert fact["certain"]
