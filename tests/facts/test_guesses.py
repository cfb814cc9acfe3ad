"""Arguments whose names tell nothing, in tools that touch files or the network: their values do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.facts import EMPTY_FACTS, FactEnvironment, plan_facts
from agenttool_otel.facts.types import Facts

ENV = FactEnvironment(roots=("/srv/ws",), cwd="/srv/ws", home="/home/agent")
STRING = {"type": "string"}
VAGUE = [
    "target", "source", "src", "dst", "dest", "destination", "name", "key", "location", "document", "doc",
    "input", "output", "image", "attachment", "resource", "object", "item", "entry", "page", "address",
    "site", "host", "hostname", "domain", "server", "redirect", "proxy", "remote", "repo", "repository",
    "origin", "db", "log", "config", "template", "csv", "pdf", "video", "upload", "download", "root", "base",
    "project", "p", "f", "fn", "fname", "loc", "asset", "artifact", "to", "from", "include", "exclude",
    "pattern", "query",
]  # fmt: skip


def facts_of(value: Any, name: str = "target", schema: Any = STRING, **declared: Any) -> Facts:
    plan = plan_facts(schema={"type": "object", "properties": {name: schema}}, **declared)
    return EMPTY_FACTS if plan is None else plan.establish({name: value}, declared.pop("env", ENV))


def reading(value: Any, name: str = "target", schema: Any = STRING) -> Facts:
    return facts_of(value, name, schema, access_kinds=["file_read"], read_only=True)


def fetching(value: Any, name: str = "target", schema: Any = STRING) -> Facts:
    return facts_of(value, name, schema, access_kinds=["network"], read_only=True)


@pytest.mark.parametrize("name", VAGUE)
def test_a_path_is_found_under_any_name_in_a_file_tool(name: str) -> None:
    (fact,) = reading("/etc/shadow", name)["paths"]
    assert (fact["argument"], fact["sensitive"], fact["inferred"]) == (
        f"/{name}",
        "credential",
        True,
    )


@pytest.mark.parametrize("name", VAGUE)
def test_a_url_is_found_under_any_name_in_a_network_tool(name: str) -> None:
    (fact,) = fetching("http://169.254.169.254/latest/", name)["urls"]
    assert (fact["argument"], fact["address_class"], fact["inferred"]) == (
        f"/{name}",
        "metadata",
        True,
    )


@pytest.mark.parametrize(
    "value",
    [
        *(
            "/srv/x",
            "~/x",
            "~root/x",
            "./x",
            "../x",
            "..",
            "a/../../x",
            "C:\\x",
            "c:/x",
            "\\\\host\\share",
            "a\\b",
            "a/b",
        ),
        *(
            ".env",
            "conf/.env",
            "id_rsa",
            "server.pem",
            "%2fetc%2fpasswd",
            "..%2fx",
            "$HOME/.ssh",
            "  /etc/shadow",
            "\t~/x",
        ),
        *("/srv/my file", "/a\n/b", "../a\n~/b"),
    ],
)
def test_what_looks_like_a_path_is_one_for_file_tools_only(value: str) -> None:
    assert [fact["inferred"] for fact in reading(value)["paths"]] == [True]
    assert facts_of(value, access_kinds=["payment"], read_only=True) is EMPTY_FACTS
    assert fetching(value)["paths"] == []


@pytest.mark.parametrize(
    "value",
    [
        "total",
        "total of may",
        "e.g. this",
        "utf-8",
        "2026-01-01",
        "",
        " ",
        "#include",
        "1.5",
        "x" * 9000,
    ],
)
def test_ordinary_texts_are_no_paths(value: str, tmp_path: Path) -> None:
    assert reading(value)["paths"] == []
    assert fetching(value)["urls"] == []


@pytest.mark.parametrize(
    "name", ["content", "text", "new_text", "file_content", "body", "message", "newString", "regex"]
)
def test_content_is_not_searched_for_paths(name: str) -> None:
    assert facts_of("/* a comment */", name, access_kinds=["file_write"]) is EMPTY_FACTS
    assert facts_of("/usr/bin/env", name, access_kinds=["file_write"]) is EMPTY_FACTS


def test_a_text_of_several_lines_is_a_list_of_paths_or_none() -> None:
    assert reading("/usr/bin/env python\nprint(1)\n")["paths"] == []
    assert len(reading("/etc/passwd\n/etc/group\n")["paths"]) == 1


def test_a_bare_word_is_a_path_where_such_a_file_exists(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "notes").symlink_to("/etc/hostname")
    env = FactEnvironment(roots=(str(tmp_path / "ws"),), cwd=str(tmp_path / "ws"))
    plan = plan_facts(
        schema={"type": "object", "properties": {"target": STRING}}, access_kinds=["file_read"]
    )
    assert plan is not None
    assert [fact["escapes"] for fact in plan.establish({"target": "notes"}, env)["paths"]] == [True]
    assert plan.establish({"target": "others"}, env) is EMPTY_FACTS
    blind = FactEnvironment(roots=env.roots, cwd=env.cwd, read_file_system=False)
    assert [fact["certain"] for fact in plan.establish({"target": "others"}, blind)["paths"]] == [
        False
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("http://a.example/x", "name"),
        ("HTTPS:a.example", "name"),
        ("gopher://a.example/", "name"),
        ("169.254.169.254", "metadata"),
        ("169.254.169.254/latest/", "metadata"),
        ("10.0.0.1:6379", "private"),
        ("::1", "loopback"),
        ("[::1]:80", "loopback"),
        ("::ffff:169.254.169.254", "metadata"),
        ("localhost", "loopback"),
        ("localhost:8080/x", "loopback"),
        ("Metadata.Google.Internal", "metadata"),
        ("127.0.0.1.nip.io", "loopback"),
        ("printer.local", "private"),
        ("8.8.8.8", "public"),
    ],
)
def test_urls_addresses_and_inner_hosts_of_network_tools(value: str, kind: str) -> None:
    assert [(fact["address_class"], fact["inferred"]) for fact in fetching(value)["urls"]] == [
        (kind, True)
    ]


def test_a_url_without_a_scheme_is_refused_in_a_network_tool() -> None:
    assert [fact["rejected"] for fact in fetching("//evil.example/x")["urls"]] == ["no_scheme"]
    assert [fact["scheme"] for fact in fetching("file:///etc/passwd")["urls"]] == ["file"]


@pytest.mark.parametrize(
    "value", ["web-1", "main", "12:30", "v1.2", "tickets", "example.org", "a:b", "1.2.3"]
)
def test_words_are_no_hosts(value: str) -> None:
    assert fetching(value) is EMPTY_FACTS


def test_lists_nested_values_defaults_and_unlisted_keys_count() -> None:
    listed = {"type": "array", "items": STRING}
    assert [fact["argument"] for fact in reading(["a", "/etc/x", "~"], schema=listed)["paths"]] == [
        "/target/1",
        "/target/2",
    ]
    deep = {"type": "object", "properties": {"to": {"anyOf": [STRING, {"type": "null"}]}}}
    assert [fact["argument"] for fact in reading({"to": "/etc/x"}, schema=deep)["paths"]] == [
        "/target/to"
    ]
    free = {"type": "object", "additionalProperties": True}
    value = {"a": "/etc/x", "text": "/etc/y", "b": ["/etc/z", {"c": "~"}]}
    assert [fact["argument"] for fact in reading(value, schema=free)["paths"]] == [
        "/target/a",
        "/target/b/0",
        "/target/b/1/c",
    ]
    plan = plan_facts(
        schema={"type": "object", "properties": {"target": {"type": "string", "default": "../x"}}},
        tool_kind="file_operation",
    )
    assert plan is not None
    assert [fact["argument"] for fact in plan.establish({}, ENV)["paths"]] == ["/target"]


def test_a_closed_set_of_values_is_the_developers_own() -> None:
    assert reading("a/b", schema={"type": "string", "enum": ["a/b"]}) is EMPTY_FACTS


def test_a_declared_argument_is_not_guessed_at_again() -> None:
    schema = {"type": "object", "properties": {"target": STRING}}
    plan = plan_facts(schema=schema, url_args=["target"], access_kinds=["file_read", "network"])
    assert plan is not None
    facts = plan.establish({"target": "/etc/x"}, ENV)
    assert (facts["paths"], [fact["inferred"] for fact in facts["urls"]]) == ([], [False])
