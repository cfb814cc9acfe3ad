"""Builds the real servers that tests and benchmarks run against, once, into a cache outside the
repository.

Usage::

    python tools/servers.py build [NAME ...]   # all that can be built here; those that are there already cost nothing
    python tools/servers.py build --available  # the same, and what can't be had is told and no error
    python tools/servers.py path NAME          # prints the program's path, exit 1 and the reason when it isn't there
    python tools/servers.py list

The cache is ``AGENTTOOL_SERVERS_DIR`` or ``~/.cache/agenttool``; ``.servers/NAME`` in the
repository links into it. Servers are built from Go modules at pinned versions and checked against
the checksums that Go knows for them: Jaeger and the Collector's builder are compiled as their own
main module, with the go.sum that they ship. Prometheus and its promtool come from the distribution
(``apt-get install prometheus``), the query grammars and two MCP servers from npm, an MCP server for
git from PyPI. Phoenix, a trace store with a web page, is large and only built when named.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
LINKS: Final = REPOSITORY / ".servers"

OPA_VERSION: Final = "v1.20.2"
# Jaeger v2.13.0 carries this tag too: its module path has no /v2, so Go can name no newer release
# of it
JAEGER_VERSION: Final = "v1.76.0"
COLLECTOR_VERSION: Final = "v0.159.0"
COLLECTOR_STABLE_VERSION: Final = "v1.65.0"
# what docker compose reads its files with: checks compose.yaml without Docker
COMPOSE_VERSION: Final = "v2.16.2"
# the published grammars of TraceQL, PromQL and LogQL, which Grafana's own editors use
LEZER_PACKAGES: Final = (
    "@grafana/lezer-traceql@1.0.0",
    "@prometheus-io/lezer-promql@0.315.0",
    "@grafana/lezer-logql@0.4.2",
    "@lezer/lr@1.4.12",
    "@lezer/common@1.5.5",
    "@lezer/highlight@1.2.5",
)
# MCP servers of other people, which tests run unmodified behind the proxy
FILESYSTEM_PACKAGE: Final = "@modelcontextprotocol/server-filesystem@2026.8.31"
EVERYTHING_PACKAGE: Final = "@modelcontextprotocol/server-everything@2026.8.31"
GIT_PACKAGE: Final = "mcp-server-git==2026.10.19"
# a trace store with a web page, for pictures; 625 MB, so only built when asked for by name
PHOENIX_VERSION: Final = "20.26.1"

_CORE: Final = "go.opentelemetry.io/collector"
_CONTRIB: Final = "github.com/open-telemetry/opentelemetry-collector-contrib"
COLLECTOR_PARTS: Final = {
    "receivers": [f"{_CORE}/receiver/otlpreceiver {COLLECTOR_VERSION}"],
    "processors": [
        f"{_CORE}/processor/batchprocessor {COLLECTOR_VERSION}",
        f"{_CORE}/processor/memorylimiterprocessor {COLLECTOR_VERSION}",
        f"{_CONTRIB}/processor/redactionprocessor {COLLECTOR_VERSION}",
        f"{_CONTRIB}/processor/transformprocessor {COLLECTOR_VERSION}",
    ],
    "connectors": [f"{_CONTRIB}/connector/spanmetricsconnector {COLLECTOR_VERSION}"],
    "exporters": [
        f"{_CORE}/exporter/debugexporter {COLLECTOR_VERSION}",
        f"{_CORE}/exporter/otlpexporter {COLLECTOR_VERSION}",
        f"{_CORE}/exporter/otlphttpexporter {COLLECTOR_VERSION}",
        f"{_CONTRIB}/exporter/prometheusexporter {COLLECTOR_VERSION}",
        f"{_CONTRIB}/exporter/fileexporter {COLLECTOR_VERSION}",
    ],
    "extensions": [f"{_CONTRIB}/extension/healthcheckextension {COLLECTOR_VERSION}"],
    "providers": [
        f"{_CORE}/confmap/provider/envprovider {COLLECTOR_STABLE_VERSION}",
        f"{_CORE}/confmap/provider/fileprovider {COLLECTOR_STABLE_VERSION}",
        f"{_CORE}/confmap/provider/yamlprovider {COLLECTOR_STABLE_VERSION}",
    ],
}


class ServerUnavailable(RuntimeError):
    """A server isn't on this machine; the message is the reason that a skipped test shows."""


@dataclass(frozen=True)
class Server:
    """One program.

    Attributes:
        name: file name of the program.
        version: pinned version, or an empty string for one that the distribution brings.
        build: makes the program at the given path, or ``None`` where nothing is built.
        optional: left out of ``build`` without names.
    """

    name: str
    version: str = ""
    build: Callable[[Path], None] | None = None
    optional: bool = False

    @property
    def target(self) -> Path:
        """Where the built program lies."""
        return cache() / f"{self.name}-{self.version}" / self.name


def cache() -> Path:
    """The folder that holds everything built."""
    configured = os.environ.get("AGENTTOOL_SERVERS_DIR")
    return Path(configured) if configured else Path.home() / ".cache" / "agenttool"


def path(name: str) -> Path:
    """Find a program without building anything.

    Args:
        name: one of ``SERVERS``.

    Raises:
        ServerUnavailable: it isn't there.
    """
    server = SERVERS[name]
    if server.build is None:
        found = shutil.which(name)
        if found is None:
            raise ServerUnavailable(f"{name} is not installed (apt-get install prometheus)")
        return Path(found)
    if not server.target.exists():
        raise ServerUnavailable(f"{name} {server.version} is not built (make servers)")
    return server.target


def build(name: str) -> Path:
    """Build a program unless it is there, and link it into the repository.

    Args:
        name: one of ``SERVERS``.

    Raises:
        ServerUnavailable: it can't be had on this machine.
    """
    server = SERVERS[name]
    if server.build is not None:
        with locked():
            if not server.target.exists():
                server.target.parent.mkdir(parents=True, exist_ok=True)
                partial = server.target.with_suffix(".partial")
                server.build(partial)
                partial.replace(server.target)
    found = path(name)
    LINKS.mkdir(exist_ok=True)
    link = LINKS / name
    link.unlink(missing_ok=True)
    link.symlink_to(found)
    return found


@contextmanager
def locked() -> Iterator[None]:
    """One build at a time for all working copies that share the cache."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _go(*arguments: str, folder: Path | None = None, **environment: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise ServerUnavailable("Go is not installed, so the real servers can't be built")
    settings = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", **environment}
    command = ["nice", "-n", "10", go, *arguments] if shutil.which("nice") else [go, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=settings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ServerUnavailable(f"go {arguments[0]} failed: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _build_main(module: str, version: str, package: str, target: Path) -> None:
    """Compile a module as its own main module: its replaces and go.sum hold, which ``go install``
    ignores.
    """
    with tempfile.TemporaryDirectory(prefix="agenttool-build-") as scratch:
        (Path(scratch) / "empty").mkdir()
        source = json.loads(
            _go("mod", "download", "-json", f"{module}@{version}", folder=Path(scratch, "empty"))
        )
        folder = Path(scratch) / "source"
        shutil.copytree(source["Dir"], folder)
        for entry in [folder, *folder.rglob("*")]:
            entry.chmod(entry.stat().st_mode | 0o200)
        _go("build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), package, folder=folder)


def _build_opa(target: Path) -> None:
    present = cache() / "bin" / "opa"
    if present.exists():
        printed = subprocess.run(
            [present, "version"], capture_output=True, text=True, check=False
        ).stdout
        if f"Version: {OPA_VERSION.removeprefix('v')}\n" in printed:
            target.unlink(missing_ok=True)
            target.symlink_to(present)
            return
    _build_main("github.com/open-policy-agent/opa", OPA_VERSION, ".", target)


def _build_jaeger(target: Path) -> None:
    _build_main("github.com/jaegertracing/jaeger", JAEGER_VERSION, "./cmd/jaeger", target)


def _build_compose(target: Path) -> None:
    _build_main("github.com/compose-spec/compose-go/v2", COMPOSE_VERSION, "./cmd", target)


_GRAMMAR_CHECK: Final = """\
// reads {"traceql": [query, ...], "promql": [...]} and writes the queries that do not parse
const languages = {
  traceql: "@grafana/lezer-traceql",
  promql: "@prometheus-io/lezer-promql",
  logql: "@grafana/lezer-logql",
};
const wanted = JSON.parse(require("fs").readFileSync(0, "utf8"));
(async () => {
  const wrong = [];
  for (const [language, queries] of Object.entries(wanted)) {
    const { parser } = await import(languages[language]);
    for (const query of queries) {
      let failed = query.trim() === "";
      parser.parse(query).iterate({ enter: (node) => { failed = failed || node.type.isError; } });
      if (failed) wrong.push(query);
    }
  }
  console.log(JSON.stringify(wrong));
})();
"""


def _npm_install(folder: Path, *packages: str, options: Sequence[str] = ()) -> str:
    """Install packages of npm, without their scripts; return Node's path."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        raise ServerUnavailable(f"Node is not installed, so {packages[0]} can't be used")
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    command += [*options, "--prefix", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServerUnavailable(f"npm install failed: {done.stderr.strip()[-2000:]}")
    return node


def _build_lezer(target: Path) -> None:
    """Install the grammars from npm, beside a script that checks queries with them."""
    # the grammars of TraceQL and LogQL name two patches of one parser
    node = _npm_install(target.parent, *LEZER_PACKAGES, options=["--legacy-peer-deps"])
    target.write_text(f"#!{node}\n{_GRAMMAR_CHECK}", "utf-8")
    target.chmod(0o755)


def _build_npm(package: str, program: str, target: Path) -> None:
    """Install a program of npm."""
    _npm_install(target.parent, package)
    target.unlink(missing_ok=True)
    target.symlink_to(target.parent / "node_modules" / ".bin" / program)


def _build_python(requirement: str, program: str, target: Path) -> None:
    """Install a program of PyPI into an environment of its own."""
    environment = target.parent / "venv"
    python = str(environment / "bin" / "python")
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [python, "-m", "pip", "install", "--quiet", requirement],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerUnavailable(f"{requirement} can't be: {done.stderr.strip()[-2000:]}")
    target.unlink(missing_ok=True)
    target.symlink_to(environment / "bin" / program)


def _of_npm(name: str, package: str) -> Server:
    return Server(name, package.rpartition("@")[2], partial(_build_npm, package, name))


def _of_pypi(name: str, requirement: str, *, optional: bool = False) -> Server:
    version = requirement.rpartition("==")[2]
    return Server(name, version, partial(_build_python, requirement, name), optional=optional)


def _build_builder(target: Path) -> None:
    _build_main(f"{_CORE}/cmd/builder", COLLECTOR_VERSION, ".", target)


def _build_collector(target: Path) -> None:
    """Let the Collector's own builder write a distribution with the parts that the
    dashboards need.
    """
    builder = SERVERS["ocb"].target
    if not builder.exists():
        builder.parent.mkdir(parents=True, exist_ok=True)
        _build_builder(builder)
    with tempfile.TemporaryDirectory(prefix="agenttool-build-") as scratch:
        output = Path(scratch) / "out"
        manifest = {
            "dist": {
                "module": "agenttool.invalid/otelcol",
                "name": "otelcol",
                "description": "OpenTelemetry Collector with the parts that agenttool-otel's dashboards need",
                "version": COLLECTOR_VERSION.removeprefix("v"),
                "output_path": str(output),
            },
            **{
                kind: [{"gomod": part} for part in parts] for kind, parts in COLLECTOR_PARTS.items()
            },
        }
        # JSON is YAML, so this needs no YAML library
        written = Path(scratch) / "manifest.yaml"
        written.write_text(json.dumps(manifest), "utf-8")
        settings = {**os.environ, "GOTOOLCHAIN": "local"}
        command = [str(builder), f"--config={written}", "--skip-compilation"]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ServerUnavailable(
                f"the Collector's builder failed: {done.stderr.strip()[-2000:]}"
            )
        _go("build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), ".", folder=output)


SERVERS: Final = {
    server.name: server
    for server in (
        Server("opa", OPA_VERSION, _build_opa),
        Server("jaeger", JAEGER_VERSION, _build_jaeger),
        Server("ocb", COLLECTOR_VERSION, _build_builder),
        Server("otelcol", COLLECTOR_VERSION, _build_collector),
        Server("compose-spec", COMPOSE_VERSION, _build_compose),
        Server("lezer", "traceql-1.0.0-promql-0.315.0-logql-0.4.2", _build_lezer),
        _of_npm("mcp-server-filesystem", FILESYSTEM_PACKAGE),
        _of_npm("mcp-server-everything", EVERYTHING_PACKAGE),
        _of_pypi("mcp-server-git", GIT_PACKAGE),
        _of_pypi("phoenix", f"arize-phoenix=={PHOENIX_VERSION}", optional=True),
        Server("prometheus"),
        Server("promtool"),
    )
}


def main(arguments: list[str]) -> int:
    """Run the command line."""
    lenient = "--available" in arguments
    arguments = [argument for argument in arguments if argument != "--available"]
    command, names = (arguments[0], arguments[1:]) if arguments else ("", [])
    unknown = [name for name in names if name not in SERVERS]
    if (
        command not in {"build", "path", "list"}
        or unknown
        or (command == "path" and len(names) != 1)
    ):
        print(__doc__)
        return 2
    failed = 0
    for name in names or [name for name, server in SERVERS.items() if not server.optional]:
        try:
            found = build(name) if command == "build" else path(name)
            print(
                found
                if command == "path"
                else f"{name} {SERVERS[name].version or '(installed)'}: {found}"
            )
        except ServerUnavailable as reason:
            failed += 1
            print(f"{name}: {reason}", file=sys.stderr)
    return int(failed > 0 and command != "list" and not lenient)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
