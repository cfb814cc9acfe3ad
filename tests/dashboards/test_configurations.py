"""Every configuration file is loaded by the program that it is for, where that program is
at hand.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import servers_run
import yaml

import servers
from agenttool_otel.names import Attr

DASHBOARDS = Path(__file__).resolve().parents[2] / "dashboards"
COMPOSE = yaml.safe_load((DASHBOARDS / "compose.yaml").read_text("utf-8"))


def program(name: str) -> str:
    try:
        return str(servers.path(name))
    except servers.ServerUnavailable as reason:
        pytest.skip(str(reason))


def run(
    *command: str, cwd: Path = DASHBOARDS, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


# --- alerts ---------------------------------------------------------------------------------------


def test_the_alert_rules_pass_their_unit_tests() -> None:
    done = run(program("promtool"), "test", "rules", "alerts/agenttool.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_unit_test_in_which_it_fires() -> None:
    rules = yaml.safe_load((DASHBOARDS / "alerts" / "agenttool.rules.yml").read_text("utf-8"))
    tests = yaml.safe_load((DASHBOARDS / "alerts" / "agenttool.test.yml").read_text("utf-8"))
    stated = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    fired = {
        check["alertname"]
        for test in tests["tests"]
        for check in test["alert_rule_test"]
        if check["exp_alerts"]
    }
    assert stated == fired


def test_the_unit_tests_can_fail(tmp_path: Path) -> None:
    for path in (DASHBOARDS / "alerts").glob("*.yml"):
        text = path.read_text("utf-8").replace(") > 0\n", ") > 1000\n")
        (tmp_path / path.name).write_text(text, "utf-8")
    assert (
        run(program("promtool"), "test", "rules", str(tmp_path / "agenttool.test.yml")).returncode
        != 0
    )


def test_alerts_have_a_severity_a_summary_and_a_description() -> None:
    rules = yaml.safe_load((DASHBOARDS / "alerts" / "agenttool.rules.yml").read_text("utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in {"warning", "critical"}
            assert {"summary", "description"} <= set(rule["annotations"])


# --- each program loads its file ------------------------------------------------------------------


def test_prometheus_accepts_its_configuration() -> None:
    done = run(program("promtool"), "check", "config", "--syntax-only", "prometheus/prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_collector_refuses_a_broken_configuration(tmp_path: Path) -> None:
    otelcol = program("otelcol")
    done = run(otelcol, "validate", "--config", "collector/config.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / "broken.yaml"
    text = (DASHBOARDS / "collector" / "config.yaml").read_text("utf-8")
    broken.write_text(text.replace("allow_all_keys", "allow_all_kees"), "utf-8")
    assert run(otelcol, "validate", "--config", str(broken)).returncode != 0


@pytest.mark.slow
@pytest.mark.servers
def test_jaeger_starts_with_its_configuration(tmp_path: Path) -> None:
    program("jaeger")
    with (
        servers_run.jaeger(tmp_path) as (url, _),
        urllib.request.urlopen(f"{url}/search", timeout=60) as answer,
    ):
        assert '"topTagPrefixes":["agenttool.' in answer.read().decode().replace(" ", "")


@pytest.mark.slow
@pytest.mark.servers
@pytest.mark.opa
def test_opa_serves_the_stock_bundle_as_compose_starts_it(tmp_path: Path) -> None:
    service = COMPOSE["services"]["opa"]
    (port,) = servers_run.free_ports(1)
    address, bundle = f"127.0.0.1:{port}", str(DASHBOARDS.parent / "policies")
    replaced = {"--addr=0.0.0.0:8181": f"--addr={address}", "/bundle": bundle}
    assert set(replaced) <= set(service["command"])
    command = [program("opa"), *(replaced.get(part, part) for part in service["command"])]
    with servers_run.running(command, tmp_path / "opa.log", f"http://{address}/health?bundles"):
        request = urllib.request.Request(
            f"http://{address}/v1/data/agenttool/permission/decision",
            data=b'{"input": {}}',
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            decision = json.load(answer)
    assert decision["result"]["behavior"] == "deny", "an empty input is never allowed"


# --- compose --------------------------------------------------------------------------------------


def test_compose_conforms_to_the_compose_specification(tmp_path: Path) -> None:
    checker = program("compose-spec")
    done = run(checker, "compose.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / "compose.yaml"
    broken.write_text("services: {a: {imagine: b}}\n", "utf-8")
    assert run(checker, str(broken)).returncode != 0


def test_every_image_is_pinned_to_the_tested_version() -> None:
    images = {name: service["image"] for name, service in COMPOSE["services"].items()}
    for image in images.values():
        assert re.fullmatch(r"[\w./-]+:v?\d+\.\d+\.\d+", image), image
    assert images["opa"].endswith(":" + servers.OPA_VERSION.removeprefix("v"))
    assert images["collector"].endswith(":" + servers.COLLECTOR_VERSION.removeprefix("v"))


def test_every_port_is_published_on_loopback_only() -> None:
    for service in COMPOSE["services"].values():
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:"), port


def test_every_mounted_file_is_there() -> None:
    for service in COMPOSE["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source in COMPOSE["volumes"]:
                continue
            assert (DASHBOARDS / source).exists(), source
            assert volume.endswith(":ro"), volume


def test_the_collector_sends_to_services_and_ports_that_exist() -> None:
    text = (DASHBOARDS / "collector" / "config.yaml").read_text("utf-8")
    for target in re.findall(r"_ENDPOINT:-(\w+):(\d+)\}", text):
        assert target[0] in {"0", *COMPOSE["services"]}, target
    assert "jaeger:4317" in text
    assert "tempo:4317" in text
    for name in ("jaeger/config.yaml", "tempo/tempo.yaml"):
        assert "0.0.0.0:4317" in (DASHBOARDS / name).read_text("utf-8")
    assert "collector:8889" in (DASHBOARDS / "prometheus" / "prometheus.yml").read_text("utf-8")


# --- Grafana's provisioning and Jaeger's page -----------------------------------------------------


def provisioned(kind: str) -> dict[str, Any]:
    (path,) = (DASHBOARDS / "grafana" / "provisioning" / kind).glob("*.yaml")
    document = yaml.safe_load(path.read_text("utf-8"))
    assert document["apiVersion"] == 1
    return document  # type: ignore[no-any-return]


def test_the_data_sources_have_the_addresses_of_compose() -> None:
    sources = provisioned("datasources")["datasources"]
    assert {source["type"] for source in sources} == {"prometheus", "tempo", "loki", "jaeger"}
    assert sum(bool(source.get("isDefault")) for source in sources) == 1
    environment = COMPOSE["services"]["grafana"]["environment"]
    for source in sources:
        variable = source["url"].removeprefix("${").removesuffix("}")
        assert environment[variable].startswith("http://")
        assert environment[variable].split("/")[2].split(":")[0] in COMPOSE["services"]
        assert source["access"] == "proxy"
    known = {source["uid"] for source in sources}
    assert {
        source["jsonData"]["serviceMap"]["datasourceUid"]
        for source in sources
        if "serviceMap" in source["jsonData"]
    } <= known


def test_boards_are_provisioned_from_the_mounted_folder() -> None:
    (provider,) = provisioned("dashboards")["providers"]
    mounts = dict(volume.split(":")[:2] for volume in COMPOSE["services"]["grafana"]["volumes"])
    assert mounts["./grafana/boards"] == provider["options"]["path"]
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    home = COMPOSE["services"]["grafana"]["environment"][
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"
    ]
    assert (DASHBOARDS / "grafana" / "boards" / Path(home).name).exists()


def test_jaeger_shows_our_attributes_first_and_links_real_ones() -> None:
    settings = json.loads((DASHBOARDS / "jaeger" / "ui-config.json").read_text("utf-8"))
    assert settings["topTagPrefixes"][0] == "agenttool."
    known = {value for key, value in vars(Attr).items() if key.isupper()}
    for pattern in settings["linkPatterns"]:
        assert pattern["key"] in known
        used = set(re.findall(r"#\{([^}]+)\}", pattern["url"] + pattern["text"]))
        assert used <= known | {"service.name"}
