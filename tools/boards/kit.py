"""Panels and variables with one look: every panel has a title, a description, a unit and a
templated data source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    heatmap,
    logs,
    loki,
    prometheus,
    stat,
    table,
    tempo,
    timeseries,
)
from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog import builder as cog_builder
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.models import common, dashboard
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from grafana_foundation_sdk.models.tempo import SearchTableType

from agenttool_otel.names import GenAI, Metric
from boards.queries import label, series

METRICS = common.DataSourceRef(type_val="prometheus", uid="${prometheus_datasource}")
JAEGER = common.DataSourceRef(type_val="jaeger", uid="${jaeger_datasource}")
LOGS = common.DataSourceRef(type_val="loki", uid="${loki_datasource}")
TRACES = common.DataSourceRef(type_val="tempo", uid="${tempo_datasource}")

Query = str | tuple[str, str]
"""An expression, or an expression and its legend."""

GREEN, YELLOW, RED, PURPLE = "green", "yellow", "red", "purple"
BEHAVIOR_COLORS = {"allow": GREEN, "ask": YELLOW, "deny": RED, "passthrough": PURPLE}


def _targets(
    panel: Any, queries: Sequence[Query], *, instant: bool = False, form: str = "time_series"
) -> Any:
    for position, query in enumerate(queries):
        expression, legend = query if isinstance(query, tuple) else (query, "")
        target = (
            prometheus.Dataquery()
            .datasource(METRICS)
            .ref_id(chr(ord("A") + position))
            .expr(expression)
        )
        target = target.legend_format(legend or "__auto").format(PromQueryFormat(form))
        panel = panel.with_target(target.instant() if instant else target.range())
    return panel


def _common(panel: Any, title: str, description: str, unit: str, width: int, height: int) -> Any:
    return (
        panel.title(title)
        .description(description)
        .unit(unit)
        .span(width)
        .height(height)
        .datasource(METRICS)
    )


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    colors: dict[str, str] | None = None,
) -> Any:
    """A graph over time."""
    panel = _common(timeseries.Panel(), title, description, unit, width, 8)
    panel = panel.fill_opacity(10).show_points(common.VisibilityMode.NEVER).min(0)
    panel = panel.legend(
        common_builders.VizLegendOptions()
        .display_mode(common.LegendDisplayMode.TABLE)
        .placement(common.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull", "max"])
        .show_legend(True)
    )
    for name, color in (colors or {}).items():
        fixed = {"mode": "fixed", "fixedColor": color}
        panel = panel.override_by_name(
            name, [dashboard.DynamicConfigValue(id_val="color", value=fixed)]
        )
    return _targets(panel, queries)


def number(
    title: str,
    description: str,
    unit: str,
    query: str,
    *,
    steps: Sequence[tuple[float | None, str]] = (),
    width: int = 4,
) -> Any:
    """One figure; ``steps`` are thresholds and their colours."""
    panel = _common(stat.Panel(), title, description, unit, width, 4).no_value("0")
    panel = panel.color_mode(common.BigValueColorMode.VALUE).graph_mode(
        common.BigValueGraphMode.NONE
    )
    panel = panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    if steps:
        thresholds = [dashboard.Threshold(value=value, color=color) for value, color in steps]
        panel = panel.thresholds(
            build.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(thresholds)
        ).color_scheme(build.FieldColor().mode(dashboard.FieldColorModeId.THRESHOLDS))
    return _targets(panel, [query], instant=True)


def bars(
    title: str, description: str, unit: str, query: str, legend: str, *, width: int = 8
) -> Any:
    """The largest few, as bars."""
    panel = _common(bargauge.Panel(), title, description, unit, width, 8)
    panel = panel.orientation(common.VizOrientation.HORIZONTAL).display_mode(
        common.BarGaugeDisplayMode.BASIC
    )
    panel = panel.reduce_options(common_builders.ReduceDataOptions().calcs(["lastNotNull"]))
    return _targets(panel, [(query, legend)], instant=True)


def grid(title: str, description: str, unit: str, query: str, *, width: int = 12) -> Any:
    """A table of a query's series."""
    panel = _common(table.Panel(), title, description, unit, width, 8)
    organize = {"excludeByName": {"Time": True}, "renameByName": {"Value": "count"}}
    panel = panel.with_transformation(
        dashboard.DataTransformerConfig(id_val="organize", options=organize)
    )
    return _targets(panel, [query], instant=True, form="table")


def heat(title: str, description: str, unit: str, query: str, *, width: int = 12) -> Any:
    """A histogram over time."""
    panel = _common(heatmap.Panel(), title, description, unit, width, 8).calculate(False)
    return _targets(panel, [(query, "{{le}}")], form="heatmap")


def traces(title: str, description: str, query: str, *, width: int = 24, limit: int = 50) -> Any:
    """A table of tool calls; a click on one opens its trace."""
    target = tempo.Dataquery().datasource(TRACES).ref_id("A").query_type("traceql").query(query)
    target = target.limit(limit).table_type(SearchTableType.SPANS)
    panel = table.Panel().title(title).description(description).unit("short").span(width).height(9)
    return panel.datasource(TRACES).with_target(target)


def trace_lines(title: str, description: str, unit: str, query: str, *, width: int = 12) -> Any:
    """A TraceQL metrics query over time."""
    target = tempo.Dataquery().datasource(TRACES).ref_id("A").query_type("traceql").query(query)
    panel = (
        timeseries.Panel().title(title).description(description).unit(unit).span(width).height(8)
    )
    return panel.datasource(TRACES).with_target(target)


@dataclass
class _JaegerSearch(variants.Dataquery, cog_builder.Builder[variants.Dataquery]):
    """A search of Jaeger's data source, for which the SDK has no builder; tags are in logfmt."""

    tags: str
    limit: int

    def build(self) -> variants.Dataquery:
        return self

    def to_json(self) -> dict[str, object]:
        return {
            "datasource": JAEGER,
            "limit": self.limit,
            "operation": "",
            "queryType": "search",
            "refId": "A",
            "service": "$service",
            "tags": self.tags,
        }


def jaeger_traces(
    title: str, description: str, tags: str, *, width: int = 24, limit: int = 50
) -> Any:
    """A table of the traces that Jaeger finds by tags."""
    panel = table.Panel().title(title).description(description).unit("short").span(width).height(9)
    return panel.datasource(JAEGER).with_target(_JaegerSearch(tags, limit))


def log_records(title: str, description: str, query: str, *, width: int = 24) -> Any:
    """The log records of a query, newest first, each with its attributes."""
    panel = logs.Panel().title(title).description(description).unit("short").span(width).height(9)
    panel = panel.show_time(True).enable_log_details(True)
    panel = panel.sort_order(common.LogsSortOrder.DESCENDING)
    return panel.datasource(LOGS).with_target(_log_target(query, ""))


def log_lines(title: str, description: str, query: str, legend: str, *, width: int = 12) -> Any:
    """A LogQL metric query over time."""
    panel = timeseries.Panel().title(title).description(description).unit("short")
    panel = panel.span(width).height(8).min(0)
    return panel.datasource(LOGS).with_target(_log_target(query, legend))


def _log_target(query: str, legend: str) -> Any:
    target = loki.Dataquery().datasource(LOGS).ref_id("A").expr(query).query_type("range")
    return target.legend_format(legend) if legend else target


# --- boards ---------------------------------------------------------------------------------------


def board(
    title: str,
    uid: str,
    description: str,
    rows: Sequence[tuple[str, Sequence[Any]]],
    *,
    session: bool = False,
    variables: Sequence[Any] = (),
) -> Any:
    """A dashboard with the common variables and links.

    Args:
        title: its title.
        uid: stable id, part of its address.
        description: what it answers.
        rows: titles and panels.
        session: whether it asks for a session.
        variables: its variables, where it has not those of the boards on metrics and Tempo.
    """
    made = (
        build.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["agenttool", "generated"])
        .readonly()
        .tooltip(dashboard.DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("30s")
        .timezone("browser")
    )
    for variable in variables or _variables(session=session):
        made = made.with_variable(variable)
    made = made.link(
        build.DashboardLink("agenttool boards")
        .type(dashboard.DashboardLinkType.DASHBOARDS)
        .tags(["agenttool"])
        .as_dropdown(True)
        .keep_time(True)
        .include_vars(True)
    )
    panel_id = 0
    for position, (row_title, panels) in enumerate(rows):
        made = made.with_row(build.Row(row_title).id(1000 + position))
        for panel in panels:
            panel_id += 1
            made = made.with_panel(panel.id(panel_id))
    return made


def log_variables() -> list[Any]:
    """The variables of a board on log records."""
    return [
        build.DatasourceVariable("loki_datasource").label("Loki data source").type("loki"),
        _values("service", "Service", "label_values(service_name)", ".+", source=LOGS),
    ]


def jaeger_variables() -> list[Any]:
    """The variables of a board on Jaeger alone."""
    return [
        build.DatasourceVariable("jaeger_datasource").label("Jaeger data source").type("jaeger"),
        build.TextBoxVariable("service").label("Service").default_value(""),
        build.TextBoxVariable("session").label("Session").default_value(""),
    ]


def _variables(*, session: bool) -> list[Any]:
    decisions = series(Metric.DURATION, "count")
    sources = [
        build.DatasourceVariable("prometheus_datasource")
        .label("Prometheus data source")
        .type("prometheus"),
        build.DatasourceVariable("tempo_datasource").label("Tempo data source").type("tempo"),
    ]
    values = [
        _values("job", "Job", f"label_values({decisions}, job)", ".+"),
        _values(
            "instance", "Instance", f'label_values({decisions}{{job=~"$job"}}, instance)', ".+"
        ),
        _values(
            "agent", "Agent", f'label_values({decisions}{{job=~"$job"}}, {label(GenAI.AGENT_NAME)})'
        ),
        _values(
            "tool", "Tool", f'label_values({decisions}{{job=~"$job"}}, {label(GenAI.TOOL_NAME)})'
        ),
    ]
    if session:
        values.append(build.TextBoxVariable("session").label("Session").default_value(""))
        values.append(
            build.TextBoxVariable("rule").label("Rule (regular expression)").default_value(".+")
        )
    return [*sources, *values]


def _values(
    name: str,
    title: str,
    query: str,
    everything: str = ".*",
    *,
    source: common.DataSourceRef = METRICS,
) -> Any:
    # All matches series that lack the label, too, such as those of calls outside an agent_context;
    # every series that Prometheus scrapes has a job and an instance, and Grafana's dashboard linter
    # wants ".+" for these
    return (
        build.QueryVariable(name)
        .label(title)
        .datasource(source)
        .query(query)
        .multi(True)
        .include_all(True)
        .all_value(everything)
        .current(dashboard.VariableOption(selected=True, text="All", value="$__all"))
        .refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(dashboard.VariableSort.ALPHABETICAL_ASC)
    )
