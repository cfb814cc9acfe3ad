"""From a tool's own exception to the standard's error, with guidance what to do next (standard,
"Errors and Retries").

The exception itself is re-raised as it was; this is what telemetry, records and ``.tool.invoke``
say of it. Its message enters only through a redactor.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Final

from agenttool_otel.errors import GovernedOutcome
from agenttool_otel.names import ErrorClass, Recoverability
from agenttool_otel.records.error import ToolError
from agenttool_otel.results.errors.control_flow import cancellation, mcp_code
from agenttool_otel.results.errors.error_tables import (
    BY_ERRNO,
    BY_GRPC_CODE,
    BY_MCP_CODE,
    BY_NAME,
    FAILED,
    Verdict,
    for_http_status,
)
from agenttool_otel.results.errors.native_errors import (
    exit_reference,
    grpc_code,
    http_status,
    peek,
    retry_after,
)
from agenttool_otel.values.inspection import class_name, error_name, mro_names
from agenttool_otel.values.unicode import escape_surrogates

Redact = Callable[[str], str]
"""Takes a text and returns it without secrets; whatever it raises, the text is then left out."""

MappingTarget = ErrorClass | Callable[[BaseException], ToolError | ErrorClass | None]
"""A class of the taxonomy, or a function that makes the error; ``None`` leaves it to the stock
mapping.
"""

_MAX_MESSAGE: Final = 2000
_MAX_SCANNED: Final = 65_536
_MAX_CAUSES: Final = 5
_MAX_MEMBERS: Final = 100
_COMMAND_NOT_RUN: Final = frozenset({126, 127})
# how a sandbox (seccomp) ends who calls what it forbids
_SIGSYS: Final = getattr(signal, "SIGSYS", None)


class ErrorMapper:
    """Maps exceptions to errors: a user's own mappings first, the nearest base class winning, then
    the stock ones.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact
        self._custom: dict[str, MappingTarget] = {}

    def register(self, exception: type[BaseException] | str, target: MappingTarget) -> None:
        """Map an exception class and its subclasses."""
        name = exception if isinstance(exception, str) else class_name(exception)
        self._custom[name] = target

    def classify(self, exception: BaseException, *, redact: Redact | None = None) -> ToolError:
        """Return the standard's error for an exception; never raises."""
        clean = redact if redact is not None else self._redact
        try:
            custom = self._from_custom(exception, clean)
            return custom if custom is not None else self._from_stock(exception, clean)
        except Exception:
            return ToolError.of(ErrorClass.EXECUTION_FAILED, native_error_ref=error_name(exception))

    def _from_custom(self, exception: BaseException, redact: Redact | None) -> ToolError | None:
        if not self._custom:
            return None
        for name in mro_names(type(exception)):
            if (target := self._custom.get(name)) is None:
                continue
            try:
                made = target if isinstance(target, ErrorClass) else target(exception)
            except (Exception, SystemExit, GeneratorExit):
                return None
            if isinstance(made, ErrorClass):
                return _build((made, None), exception, redact, error_name(exception))
            if isinstance(made, ToolError):
                # A user's function often copies str(exception) into the message: the same redactor
                # applies.
                return made.model_copy(update={"message": _clean(made.message, redact)})
            return None
        return None

    def _from_stock(self, exception: BaseException, redact: Redact | None) -> ToolError:
        if isinstance(exception, BaseExceptionGroup):
            return self._from_group(exception, redact)
        verdict, reference = _verdict(exception)
        if verdict is FAILED:
            verdict = self._from_causes(exception)
        return _build(verdict, exception, redact, reference)

    def _from_causes(self, exception: BaseException) -> Verdict:
        """``raise ToolFailure from httpx.ConnectError``: the stated cause says what the wrapper's
        class does not.
        """
        cause = peek(exception, "__cause__")
        for _ in range(_MAX_CAUSES):
            if not isinstance(cause, BaseException):
                break
            if (custom := self._from_custom(cause, None)) is not None:
                return custom.error_class, custom.recoverability
            verdict, _ = _verdict(cause)
            if verdict is not FAILED:
                return verdict
            cause = peek(cause, "__cause__")
        return FAILED

    def _from_group(
        self, group: BaseExceptionGroup[BaseException], redact: Redact | None
    ) -> ToolError:
        members = [self.classify(leaf, redact=redact) for leaf in _leaves(group)]
        classes = {member.error_class for member in members}
        waits = [member.retry_after for member in members if member.retry_after is not None]
        reference = error_name(group)
        if len(classes) != 1:
            error = ToolError.of(ErrorClass.PARTIAL_FAILURE, native_error_ref=reference)
        else:
            error = members[0].model_copy(update={"native_error_ref": reference})
        error.retry_after = max(waits, default=None)
        error.message = f"{len(members)} failures: " + "; ".join(
            dict.fromkeys(m.message for m in members[:5])
        )
        error.message = error.message[:_MAX_MESSAGE]
        return error


_DEFAULT: Final = ErrorMapper()


def classify(exception: BaseException, *, redact: Redact | None = None) -> ToolError:
    """Return the standard's error for an exception by the stock mapping; see
    ErrorMapper.classify.
    """
    return _DEFAULT.classify(exception, redact=redact)


def _verdict(exception: BaseException) -> tuple[Verdict, str]:
    reference = error_name(exception)
    names = mro_names(type(exception))
    if isinstance(exception, GovernedOutcome) and exception.error_class is not None:
        return (exception.error_class, None), reference
    if cancellation(exception) is not None:
        return (ErrorClass.CANCELED, None), reference
    if (
        any(name.partition(".")[0] == "mcp" for name in names)
        and (code := mcp_code(exception)) is not None
    ):
        return BY_MCP_CODE.get(code, FAILED), f"mcp:{code}"
    if (status := http_status(exception)) is not None:
        return for_http_status(status), f"http:{status}"
    if (grpc := grpc_code(exception)) is not None:
        return BY_GRPC_CODE.get(grpc, FAILED), f"grpc:{grpc}"
    if "subprocess.CalledProcessError" in names:
        return _process_verdict(exception, reference)
    if "urllib.error.URLError" in names:
        reason = peek(exception, "reason")
        if isinstance(reason, BaseException) and reason is not exception:
            return _verdict(reason)[0], reference
    for name in names:
        if name == "builtins.OSError":
            return BY_ERRNO.get(peek(exception, "errno"), FAILED), reference
        if (known := BY_NAME.get(name)) is not None:
            return known, reference
    return FAILED, reference


def _process_verdict(exception: BaseException, reference: str) -> tuple[Verdict, str]:
    if (ended := exit_reference(exception)) is None:
        return FAILED, reference
    how, number = ended
    # the shell's words for "not executable" and "not found"
    if how == "exit" and number in _COMMAND_NOT_RUN:
        return (ErrorClass.SETUP_REQUIRED, None), f"{how}:{number}"
    if how == "signal" and number == _SIGSYS:
        return (ErrorClass.SANDBOX_VIOLATION, None), f"{how}:{number}"
    return (ErrorClass.EXECUTION_FAILED, Recoverability.UNKNOWN), f"{how}:{number}"


def _build(
    verdict: Verdict, exception: BaseException, redact: Redact | None, reference: str
) -> ToolError:
    error_class, recoverability = verdict
    error = ToolError.of(
        error_class,
        message_of(exception, redact),
        native_error_ref=reference,
        retry_after=retry_after(exception),
    )
    if recoverability is not None:
        error.recoverability = recoverability
        error.retry.arguments_must_change |= recoverability is Recoverability.CHANGE_ARGUMENTS
    return error


def message_of(exception: BaseException, redact: Redact | None) -> str:
    """Return the exception's class name, and its message if a redactor cleaned it; at most 2,000
    characters.
    """
    name = error_name(exception).removeprefix("builtins.")
    if redact is None:
        return name
    try:
        text = str(exception)
    except BaseException:
        # other people's __str__, which may raise anything and must not be what the caller gets
        return name
    return (
        name
        if type(text) is not str or not text.strip()
        else f"{name}: {_clean(text, redact)}"[:_MAX_MESSAGE]
    )


def _clean(text: str, redact: Redact | None) -> str:
    if redact is None or not text:
        return ""
    if len(text) > _MAX_SCANNED:
        # Cut at white space: half a token at the end might be half a secret that no detector knows.
        head = text[:_MAX_SCANNED]
        text = head[: max(head.rfind(" "), head.rfind("\n"), 0)] + " [cut]"
    try:
        cleaned = redact(escape_surrogates(text))
    except Exception:
        return "[message withheld: redaction failed]"
    return (
        cleaned[:_MAX_MESSAGE] if type(cleaned) is str else "[message withheld: redaction failed]"
    )


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    stack: list[BaseException] = [group]
    count = 0
    while stack and count < _MAX_MEMBERS:
        top = stack.pop()
        if isinstance(top, BaseExceptionGroup):
            stack.extend(reversed(top.exceptions))
        else:
            count += 1
            yield top
