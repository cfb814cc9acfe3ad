"""A running OPA: a project's policies and data put into it, and what it holds, through
opa-python-client.
"""

from __future__ import annotations

import contextlib
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

ID_PREFIX: Final = "agenttool-project/"
"""Start of the ids of policies that were pushed; others of the same OPA are left alone."""


class Pushed(NamedTuple):
    """What a push changed."""

    policies: list[str]  # packages that are there now
    removed: list[str]  # packages of an earlier push that the project no longer has
    data: list[str]  # paths of the data that was put


class ServerStatus(NamedTuple):
    """What a running OPA is."""

    healthy: bool  # its health endpoint says so
    policies: list[str]  # ids of all its policies
    decides: bool  # it answers the permission decision for a complete input
    revision: str  # revision of its bundle; empty where it has none
    problem: str  # why it does not decide; empty when it does
    # packages of the project that it does not hold as they are, and pushed ones beyond it
    differs: list[str]

    def to_json_object(self) -> dict[str, Any]:
        """Return the status as plain JSON data."""
        return self._asdict()


def push(engine: OpaServerEngine, project: Project, *, with_base: bool = False) -> Pushed:
    """Put a project's data and then its policies into a running OPA; after a failure it holds the
    policies of before.

    Data that was put stays, as it is put first and no rule of before reads what is new in it.
    """
    client = engine.client
    with _failures():
        places = _put_data(client, project.whole if with_base else project.own)
        before, wanted = _pushed(client), _by_package(project, with_base=with_base)
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
    """Ask a running OPA what it is, and compare its policies with a project's."""
    client = engine.client
    if not engine.healthy():
        return ServerStatus(False, [], False, "", "it can't be reached, or is not ready", [])
    with _failures():
        ids = sorted(client.get_policies_list())
        held = _pushed(client) if project is not None else {}
    wanted = _by_package(project) if project is not None else {}
    base = _by_package(project, with_base=True) if project is not None else {}
    differs = [name for name in wanted if held.get(name) != wanted[name]]
    differs += [name for name in held if name not in wanted and held[name] != base.get(name)]
    problem = ""
    try:
        engine.evaluate(
            EntryPoint.DECISION, complete_input({"tool": {"name": "status"}})[0], timeout=5.0
        )
    except PolicyEvaluationError as error:
        problem = str(error)
    return ServerStatus(True, ids, not problem, engine.revision, problem, sorted(differs))


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except PolicyError:
        raise
    except OSError as error:  # those of requests are
        raise PolicyUnavailable(
            f"no connection to the policy server ({type(error).__name__})"
        ) from None
    except Exception as error:  # of opa-python-client, or of a server that does not speak JSON
        told = " ".join(str(error).split())[:500] or type(error).__name__
        raise PolicyLoadError(f"the policy server refuses it: {told}") from None


def _by_package(project: Project, *, with_base: bool = False) -> dict[str, str]:
    """The text of each package: OPA takes one policy at a time, and files of a package may need
    each other.
    """
    modules: dict[str, list[Module]] = {}
    for module in project.program.modules:
        if with_base or project.is_own(module.file):
            modules.setdefault(".".join(module.package), []).append(module)
    return {name: _joined(files) for name, files in modules.items()}


def _joined(files: list[Module]) -> str:
    first, *others = files
    imports = {
        line for module in others for line in module.text.splitlines() if line.startswith("import ")
    }
    head = first.text.splitlines()[: first.line]
    rest = first.text.splitlines()[first.line :]
    for module in others:
        rest += [
            line
            for line in module.text.splitlines()[module.line :]
            if not line.startswith("import ")
        ]
    return "\n".join([*head, *sorted(imports.difference(rest)), *rest, ""])


def _pushed(client: Any) -> dict[str, str]:
    """The texts of the policies that were pushed, by package."""
    return {
        name.removeprefix(ID_PREFIX): client.get_policy(name)["result"]["raw"]
        for name in client.get_policies_list()
        if name.startswith(ID_PREFIX)
    }


def _put_policies(client: Any, texts: Mapping[str, str]) -> None:
    _each(
        texts,
        lambda name: client.update_policy_from_string(
            texts[name], ID_PREFIX + name, rego_compat=False
        ),
    )


def _delete_policies(client: Any, names: Iterable[str]) -> None:
    _each(names, lambda name: client.delete_policy(ID_PREFIX + name))


def _each(names: Iterable[str], change: Callable[[str], object]) -> None:
    """Change policies in an order in which no call lacks its function: those that OPA refuses wait
    for the others.
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
    places: list[str] = []
    for name, value in bundle.data.items():
        below = value.items() if name == "agenttool" and isinstance(value, dict) else [("", value)]
        for key, document in below:
            place = f"{name}/{key}" if key else name
            if isinstance(document, dict):
                client.update_or_create_data(document, place)
            else:
                client.patch_data(
                    name if key else "",
                    [{"op": "add", "path": f"/{key or name}", "value": document}],
                )
            places.append(place)
    return places
