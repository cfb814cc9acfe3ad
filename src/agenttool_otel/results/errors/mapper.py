"""From a tool's own exception to the standard's error, with guidance what to do next (standard,
"Errors and Retries").

The exception itself is re-raised as it was; this is what telemetry, records and ``.tool.invoke``
show of it. Its message enters only through a redactor.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Final

from agenttool_otel.errors import ConfigurationError, GovernedOutcome
from agenttool_otel.names import ErrorClass, Recoverability
from agenttool_otel.records.error import ToolError
from agenttool_otel.results.errors.control_flow import cancellation, mcp_code
from agenttool_otel.results.errors.error_tables import (
    BY_ERRNO,
    BY_GRPC_CODE,
    BY_MCP_CODE,
    BY_NAME,
    CANCELED,
    FAILED,
    SANDBOX_VIOLATION,
    SETUP_REQUIRED,
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
_WITHHELD: Final = "[message withheld: redaction failed]"
_MAX_SCANNED: Final = 65_536
_MAX_CAUSES: Final = 5
_MAX_MEMBERS: Final = 100
# a shell's exit codes for "not executable" and "command not found"
_COMMAND_NOT_RUN: Final = frozenset({126, 127})
# seccomp ends a process with SIGSYS when it makes a system call that its sandbox forbids
_SIGSYS: Final = getattr(signal, "SIGSYS", None)


class ErrorMapper:
    """Maps exceptions to errors: a user's own mappings first, the nearest base class winning, then
    the stock ones.

    Args:
        redact: cleans messages; without it an error has the name of its exception alone.
    """

    def __init__(self, redact: Redact | None = None) -> None:
        self._redact = redact
        self._custom: dict[str, MappingTarget] = {}

    def register(self, exception: type[BaseException] | str, target: MappingTarget) -> None:
        """Map an exception class and its subclasses.

        Args:
            exception: the class, or its qualified name, ``httpx.ReadTimeout``.
            target: an error class, or a function from the exception to an error.

        Raises:
            ConfigurationError: the exception or the target is something else.
        """
        if not callable(target):
            target = _error_class(target)
        if not isinstance(exception, str | type):
            raise ConfigurationError(
                f"errors maps exception classes or their names, not {type(exception).__name__}"
            )
        if isinstance(exception, str):
            self._custom[exception] = target
        else:
            self._custom[class_name(exception)] = target

    def classify(self, exception: BaseException, *, redact: Redact | None = None) -> ToolError:
        """Return the standard's error for an exception; never raises.

        Args:
            exception: what the tool raised.
            redact: used in the place of the mapper's own.
        """
        clean = redact if redact is not None else self._redact
        try:
            custom = self._from_custom(exception, clean)
            if custom is not None:
                return custom
            return self._from_stock(exception, clean)
        except Exception:
            return ToolError.of(ErrorClass.EXECUTION_FAILED, native_error_ref=error_name(exception))

    def _from_custom(self, exception: BaseException, redact: Redact | None) -> ToolError | None:
        if not self._custom:
            return None
        for name in mro_names(type(exception)):
            target = self._custom.get(name)
            if target is not None:
                return _from_target(target, exception, redact)
        return None

    def _from_stock(self, exception: BaseException, redact: Redact | None) -> ToolError:
        if isinstance(exception, BaseExceptionGroup):
            return self._from_group(exception, redact)
        verdict, reference = _verdict(exception)
        if verdict is FAILED:
            verdict = self._from_causes(exception)
        return _build(verdict, exception, redact, reference)

    def _from_causes(self, exception: BaseException) -> Verdict:
        """Return the verdict of the stated causes: in ``raise ToolFailure from httpx.ConnectError``
        the wrapper's class is not known, the cause is.
        """
        cause = peek(exception, "__cause__")
        for _ in range(_MAX_CAUSES):
            if not isinstance(cause, BaseException):
                break
            custom = self._from_custom(cause, None)
            if custom is not None:
                return Verdict(custom.error_class, custom.recoverability)
            verdict, _reference = _verdict(cause)
            if verdict is not FAILED:
                return verdict
            cause = peek(cause, "__cause__")
        return FAILED

    def _from_group(
        self, group: BaseExceptionGroup[BaseException], redact: Redact | None
    ) -> ToolError:
        members = [self.classify(leaf, redact=redact) for leaf in _leaves(group)]
        classes = {member.error_class for member in members}
        reference = error_name(group)
        if len(classes) == 1:
            error = members[0].model_copy(update={"native_error_ref": reference})
        else:
            error = ToolError.of(ErrorClass.PARTIAL_FAILURE, native_error_ref=reference)
        waits = [member.retry_after for member in members if member.retry_after is not None]
        error.retry_after = max(waits, default=None)
        messages = dict.fromkeys(member.message for member in members[:5])
        error.message = f"{len(members)} failures: {'; '.join(messages)}"[:_MAX_MESSAGE]
        return error


_DEFAULT: Final = ErrorMapper()


def classify(exception: BaseException, *, redact: Redact | None = None) -> ToolError:
    """Return the standard's error for an exception by the stock mapping; see
    ErrorMapper.classify.
    """
    return _DEFAULT.classify(exception, redact=redact)


def _error_class(target: str) -> ErrorClass:
    """Return a class of the taxonomy; its word is one as well."""
    try:
        return ErrorClass(target)
    except ValueError:
        raise ConfigurationError(
            f"errors maps to an error class or a function, not to {target!r}"
        ) from None


def _from_target(
    target: MappingTarget, exception: BaseException, redact: Redact | None
) -> ToolError | None:
    """Return what a user's own mapping makes of an exception; ``None`` where it makes nothing or
    raises.
    """
    made: object = target
    if not isinstance(target, ErrorClass):
        try:
            made = target(exception)
        except (Exception, SystemExit, GeneratorExit):
            return None
    if isinstance(made, ErrorClass):
        return _build(Verdict(made), exception, redact, error_name(exception))
    if isinstance(made, ToolError):
        # a user's function often copies str(exception) into the message: the same redactor applies
        return made.model_copy(update={"message": _clean(made.message, redact)})
    return None


def _verdict(exception: BaseException) -> tuple[Verdict, str]:
    """Return the verdict on an exception and the reference to it, such as ``http:503``."""
    reference = error_name(exception)
    if isinstance(exception, GovernedOutcome) and exception.error_class is not None:
        return Verdict(exception.error_class), reference
    if cancellation(exception) is not None:
        return CANCELED, reference
    found = _verdict_of_code(exception)
    if found is not None:
        return found
    names = mro_names(type(exception))
    if "subprocess.CalledProcessError" in names:
        return _process_verdict(exception, reference)
    if "urllib.error.URLError" in names:
        # URLError(socket.gaierror(...)): the reason is the failure
        reason = peek(exception, "reason")
        if isinstance(reason, BaseException) and reason is not exception:
            return _verdict(reason)[0], reference
    for name in names:
        if name == "builtins.OSError":
            return BY_ERRNO.get(peek(exception, "errno"), FAILED), reference
        known = BY_NAME.get(name)
        if known is not None:
            return known, reference
    return FAILED, reference


def _verdict_of_code(exception: BaseException) -> tuple[Verdict, str] | None:
    """Return the verdict on an exception that has a code of JSON-RPC, HTTP or gRPC."""
    if any(name.startswith("mcp.") for name in mro_names(type(exception))):
        code = mcp_code(exception)
        if code is not None:
            return BY_MCP_CODE.get(code, FAILED), f"mcp:{code}"
    status = http_status(exception)
    if status is not None:
        return for_http_status(status), f"http:{status}"
    grpc = grpc_code(exception)
    if grpc is not None:
        return BY_GRPC_CODE.get(grpc, FAILED), f"grpc:{grpc}"
    return None


def _process_verdict(exception: BaseException, reference: str) -> tuple[Verdict, str]:
    ended = exit_reference(exception)
    if ended is None:
        return FAILED, reference
    how, number = ended
    reference = f"{how}:{number}"
    if how == "exit" and number in _COMMAND_NOT_RUN:
        return SETUP_REQUIRED, reference
    if how == "signal" and number == _SIGSYS:
        return SANDBOX_VIOLATION, reference
    return Verdict(ErrorClass.EXECUTION_FAILED, Recoverability.UNKNOWN), reference


def _build(
    verdict: Verdict, exception: BaseException, redact: Redact | None, reference: str
) -> ToolError:
    error = ToolError.of(
        verdict.error_class,
        message_of(exception, redact),
        native_error_ref=reference,
        retry_after=retry_after(exception),
    )
    if verdict.recoverability is None:
        return error
    error.recoverability = verdict.recoverability
    if verdict.recoverability is Recoverability.CHANGE_ARGUMENTS:
        error.retry.arguments_must_change = True
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
    # a __str__ may return a subclass of str with methods of its own
    if type(text) is not str or not text.strip():
        return name
    return f"{name}: {_clean(text, redact)}"[:_MAX_MESSAGE]


def _clean(text: str, redact: Redact | None) -> str:
    if redact is None or not text:
        return ""
    if len(text) > _MAX_SCANNED:
        # cut at white space: half a token at the end might be half a secret that no detector finds
        head = text[:_MAX_SCANNED]
        end = max(head.rfind(" "), head.rfind("\n"), 0)
        text = f"{head[:end]} [cut]"
    try:
        cleaned = redact(escape_surrogates(text))
    except Exception:
        return _WITHHELD
    if type(cleaned) is not str:
        return _WITHHELD
    return cleaned[:_MAX_MESSAGE]


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
