"""Settings: code wins over the environment, which wins over the default. Every variable is
documented here.

An unusable value in the environment never weakens anything, nor does a misspelt variable. Where
the default is at least as safe as whatever was meant it is used, and the variable is named in a
warning. Where it need not be (another engine, a stricter preset), nothing is decided:
``Settings.problems`` names the variable, and a Governor can't be made of such settings.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self

from agenttool_otel.context.validate import did_you_mean, texts
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.names import EngineName, Env, PolicyMode
from agenttool_otel.telemetry.settings import (
    Answerers,
    CaptureMode,
    Detail,
    EventsMode,
    SpanMode,
    UserIds,
)

_logger = logging.getLogger("agenttool_otel.context.settings")

SIGNATURE_ALGORITHMS: Final = tuple(
    f"{family}{size}" for family in ("RS", "PS", "ES", "HS") for size in (256, 384, 512)
)
"""Algorithms of a bundle's signature that can be verified."""


def _one_of(*allowed: str) -> Callable[[str], str]:
    """Return what reads a word, in any case and with ``-`` for ``_``."""
    by_spelling = {_spelling(word): word for word in allowed}

    def read(text: str) -> str:
        word = by_spelling.get(_spelling(text))
        if word is None:
            raise ValueError(f"one of {', '.join(allowed)}")
        return word

    return read


def _spelling(text: str) -> str:
    # " OPA-Server" is opa_server
    return text.strip().lower().replace("-", "_")


def _name(text: str) -> str:
    """Read a name that whoever uses it checks: which presets there are is in the loaded bundle."""
    return text.strip()


def _mode(text: str) -> PolicyMode:
    # to the letter: "shadow" lets every call run
    if text not in set(PolicyMode):
        raise ValueError(f"one of {', '.join(PolicyMode)}")
    return PolicyMode(text)


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("true or false")


def _finite(text: str) -> float | None:
    """Return the number in a text; ``None`` where it is none, ``nan`` or ``inf``."""
    try:
        value = float(text)
    except ValueError:
        # not passed on: its message quotes the text, which may be a secret in the wrong variable
        return None
    return value if math.isfinite(value) else None


def _positive(text: str) -> float:
    value = _finite(text)
    if value is None or value <= 0:
        raise ValueError("a positive number")
    return value


def _seconds(text: str) -> float:
    value = _finite(text)
    if value is None or value < 0:
        raise ValueError("a number of seconds, not negative")
    return value


def _count(text: str) -> int:
    value = _finite(text)
    # "1e3" is a thousand
    if value is None or value < 0 or not value.is_integer():
        raise ValueError("a whole number, not negative")
    return int(value)


def _paths(text: str) -> tuple[str, ...]:
    """Read directories that are separated as in ``PATH``."""
    parts = [part for part in text.split(os.pathsep) if part]
    return tuple(os.path.abspath(part) for part in parts)


def _list(text: str) -> tuple[str, ...]:
    """Read words between commas."""
    parts = [part.strip() for part in text.split(",")]
    return tuple(part for part in parts if part)


def _sink(text: str) -> str:
    if text and not text.startswith(("file:", "http://", "https://")):
        raise ValueError("file:PATH, or an http or https URL")
    return text


def _decisions(text: str) -> str:
    path = text.removeprefix("file:")
    if text not in ("", "otel") and (path == text or not path):
        raise ValueError("file:PATH or otel")
    return text


def _setting(
    default: Any, variable: str, read: Callable[[str], Any] = str, *, guards: bool = False
) -> Any:
    """Describe a setting.

    Args:
        default: its value where nothing states it.
        variable: its variable of the environment, without ``AGENTTOOL_``; whole where it begins
          with ``OTEL_``.
        read: makes its value of a text; raises ValueError with what the text has to be.
        guards: the default may be weaker than what an unusable text was meant to be.
    """
    name = variable if variable.startswith("OTEL_") else Env.PREFIX + variable
    return field(default=default, metadata={"env": name, "read": read, "guards": guards})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be configured without code.

    Attributes:
        policy_bundle: directory, ``.tar.gz`` or URL of the bundle (``AGENTTOOL_POLICY_BUNDLE``);
            the stock bundle where empty.
        policy_extension: directory, ``.tar.gz`` or URL of rules of your own, on top of the bundle
            (``AGENTTOOL_POLICY_EXTENSION``); ``extension=`` of a Governor wins.
        policy_key_file: file with the public key, or the secret for HS algorithms, that what these two
            and ``shadow_policy`` name has to be signed with (``AGENTTOOL_POLICY_KEY_FILE``).
        policy_algorithm: the signature's, such as ``ES256`` (``AGENTTOOL_POLICY_ALGORITHM``).
        policy_token_file: file with the bearer token for their URLs, read again when it changes
            (``AGENTTOOL_POLICY_TOKEN_FILE``).
        policy_ca_file: certificates to trust for their URLs, instead of the system's
            (``AGENTTOOL_POLICY_CA_FILE``).
        shadow_policy: directory, ``.tar.gz`` or URL of a policy that is asked beside the one that
            binds, for the record (``AGENTTOOL_SHADOW_POLICY``): a whole bundle, or rules on top.
        policy_engine: ``embedded`` or ``opa_server`` (``AGENTTOOL_POLICY_ENGINE``).
        policy_mode: ``enforce`` or ``shadow`` (``AGENTTOOL_POLICY_MODE``).
        shadow_tools: globs of tool ids or full names whose decisions are recorded and block
            nothing; the last that matches counts, and one that begins with ``!`` takes tools out
            (``AGENTTOOL_SHADOW_TOOLS``, comma-separated).
        policy_timeout: seconds that one decision may take (``AGENTTOOL_POLICY_TIMEOUT``).
        policy_cache: decisions that the cache keeps, 0 for no cache (``AGENTTOOL_POLICY_CACHE``).
        policy_preset: any preset of the loaded bundle or of its settings, of the stock one for
            example ``strict`` or ``coding``; with another name no policy can be used
            (``AGENTTOOL_POLICY_PRESET``).
        policy_data: JSON or YAML file merged over the bundle's data (``AGENTTOOL_POLICY_DATA``).
        policy_reload: seconds between looks for a changed bundle, extension, shadow policy or data
            file, 0 for never (``AGENTTOOL_POLICY_RELOAD``).
        tools_file: JSON file with facts of tools by name or glob, for instrumented programs
          (``AGENTTOOL_TOOLS``).
        opa_url: base URL of an OPA server (``AGENTTOOL_OPA_URL``).
        opa_token_file: file with OPA's bearer token (``AGENTTOOL_OPA_TOKEN_FILE``).
        opa_ca_file: CA bundle for OPA (``AGENTTOOL_OPA_CA_FILE``).
        events: ``span``, ``log`` or ``both`` (``AGENTTOOL_EVENTS``).
        detail: ``lean`` or ``full``: whether a span's events leave out what the span holds
          (``AGENTTOOL_DETAIL``).
        verbose: also the event classes that every call has (``AGENTTOOL_EVENTS_VERBOSE``).
        span_mode: ``auto`` (another instrumentation's current span of this very tool is enriched,
            else it is our own), ``child`` (always our own) or ``enrich`` (any current tool span)
            (``AGENTTOOL_SPAN_MODE``).
        answerers: whether telemetry has who answered an approval request as a keyed ``digest``
            (``AGENTTOOL_DIGEST_KEY``) or ``plain`` (``AGENTTOOL_ANSWERERS``).
        guardrail_names: whether spans also have the decision in the words of OpenTelemetry's open
            proposal for guardrails (``AGENTTOOL_GUARDRAIL_NAMES``).
        user_ids: ``none``, or ``digest`` for ``user.id`` on spans, a keyed digest
            (``AGENTTOOL_DIGEST_KEY``) of the user for whom a call is made (``AGENTTOOL_USER_IDS``).
        sink: where records go: ``file:PATH`` for JSON lines, or an ``http(s)://`` URL that takes
            CloudEvents (``AGENTTOOL_SINK``).
        decisions: where decisions are recorded to be decided again by ``agenttool policy replay``:
            ``file:PATH``, or ``otel`` for log records (``AGENTTOOL_DECISIONS``).
        capture: ``NO_CONTENT``, ``SPAN_ONLY``, ``EVENT_ONLY`` or ``SPAN_AND_EVENT``
            (``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``).
        redact_pii: redact personal data beside secrets (``AGENTTOOL_REDACT_PII``).
        roots: directories that file tools should stay in, for calls without a context of their own
            (``AGENTTOOL_ROOTS``, separated like PATH).
        actor: actor of calls without a context of their own (``AGENTTOOL_ACTOR``).
        roles: that actor's roles, comma-separated (``AGENTTOOL_ROLES``).
        require_context: deny every call outside an ``agent_context`` block
          (``AGENTTOOL_REQUIRE_CONTEXT``).
        allowed_hosts: hosts that URL lookalikes are compared with (``AGENTTOOL_ALLOWED_HOSTS``,
          comma-separated).
        resolve_dns: resolve host names for URL facts (``AGENTTOOL_RESOLVE_DNS``).
        approvals_url: SQLAlchemy URL of the approval store; in memory where empty
          (``AGENTTOOL_APPROVALS_URL``).
        approvals_ttl: seconds that an approval request stays open (``AGENTTOOL_APPROVALS_TTL``).
        approvals_max_pending: approval requests that may wait for an answer at once, 0 for no limit
            (``AGENTTOOL_APPROVALS_MAX_PENDING``).
        approvals_max_pending_per_session: how many of one session may
            (``AGENTTOOL_APPROVALS_MAX_PENDING_PER_SESSION``).
        sessions_url: where sessions are shared that several processes serve: a SQLAlchemy URL
            (SQLite, PostgreSQL), a ``redis://`` URL, or ``approvals`` for the approval store's
            database; in memory where empty (``AGENTTOOL_SESSIONS_URL``).
        sessions_memory_mb: megabytes that sessions may remember in all; the longest unused forget
            first (``AGENTTOOL_SESSIONS_MEMORY_MB``).
        results_dir: directory of persisted results; a private temporary one where empty
          (``AGENTTOOL_RESULTS_DIR``).
        rehearsals_dir: where the layers of rehearsed calls are, outside of the roots and of this
          user alone (``AGENTTOOL_REHEARSALS_DIR``); ``agenttool/rehearsals`` in the user's state
          directory where empty.
        sandbox_profiles: JSON file with profiles of your own, by name
          (``AGENTTOOL_SANDBOX_PROFILES``).
        lock_timeout: seconds that a call waits at most for the locks that its tool states
          (``AGENTTOOL_LOCK_TIMEOUT``).
        max_inline_chars: characters of a result that reach a model inline
          (``AGENTTOOL_MAX_INLINE_CHARS``).
        problems: what of the environment can't be used and must not be guessed; never a variable's
          value.
    """

    policy_bundle: str = _setting("", "POLICY_BUNDLE")
    policy_extension: str = _setting("", "POLICY_EXTENSION")
    policy_key_file: str = _setting("", "POLICY_KEY_FILE")
    policy_algorithm: str = _setting(
        "RS256", "POLICY_ALGORITHM", _one_of(*SIGNATURE_ALGORITHMS), guards=True
    )
    policy_token_file: str = _setting("", "POLICY_TOKEN_FILE")
    policy_ca_file: str = _setting("", "POLICY_CA_FILE")
    shadow_policy: str = _setting("", "SHADOW_POLICY")
    policy_engine: str = _setting(
        EngineName.EMBEDDED.value,
        "POLICY_ENGINE",
        _one_of(EngineName.EMBEDDED, EngineName.OPA_SERVER),
        guards=True,
    )
    policy_mode: PolicyMode = _setting(PolicyMode.ENFORCE, "POLICY_MODE", _mode)
    shadow_tools: tuple[str, ...] = _setting((), "SHADOW_TOOLS", _list)
    policy_timeout: float = _setting(1.0, "POLICY_TIMEOUT", _positive, guards=True)
    policy_cache: int = _setting(4096, "POLICY_CACHE", _count)
    policy_preset: str = _setting("", "POLICY_PRESET", _name)
    policy_data: str = _setting("", "POLICY_DATA")
    policy_reload: float = _setting(0.0, "POLICY_RELOAD", _seconds)
    tools_file: str = _setting("", "TOOLS")
    opa_url: str = _setting("", "OPA_URL")
    opa_token_file: str = _setting("", "OPA_TOKEN_FILE")
    opa_ca_file: str = _setting("", "OPA_CA_FILE")
    events: EventsMode = _setting("span", "EVENTS", _one_of("span", "log", "both"))
    detail: Detail = _setting("lean", "DETAIL", _one_of("lean", "full"))
    verbose: bool = _setting(False, "EVENTS_VERBOSE", _truth)
    span_mode: SpanMode = _setting("auto", "SPAN_MODE", _one_of("auto", "child", "enrich"))
    answerers: Answerers = _setting("digest", "ANSWERERS", _one_of("digest", "plain"))
    guardrail_names: bool = _setting(False, "GUARDRAIL_NAMES", _truth)
    user_ids: UserIds = _setting("none", "USER_IDS", _one_of("none", "digest"))
    sink: str = _setting("", "SINK", _sink)
    decisions: str = _setting("", "DECISIONS", _decisions)
    capture: CaptureMode = _setting(
        "NO_CONTENT",
        Env.CAPTURE_CONTENT,
        _one_of("NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT"),
    )
    redact_pii: bool = _setting(True, "REDACT_PII", _truth)
    roots: tuple[str, ...] = _setting((), "ROOTS", _paths)
    actor: str = _setting("", "ACTOR")
    roles: tuple[str, ...] = _setting((), "ROLES", _list)
    require_context: bool = _setting(False, "REQUIRE_CONTEXT", _truth, guards=True)
    allowed_hosts: tuple[str, ...] = _setting((), "ALLOWED_HOSTS", _list)
    resolve_dns: bool = _setting(False, "RESOLVE_DNS", _truth, guards=True)
    approvals_url: str = _setting("", "APPROVALS_URL")
    approvals_ttl: float = _setting(86_400.0, "APPROVALS_TTL", _positive, guards=True)
    approvals_max_pending: int = _setting(10_000, "APPROVALS_MAX_PENDING", _count)
    approvals_max_pending_per_session: int = _setting(
        100, "APPROVALS_MAX_PENDING_PER_SESSION", _count
    )
    sessions_url: str = _setting("", "SESSIONS_URL")
    sessions_memory_mb: int = _setting(64, "SESSIONS_MEMORY_MB", _count)
    results_dir: str = _setting("", "RESULTS_DIR")
    rehearsals_dir: str = _setting("", "REHEARSALS_DIR")
    sandbox_profiles: str = _setting("", "SANDBOX_PROFILES")
    max_inline_chars: int = _setting(50_000, "MAX_INLINE_CHARS", _count)
    lock_timeout: float = _setting(300.0, "LOCK_TIMEOUT", _positive)
    problems: tuple[str, ...] = ()

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **code: Any) -> Self:
        """Read the environment, then let the given values win.

        Args:
            environ: variables; the process's own where not given.
            code: values by setting name.

        Raises:
            ConfigurationError: a name in ``code`` is no setting, or its value has another type
              than the setting, such as a text where a list belongs.
        """
        variables = os.environ if environ is None else environ
        settings = {spec.name: spec for spec in fields(cls) if spec.metadata}
        unknown = code.keys() - settings.keys()
        if unknown:
            raise ConfigurationError(f"no such setting: {sorted(unknown)}")
        values: dict[str, Any] = {}
        problems = list(_misspelt(variables, {each.metadata["env"] for each in settings.values()}))
        for name, setting in settings.items():
            if name in code:
                values[name] = _stated(setting, code[name])
                continue
            text = variables.get(setting.metadata["env"])
            if text is None:
                continue
            try:
                values[name] = setting.metadata["read"](text)
            except ValueError as error:
                problem = _report_unusable(setting, text, str(error))
                if problem is not None:
                    problems.append(problem)
        return cls(**values, problems=tuple(problems))

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Return the environment variable of each setting by the setting's name."""
        return {spec.name: spec.metadata["env"] for spec in fields(cls) if spec.metadata}


def _misspelt(variables: Mapping[str, str], known: Set[str]) -> Iterator[str]:
    """Yield the problems of variables that are nearly one of ours: AGENTTOOL_POLICY_PRESETT=strict.

    One that resembles none, as of a later version of this package, is warned of.
    """
    words = [name.removeprefix(Env.PREFIX) for name in known | Env.beside_settings()]
    for name in sorted(variables):
        word = name.removeprefix(Env.PREFIX)
        if word == name or word in words:
            continue
        hint = did_you_mean(word, words, cutoff=0.66)
        if hint:
            yield f"{name} is no variable of this package{hint}"
        else:
            _logger.warning("%s is ignored: this package has no such variable", name)


def _stated(setting: Field[Any], value: Any) -> Any:
    """Return the value of a setting that code states."""
    if isinstance(setting.default, tuple) and isinstance(value, (str, bytes)):
        texts(setting.name, value)  # refuses it: letter by letter, "/" would be a root
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(value, Path):
        value = str(value)
    wanted = _type_of(setting.default)
    # Governor(resolve_dns="false") would resolve, Governor(policy_timeout="5") deny each call
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        names = " or ".join(each.__name__ for each in wanted)
        raise ConfigurationError(f"{setting.name} has to be {names}, not {type(value).__name__}")
    return value


def _type_of(default: Any) -> tuple[type, ...]:
    """Return what the value of a setting may be, by its default."""
    if isinstance(default, bool):
        return (bool,)
    if isinstance(default, int | float):
        return (int, float)
    if isinstance(default, tuple):
        return (tuple, set, frozenset)
    return (str,)


def _report_unusable(setting: Field[Any], text: str, wanted: str) -> str | None:
    """Return the problem of a variable whose default may be weaker than what was meant; warn of
    another one, and return ``None``.
    """
    variable = setting.metadata["env"]
    if not setting.metadata["guards"]:
        _logger.warning("%s is ignored: it has to be %s", variable, wanted)
        return None
    # AGENTTOOL_POLICY_ENGINE="": an empty variable is how some tools unset one
    if not text.strip():
        return None
    return f"{variable} has to be {wanted}"
