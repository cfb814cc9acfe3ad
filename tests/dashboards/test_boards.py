"""The committed boards are what the code gives, and keep the rules that make a board usable."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import make_boards
import pytest
from boards import generate
from boards import queries as q
from grafana_foundation_sdk.models.dashboard import Dashboard

import semconv
import servers
from agenttool_otel.names import Attr, Event, GenAI, Metric

FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "grafana"
BOARDS = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((FOLDER / "boards").glob("*.json"))
}
METRIC_BOARDS = ("overview", "permissions", "results", "latency", "policy", "session")
UNITS = {"short", "s", "ops", "percentunit", "decbytes", "Bps"}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def targets(kind: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{name}: {panel['title']}", target)
        for name, board in BOARDS.items()
        for panel in panels(board)
        for target in panel["targets"]
        if target["datasource"]["type"] == kind
    ]


def test_the_committed_boards_are_what_the_code_gives() -> None:
    committed = {path.name: path.read_text("utf-8") for path in (FOLDER / "boards").glob("*.json")}
    assert committed == generate()
    assert make_boards.main(["check"]) == 0


def test_the_boards_have_ids_and_titles_of_their_own() -> None:
    assert set(BOARDS) == {*METRIC_BOARDS, "events", "session_on_jaeger"}
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)
    assert all(board["description"] and board["editable"] is False for board in BOARDS.values())


@pytest.mark.parametrize("name", BOARDS)
def test_panels_have_title_description_unit_query_and_source(name: str) -> None:
    for panel in panels(BOARDS[name]):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert panel["targets"], panel["title"]
        for place in (panel, *panel["targets"]):
            assert place["datasource"]["uid"] in {
                "${prometheus_datasource}",
                "${tempo_datasource}",
                "${loki_datasource}",
                "${jaeger_datasource}",
            }, panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == [chr(ord("A") + position) for position in range(len(letters))]


@pytest.mark.parametrize("name", BOARDS)
def test_ids_are_unique_and_panels_do_not_overlap(name: str) -> None:
    board = BOARDS[name]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    cells: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        taken = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        cells |= taken


@pytest.mark.parametrize("name", METRIC_BOARDS)
def test_template_variables_are_renewed_with_the_time_range(name: str) -> None:
    variables = {item["name"]: item for item in BOARDS[name]["templating"]["list"]}
    assert {"prometheus_datasource", "tempo_datasource", "job", "instance", "agent", "tool"} <= set(
        variables
    )
    assert [variables[f"{kind}_datasource"]["query"] for kind in ("prometheus", "tempo")] == [
        "prometheus",
        "tempo",
    ]
    for wanted in ("job", "instance", "agent", "tool"):
        variable = variables[wanted]
        assert variable["refresh"] == 2
        assert variable["multi"] is variable["includeAll"] is True
        # Grafana's dashboard linter wants these labels and values; other labels are not on every
        # series
        assert variable["label"] == wanted.title()
        assert variable["allValue"] == (".+" if wanted in ("job", "instance") else ".*")
        assert variable["datasource"]["uid"] == "${prometheus_datasource}"


@pytest.mark.parametrize("name", BOARDS)
def test_every_variable_in_a_query_exists(name: str) -> None:
    board = BOARDS[name]
    known = {item["name"] for item in board["templating"]["list"]} | {
        "__rate_interval",
        "__range",
        "__auto",
    }
    for panel in panels(board):
        for target in panel["targets"]:
            used = set(
                re.findall(r"\$(\w+)", target.get("expr") or target.get("query") or target["tags"])
            )
            assert used <= known, panel["title"]


@pytest.mark.parametrize(("where", "target"), targets("prometheus"))
def test_queries_filter_by_service_and_read_counters_as_rates(
    where: str, target: dict[str, Any]
) -> None:
    expression = target["expr"]
    selectors = re.findall(r"(\w+)\{([^}]*)\}(\[[^]]+\])?", expression)
    assert selectors
    for series, matchers, window in selectors:
        assert 'job=~"$job"' in matchers  # Grafana's dashboard linter wants both, by these names
        assert 'instance=~"$instance"' in matchers
        if series.endswith(("_total", "_count", "_sum", "_bucket")):
            assert window in {"[$__rate_interval]", "[$__range]"}, where


def test_series_that_carry_agent_or_tool_are_filtered_by_them() -> None:
    registry = semconv.load()
    carried = {
        q.series(metric.name, suffix): set(metric.attributes)
        for metric in registry.metrics.values()
        for suffix in (("bucket", "count", "sum") if metric.instrument == "histogram" else ("",))
    }
    carried.update((series, set()) for series in q.SDK_LOSSES)
    for where, target in targets("prometheus"):
        for series, matchers, _ in re.findall(r"(\w+)\{([^}]*)\}(\[[^]]+\])?", target["expr"]):
            for attribute, variable in ((GenAI.AGENT_NAME, "$agent"), (GenAI.TOOL_NAME, "$tool")):
                filtered = f'{q.label(attribute)}=~"{variable}"' in matchers
                assert filtered == (attribute in carried[series]), where


def test_series_and_labels_are_in_the_registry_or_the_sdks() -> None:
    registry = semconv.load()
    names = {series: {"job", "instance", reason} for series, reason in q.SDK_LOSSES.items()}
    for metric in registry.metrics.values():
        for suffix in ("bucket", "count", "sum") if metric.instrument == "histogram" else ("",):
            names[q.series(metric.name, suffix)] = {q.label(item) for item in metric.attributes} | {
                "job",
                "instance",
                "le",
            }
    for where, target in targets("prometheus"):
        for series, matchers, _ in re.findall(r"(\w+)\{([^}]*)\}(\[[^]]+\])?", target["expr"]):
            assert series in names, where
            assert set(re.findall(r"(\w+)(?:=|!)", matchers)) <= names[series], where
            for labels in re.findall(r"by \(([^)]*)\)", target["expr"]):
                assert set(labels.split(", ")) <= names[series], where


def test_each_metric_of_the_registry_is_on_a_board() -> None:
    text = json.dumps(BOARDS)
    for metric in semconv.load().metrics.values():
        suffix = "count" if metric.instrument == "histogram" else ""
        stem = q.series(metric.name, suffix).removesuffix("_count")
        assert stem in text, metric.name


@pytest.mark.parametrize("name", BOARDS)
def test_the_sdk_reads_each_board_back_as_it_is(name: str) -> None:
    assert Dashboard.from_json(BOARDS[name]).title == BOARDS[name]["title"]


def test_each_table_of_the_session_board_uses_its_session() -> None:
    tables = panels(BOARDS["session"])
    assert all(
        Attr.SESSION_ID + ' = "$session"' in panel["targets"][0]["query"] for panel in tables
    )
    assert {panel["type"] for panel in tables} == {"table"}


def test_searches_of_jaeger_name_the_service_and_the_session() -> None:
    found = targets("jaeger")
    assert {where.partition(":")[0] for where, _ in found} == {"session_on_jaeger"}
    for where, target in found:
        assert target["service"] == "$service", where
        assert f'{Attr.SESSION_ID}="$session"' in target["tags"], where


def test_log_queries_filter_by_service_and_by_event() -> None:
    found = targets("loki")
    assert {where.partition(":")[0] for where, _ in found} == {"events"}
    for where, target in found:
        assert re.search(r'\{service_name=~"\$service"\} \| event_name', target["expr"]), where


def test_a_log_query_can_not_name_what_is_never_recorded() -> None:
    with pytest.raises(ValueError, match="no event"):
        q.entries("tool.permission.guessed")
    with pytest.raises(ValueError, match="no attribute"):
        q.logged(Event.PERMISSION_DECIDED, GenAI.TOOL_CALL_RESULT, "=", "x")


@pytest.mark.servers
def test_queries_parse_in_the_published_grammars() -> None:
    try:
        checker = servers.path("lezer")
    except servers.ServerUnavailable as reason:
        pytest.skip(str(reason))
    wanted = {
        "promql": [
            target["expr"].replace("$__rate_interval", "5m").replace("$__range", "1h")
            for _, target in targets("prometheus")
        ],
        "traceql": [target["query"] for _, target in targets("tempo")],
        "logql": [
            target["expr"].replace("$__auto", "5m").replace("$service", ".+")
            for _, target in targets("loki")
        ],
    }
    assert len(wanted["traceql"]) > 10
    assert len(wanted["promql"]) > 40
    wanted["traceql"] += ["{ nope", "{ span.a = } | select(span.b)"]
    wanted["logql"] += ["{a=", "sum by (a) (count_over_time({a=1}"]
    wanted["promql"] += ["sum(rate(x[5m])", "sum by"]
    done = subprocess.run(
        [checker], input=json.dumps(wanted), capture_output=True, text=True, check=True
    )
    broken = {"{ nope", "{ span.a = } | select(span.b)", "sum(rate(x[5m])", "sum by"}
    broken |= {"{a=", "sum by (a) (count_over_time({a=1}"}
    assert set(json.loads(done.stdout)) == broken


# --- the builder refuses what can't be right ------------------------------------------------------


def test_a_query_can_not_name_what_is_never_exported() -> None:
    with pytest.raises(ValueError, match="has no label"):
        q.select(Metric.DECISIONS, agenttool_session_id='="s"')
    with pytest.raises(ValueError, match="no span has the attribute"):
        q.where("agenttool.tool.colour", "=", "red")
    with pytest.raises(ValueError, match="say bucket, count or sum"):
        q.series(Metric.DURATION)
    with pytest.raises(KeyError):
        q.series("agenttool.colours")
