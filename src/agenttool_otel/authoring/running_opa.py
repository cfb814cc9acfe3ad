"""A running OPA: a project's policies and data put into it, and what it holds, through
opa-python-client.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from agenttool_otel.authoring.completing import complete_input
from agenttool_otel.authoring.project import Project
from agenttool_otel.errors import (
    PolicyError,
    PolicyEvaluationError,
    PolicyLoadError,
    PolicyUnavailable,
)
from agenttool_otel.names import EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.engines.opa_server import OpaServerEngine
from agenttool_otel.policy.rego.syntax import Module

CUSTOM: Final = "agenttool.custom"
"""The package of rules on top of the stock bundle."""

_PACKAGE: Final = re.compile(r"^package\s+([\w.]+)", re.MULTILINE)

ID_PREFIX: Final = "agenttool-project/"
"""Start of the ids of policies that were pushed; others of the same OPA are left alone."""


class Pushed(NamedTuple):
    """What a push changed."""

    policies: list[str]  # packages that are there now
    removed: list[str]  # packages of an earlier push that the project no longer has
    data: list[str]  # paths of the data that was put


class ServerStatus(NamedTuple):
    """The state of a running OPA."""

    healthy: bool  # its health endpoint answers
    policies: list[str]  # ids of all its policies
    decides: bool  # it answers the permission decision for a complete input
    revision: str  # revision of its bundle; empty where it has none
    problem: str  # why it does not decide; empty when it does
    # packages of the project that it does not hold as they are, and pushed ones beyond it
    differs: list[str]

    def to_json_object(self) -> dict[str, Any]:
        """Return the status as plain JSON data."""
        return self._asdict()


class Held(NamedTuple):
    """The texts of the policies that a server holds, by package."""

    pushed: Mapping[str, str]  # those that were pushed, one text a package
    bundled: Mapping[str, set[str]]  # all others, of which each file is a text


def push(engine: OpaServerEngine, project: Project, *, with_base: bool = False) -> Pushed:
    """Put a project's data and then its policies into a running OPA; after a failure it has the
    policies of before.

    Data that was put stays: it is put first, and no earlier rule reads what is new in it.

    Args:
        engine: The connection.
        project: The policy.
        with_base: Whether the stock bundle is put, too.

    Raises:
        PolicyUnavailable: There is no connection.
        PolicyLoadError: OPA refuses the data or a policy.
    """
    client = engine.client
    bundle = project.own
    if with_base:
        bundle = project.whole
    with _failures():
        places = _put_data(client, bundle)
        before = _pushed(client)
        wanted = _by_package(project, with_base=with_base)
        try:
            _put_policies(client, wanted)
        except BaseException:
            with contextlib.suppress(Exception):
                _put_policies(client, before)
                _delete_policies(client, _pushed(client).keys() - before.keys())
            raise
        removed = sorted(before.keys() - wanted.keys())
        _delete_policies(client, removed)
    return Pushed(sorted(wanted), removed, places)


def server_status(engine: OpaServerEngine, project: Project | None = None) -> ServerStatus:
    """Read the state of a running OPA, and compare its policies with a project's.

    Args:
        engine: The connection.
        project: The policy to compare with; ``None`` compares nothing.

    Raises:
        PolicyUnavailable: The connection breaks.
    """
    client = engine.client
    if not engine.healthy():
        return ServerStatus(
            healthy=False,
            policies=[],
            decides=False,
            revision="",
            problem="it can't be reached, or is not ready",
            differs=[],
        )
    differs: list[str] = []
    with _failures():
        ids = sorted(client.get_policies_list())
        if project is not None:
            differs = _differences(_held(client), project)
    problem = _problem_of_decision(engine)
    return ServerStatus(
        healthy=True,
        policies=ids,
        decides=not problem,
        revision=engine.revision,
        problem=problem,
        differs=sorted(differs),
    )


def _differences(held: Held, project: Project) -> list[str]:
    """The packages that differ, that the server lacks, and that it has beyond the project's."""
    wanted = _by_package(project)
    base = _by_package(project, with_base=True)
    files = _files_by_package(project)
    differs = []
    for name, text in wanted.items():
        # pushed as one text, or file by file from a bundle that the server runs
        if held.pushed.get(name) != text and held.bundled.get(name) != files[name]:
            differs.append(name)
    for name, text in held.pushed.items():
        # the stock bundle's own packages are there after push --with-base
        if name not in wanted and text != base.get(name):
            differs.append(name)
    for name in held.bundled.keys() - wanted.keys() - held.pushed.keys():
        # a rule of ours in the bundle that the project no longer has
        if name == CUSTOM or name.startswith(f"{CUSTOM}."):
            differs.append(name)
    return differs


def _problem_of_decision(engine: OpaServerEngine) -> str:
    """Why the server does not decide a complete input; empty when it does."""
    document, _ = complete_input({"tool": {"name": "status"}})
    try:
        engine.evaluate(EntryPoint.DECISION, document, timeout=5.0)
    except PolicyEvaluationError as error:
        return str(error)
    return ""


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except PolicyError:
        raise
    except OSError as error:  # the errors of requests are OSErrors
        kind = type(error).__name__
        raise PolicyUnavailable(f"no connection to the policy server ({kind})") from None
    except Exception as error:  # of opa-python-client, or of a server whose answer is not JSON
        message = " ".join(str(error).split())[:500] or type(error).__name__
        raise PolicyLoadError(f"the policy server refuses it: {message}") from None


def _by_package(project: Project, *, with_base: bool = False) -> dict[str, str]:
    """The text of each package: OPA takes one policy at a time, and files of a package may need
    each other.
    """
    modules: dict[str, list[Module]] = {}
    for module in project.program.modules:
        if with_base or project.is_own(module.file):
            package = ".".join(module.package)
            modules.setdefault(package, []).append(module)
    return {package: _joined(files) for package, files in modules.items()}


def _joined(files: list[Module]) -> str:
    """One policy of all files of a package, with the imports of the others after its first head."""
    first, *others = files
    lines = first.text.splitlines()
    head = lines[: first.line]
    rest = lines[first.line :]
    imports: set[str] = set()
    for module in others:
        for number, line in enumerate(module.text.splitlines(), 1):
            if line.startswith("import "):
                imports.add(line)
            # without its own line "package agenttool.custom"
            elif number > module.line:
                rest.append(line)
    missing = sorted(imports.difference(rest))
    return "\n".join([*head, *missing, *rest, ""])


def _pushed(client: Any) -> dict[str, str]:
    """The texts of the policies that were pushed, by package."""
    texts = {}
    for name in client.get_policies_list():
        if name.startswith(ID_PREFIX):
            package = name.removeprefix(ID_PREFIX)
            texts[package] = client.get_policy(name)["result"]["raw"]
    return texts


def _held(client: Any) -> Held:
    """Read all policies of the server.

    All at once: the id of a file of a bundle is a path (``/srv/bundle.tar.gz/agenttool/custom/a.rego``),
    which no URL of one policy can name.
    """
    answer = client._session.get(f"{client.root_url}/policies", timeout=client.timeout)
    answer.raise_for_status()
    pushed: dict[str, str] = {}
    bundled: dict[str, set[str]] = {}
    for policy in answer.json().get("result", []):
        name, text = policy["id"], policy["raw"]
        package = _PACKAGE.search(text)
        if name.startswith(ID_PREFIX):
            pushed[name.removeprefix(ID_PREFIX)] = text
        elif package is not None:
            bundled.setdefault(package[1], set()).add(text)
    return Held(pushed, bundled)


def _files_by_package(project: Project) -> dict[str, set[str]]:
    """The text of each of the project's own files, by package."""
    files: dict[str, set[str]] = {}
    for module in project.program.modules:
        if project.is_own(module.file):
            files.setdefault(".".join(module.package), set()).add(module.text)
    return files


def _put_policies(client: Any, texts: Mapping[str, str]) -> None:
    def put(package: str) -> None:
        client.update_policy_from_string(
            texts[package],
            ID_PREFIX + package,
            rego_compat=False,
        )

    _each(texts, put)


def _delete_policies(client: Any, packages: Iterable[str]) -> None:
    def delete(package: str) -> None:
        client.delete_policy(ID_PREFIX + package)

    _each(packages, delete)


def _each(names: Iterable[str], change: Callable[[str], object]) -> None:
    """Change policies in an order in which no call lacks its function.

    OPA refuses ``a``, which calls ``data.b.f``, as long as ``b`` is not there: it is tried again
    after the others.
    """
    waiting = list(names)
    while waiting:
        refused: dict[str, Exception] = {}
        for name in waiting:
            try:
                change(name)
            except OSError:
                raise
            except Exception as error:
                refused[name] = error
        if len(refused) == len(waiting):
            raise next(iter(refused.values()))
        waiting = list(refused)


def _put_data(client: Any, bundle: Bundle) -> list[str]:
    """Put each object below ``data.agenttool`` and each other top one: what lies beside
    them stays.
    """
    documents: dict[tuple[str, str], Any] = {}
    for name, value in bundle.data.items():
        if name == "agenttool" and isinstance(value, dict):
            for key, document in value.items():
                documents[name, key] = document
        else:
            documents["", name] = value
    places = []
    for (parent, name), document in documents.items():
        place = f"{parent}/{name}" if parent else name
        if isinstance(document, dict):
            client.update_or_create_data(document, place)
        else:
            # OPA puts objects alone at a path: a list or a number is added to the object above it
            operation = {"op": "add", "path": f"/{name}", "value": document}
            client.patch_data(parent, [operation])
        places.append(place)
    return places
