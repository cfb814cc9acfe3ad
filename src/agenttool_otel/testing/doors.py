"""The test of a door: what each framework's or protocol's door has to do, whoever wrote it.

A door's tests make a ``DoorDriver``, which knows how its framework makes and calls a tool, and run
the checks with it::

    @pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
    def test_the_door(check):
        check(ToyDriver())

A check raises ``AssertionError`` with what was expected. It needs opentelemetry-sdk, as
``capture()`` does.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.call.running.handle import current_call
from agenttool_otel.context.context import carry_context
from agenttool_otel.errors import AgentToolError, GovernedOutcome
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import Attr, GenAI
from agenttool_otel.policy.engines.static import StaticEngine, decision
from agenttool_otel.testing.capture import Capture, capture

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

Body = Callable[[dict[str, Any]], Any]
"""A tool's body: takes the arguments as one dictionary, and returns text."""

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
"""JSON Schema of the tools that the checks make."""

_NAME: Final = "look_up"
_DESCRIPTION: Final = "Look a word up."
_PARALLEL: Final = 8
_PATIENCE: Final = 120  # seconds for a process that imports the package on a busy machine
_ELSEWHERE: Final = """
import sys
from agenttool_otel.testing.doors import resume_here
resume_here(*sys.argv[1:])
"""


class DoorDriver(ABC):
    """How a framework makes and calls a tool; made without arguments, in each process of a check.

    Attributes:
        is_async: whether ``call`` and ``resume`` return awaitables, and bodies are coroutine
            functions.
    """

    is_async: ClassVar[bool] = False

    @abstractmethod
    def make(self, name: str, description: str, schema: Mapping[str, Any], body: Body) -> Any:
        """Make a tool of the framework, not governed.

        Args:
            name: its name.
            description: its description.
            schema: JSON Schema of its arguments.
            body: what it runs, with one dictionary; a coroutine function where ``is_async``.
        """

    @abstractmethod
    def call(self, tool: Any, arguments: Mapping[str, Any], call_id: str) -> Any:
        """Call a tool as the framework's agent does.

        Args:
            tool: the tool.
            arguments: what the model sent.
            call_id: the model's id of the call.
        """

    @abstractmethod
    def resume(self, tool: Any, ref: str) -> Any:
        """Go on with a call that was asked about, maybe by another process.

        Args:
            tool: the tool, governed.
            ref: the invocation id.
        """

    @abstractmethod
    def schema(self, tool: Any) -> Mapping[str, Any]:
        """Return the schema of the arguments that a model is shown.

        Args:
            tool: the tool.
        """

    def govern(self, governor: Governor, tool: Any) -> Any:
        """Govern a tool; ``govern(tool)`` has to find the door where this is not overridden.

        Args:
            governor: the Governor.
            tool: the tool.
        """
        return governor.govern(tool, read_only=True, concurrency_safe=True)

    def text(self, given: Any) -> str:
        """Return the text that the body returned, of what ``call`` or ``resume`` gave.

        Args:
            given: the framework's result.
        """
        return str(given)

    def is_refusal(self, given: Any) -> bool:
        """Return whether what ``call`` gave tells a model that the tool did not run; a raised
        ``ToolDenied`` or ``ApprovalRequired`` is a refusal in any case.

        Args:
            given: the framework's result.
        """
        return False


class _Given(NamedTuple):
    """What a call gave or raised."""

    value: Any
    error: BaseException | None

    def refused(self, driver: DoorDriver) -> bool:
        if self.error is not None:
            return isinstance(self.error, AgentToolError)
        return driver.is_refusal(self.value)


class _Trial:
    """One governed tool, what its body was run with, and what its calls left."""

    def __init__(self, driver: DoorDriver, captured: Capture, answer: Body) -> None:
        self.driver = driver
        self.captured = captured
        self.ran: list[dict[str, Any]] = []
        self.plain = driver.make(_NAME, _DESCRIPTION, SCHEMA, self._body(answer))
        self.tool = driver.govern(captured.governor, self.plain)

    def _body(self, answer: Body) -> Body:
        def body(arguments: dict[str, Any]) -> Any:
            self.ran.append(dict(arguments))
            return answer(arguments)

        async def abody(arguments: dict[str, Any]) -> Any:
            given = body(arguments)
            return await given if inspect.isawaitable(given) else given

        return abody if self.driver.is_async else body

    def call(self, word: Any = "tree", call_id: str = "call_1") -> _Given:
        return _settled(lambda: self.driver.call(self.tool, {"word": word}, call_id))

    def resume(self, ref: str) -> _Given:
        return _settled(lambda: self.driver.resume(self.tool, ref))

    def answer(self, ref: str, answer: ApprovalAnswer) -> None:
        store = self.captured.governor.approvals.store
        store.answer(store.stored_call(ref).request.request_id, answer)

    def asked(self) -> str:
        """Make a call that is asked about, and return its invocation id."""
        given = self.call()
        _expect(given.refused(self.driver), f"an asked call is no result, but gave {given}")
        _expect(not self.ran, "an asked call does not run before its answer")
        return str(_attribute(self.captured.span, Attr.INVOCATION_ID))


@contextmanager
def _trial(driver: DoorDriver, policy: Any, answer: Body | None = None) -> Iterator[_Trial]:
    engine = StaticEngine(policy if isinstance(policy, str) else {_NAME: policy})
    with capture(policy=engine) as captured:
        yield _Trial(driver, captured, answer or _found)


def _found(arguments: dict[str, Any]) -> str:
    return f"found {arguments['word']}"


def _settled(call: Callable[[], Any]) -> _Given:
    try:
        given = call()
        if inspect.isawaitable(given):
            given = asyncio.run(_awaited(given))
    except BaseException as error:
        # of the person at the terminal, and no outcome of a call; a canceled call's is one
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return _Given(None, error)
    return _Given(given, None)


async def _awaited(given: Awaitable[Any]) -> Any:
    return await given


def _expect(holds: object, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _attribute(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(name)


def _tool_spans(captured: Capture) -> list[ReadableSpan]:
    return [span for span in captured.spans if span.name == f"execute_tool {_NAME}"]


def allowed_call_runs(driver: DoorDriver) -> None:
    """An allowed call runs once, in one span, and its caller gets the result."""
    with _trial(driver, "allow") as trial:
        given = trial.call()
        _expect(given.error is None, f"an allowed call raised {given.error!r}")
        _expect(driver.text(given.value) == "found tree", f"the result is {given.value!r}")
        _expect(trial.ran == [{"word": "tree"}], f"the body ran with {trial.ran}")
        spans = _tool_spans(trial.captured)
        _expect(len(spans) == 1, f"one call leaves one span, not {len(spans)}")


def denied_call_does_not_run(driver: DoorDriver) -> None:
    """A denied call does not run, is refused in the framework's form, and leaves a span."""
    with _trial(driver, "deny") as trial:
        given = trial.call()
        _expect(given.refused(driver), f"a denied call is no result, but gave {given}")
        _expect(not trial.ran, "a denied call does not run")
        status = _attribute(trial.captured.span, Attr.INVOCATION_STATUS)
        _expect(status == "denied", f"the span of a denied call has the status {status}")


def invalid_arguments_are_refused(driver: DoorDriver) -> None:
    """Arguments that don't fit the schema run nothing, and leave a span with a typed error."""
    with _trial(driver, "allow") as trial:
        given = trial.call(word=3)
        _expect(given.error is not None or driver.is_refusal(given.value), f"it gave {given}")
        _expect(not trial.ran, "a call with wrong arguments does not run")
        error = _attribute(trial.captured.span, GenAI.ERROR_TYPE)
        _expect(error, "the span of a call with wrong arguments has no error.type")


def approved_call_runs_once(driver: DoorDriver) -> None:
    """A call that a person approves runs once, as the same invocation."""
    with _trial(driver, "ask") as trial:
        ref = trial.asked()
        trial.answer(ref, ApprovalAnswer(approved=True, answered_by="user:kit"))
        given = trial.resume(ref)
        _expect(given.error is None, f"an approved call raised {given.error!r}")
        _expect(driver.text(given.value) == "found tree", f"the result is {given.value!r}")
        # an answer is used up by the first run
        trial.resume(ref)
        _expect(trial.ran == [{"word": "tree"}], f"it ran with {trial.ran}, and not once")
        last = _tool_spans(trial.captured)[1]
        _expect(_attribute(last, Attr.INVOCATION_ID) == ref, "the resumed call has another id")


def rejected_call_does_not_run(driver: DoorDriver) -> None:
    """A call that a person rejects does not run."""
    with _trial(driver, "ask") as trial:
        ref = trial.asked()
        trial.answer(ref, ApprovalAnswer(approved=False, answered_by="user:kit"))
        given = trial.resume(ref)
        _expect(given.refused(driver), f"a rejected call is no result, but gave {given}")
        _expect(not trial.ran, "a rejected call does not run")


def unanswered_call_does_not_run(driver: DoorDriver) -> None:
    """A call that is resumed before its answer does not run, and still waits."""
    with _trial(driver, "ask") as trial:
        ref = trial.asked()
        given = trial.resume(ref)
        _expect(given.refused(driver), f"a call without an answer gave {given}")
        _expect(not trial.ran, "a call without an answer does not run")
        trial.answer(ref, ApprovalAnswer(approved=True, answered_by="user:kit"))
        _expect(driver.text(trial.resume(ref).value) == "found tree", "it does not wait any more")


def edited_call_runs_with_the_edit(driver: DoorDriver) -> None:
    """A call whose arguments a person edits runs with the edited ones alone."""
    with _trial(driver, "ask") as trial:
        ref = trial.asked()
        edited = {"word": "bush"}
        trial.answer(
            ref, ApprovalAnswer(approved=True, answered_by="user:kit", edited_input=edited)
        )
        given = trial.resume(ref)
        _expect(given.error is None, f"an edited call raised {given.error!r}")
        _expect(trial.ran == [edited], f"the body ran with {trial.ran}")


def approved_call_resumes_in_another_process(driver: DoorDriver) -> None:
    """A call that one process asked about is run by another one, with its native id."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/approvals.db"
        ran = Path(folder) / "ran"
        with capture(policy=StaticEngine("ask"), approvals=url) as captured:
            trial = _Trial(driver, captured, _found)
            ref = trial.asked()
            trial.answer(ref, ApprovalAnswer(approved=True, answered_by="user:kit"))
        found = _resume_elsewhere(driver, url, ref, ran)
        _expect(found["text"] == "found tree", f"the other process gave {found}")
        _expect(ran.read_text("utf-8") == '{"word": "tree"}\n', "it ran once in the other process")
        _expect(found["invocation_id"] == ref, "the resumed call has another invocation id")
        _expect(found["call_id"] == "call_1", "the resumed call has lost its native id")


def _resume_elsewhere(driver: DoorDriver, url: str, ref: str, ran: Path) -> dict[str, Any]:
    kind = type(driver)
    done = subprocess.run(  # noqa: S603 - this program's own interpreter
        [sys.executable, "-c", _ELSEWHERE, kind.__module__, kind.__qualname__, url, ref, str(ran)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    _expect(done.returncode == 0, f"the other process failed:\n{done.stderr}")
    # a framework may print lines of its own before
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def resume_here(module: str, name: str, url: str, ref: str, ran: str) -> None:
    """Go on with a call that another process asked about, and print what came of it as JSON.

    Args:
        module: where the driver is.
        name: its class.
        url: the approval store.
        ref: the invocation id.
        ran: a file that gets a line for each run of the body.
    """
    driver: DoorDriver = getattr(importlib.import_module(module), name)()

    def write(arguments: dict[str, Any]) -> str:
        with Path(ran).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(arguments)}\n")
        return _found(arguments)

    with capture(policy=StaticEngine("ask"), approvals=url) as captured:
        given = _Trial(driver, captured, write).resume(ref)
        if given.error is not None:
            raise given.error
        found = {
            "text": driver.text(given.value),
            "invocation_id": _attribute(captured.span, Attr.INVOCATION_ID),
            "call_id": _attribute(captured.span, GenAI.TOOL_CALL_ID),
        }
    sys.stdout.write(f"{json.dumps(found)}\n")


class _OwnError(Exception):
    """An exception of a tool's own."""


def tool_error_is_recorded(driver: DoorDriver) -> None:
    """What a body raises is the framework's to handle, and the span shows that the call failed."""

    def fail(arguments: dict[str, Any]) -> str:
        raise _OwnError("no such word")

    with _trial(driver, "allow", fail) as trial:
        given = trial.call()
        # a framework may make a message of it, and then nothing is raised
        own = isinstance(given.error, _OwnError) or given.error is None
        _expect(own, f"the caller got {given.error!r} in place of the tool's own exception")
        status = _attribute(trial.captured.span, Attr.INVOCATION_STATUS)
        _expect(status == "failed", f"the span of a failed call has the status {status}")


def canceled_call_ends(driver: DoorDriver) -> None:
    """A call that is canceled ends as canceled, and its caller does not get a result."""

    def wait(arguments: dict[str, Any]) -> Any:
        handle = current_call()
        _expect(handle is not None, "the body does not run inside its call")
        trial.captured.governor.cancel(handle.invocation_id, "enough")  # type: ignore[union-attr]
        if trial.driver.is_async:
            # the call's task is canceled where it waits
            return asyncio.sleep(_PATIENCE)
        handle.raise_if_canceled()  # type: ignore[union-attr]
        return "was not canceled"

    with _trial(driver, "allow", wait) as trial:
        given = trial.call()
        stopped = isinstance(given.error, (concurrent.futures.CancelledError, GovernedOutcome))
        _expect(stopped or driver.is_refusal(given.value), f"a canceled call gave {given}")
        status = _attribute(trial.captured.span, Attr.INVOCATION_STATUS)
        _expect(status == "canceled", f"the span of a canceled call has the status {status}")


def parallel_calls_are_apart(driver: DoorDriver) -> None:
    """Calls at the same time get each their own result, span and native id."""
    words = [f"word{number}" for number in range(_PARALLEL)]
    with _trial(driver, "allow") as trial:
        given = _at_once(driver, trial.tool, words)
        texts = [driver.text(value) for value in given]
        _expect(texts == [f"found {word}" for word in words], f"the results are {texts}")
        ids = {_attribute(span, GenAI.TOOL_CALL_ID) for span in _tool_spans(trial.captured)}
        _expect(ids == {f"call_{word}" for word in words}, f"the native ids are {sorted(ids)}")


def _at_once(driver: DoorDriver, tool: Any, words: list[str]) -> list[Any]:
    def call(word: str) -> Any:
        return driver.call(tool, {"word": word}, f"call_{word}")

    async def gather() -> list[Any]:
        return list(await asyncio.gather(*(call(word) for word in words)))

    if driver.is_async:
        return asyncio.run(gather())
    with concurrent.futures.ThreadPoolExecutor(len(words)) as threads:
        return list(threads.map(carry_context(call), words))


def schema_is_unchanged(driver: DoorDriver) -> None:
    """A model is shown the schema that the tool has without governance."""
    with _trial(driver, "allow") as trial:
        plain = driver.schema(trial.plain)
        governed = driver.schema(trial.tool)
        _expect(governed == plain, f"the schema of the governed tool is {governed}, not {plain}")


def spans_nest(driver: DoorDriver) -> None:
    """The call's span is a child of the caller's, and the body's spans are children of the call's."""

    def open_span(arguments: dict[str, Any]) -> str:
        tracer.start_span("inside").end()
        return _found(arguments)

    with _trial(driver, "allow", open_span) as trial:
        tracer = trial.captured.tracer_provider.get_tracer("kit")
        with tracer.start_as_current_span("outside"):
            trial.call()
        by_name = {span.name: span for span in trial.captured.spans}
        call = by_name[f"execute_tool {_NAME}"]
        _expect(_is_child(call, by_name["outside"]), "the call's span is not inside its caller's")
        _expect(_is_child(by_name["inside"], call), "the body's span is not inside the call's")


def _is_child(span: ReadableSpan, of: ReadableSpan) -> bool:
    around = of.get_span_context()
    if span.parent is None or around is None:
        return False
    return span.parent.span_id == around.span_id


def native_id_is_recorded(driver: DoorDriver) -> None:
    """The model's id of a call is on its span, whether it ran, was denied or waits."""
    for word in ("allow", "deny", "ask"):
        with _trial(driver, word) as trial:
            trial.call(call_id="call_native")
            found = _attribute(trial.captured.span, GenAI.TOOL_CALL_ID)
            _expect(found == "call_native", f"the native id of a call with {word} is {found}")


def obliged_redaction_is_delivered(driver: DoorDriver) -> None:
    """What a policy obliges to redact does not reach the caller, nor the framework's result."""
    policy = decision("allow", obligations={"redact_result": ["*"]})
    with _trial(driver, policy) as trial:
        given = trial.call()
        _expect(given.error is None, f"a redacted call raised {given.error!r}")
        _expect("found tree" not in driver.text(given.value), "the result is not redacted")
        _expect("found tree" not in repr(given.value), "the framework's result still has it")


DOOR_CHECKS: Final[tuple[Callable[[DoorDriver], None], ...]] = (
    allowed_call_runs,
    denied_call_does_not_run,
    invalid_arguments_are_refused,
    approved_call_runs_once,
    rejected_call_does_not_run,
    unanswered_call_does_not_run,
    edited_call_runs_with_the_edit,
    approved_call_resumes_in_another_process,
    tool_error_is_recorded,
    canceled_call_ends,
    parallel_calls_are_apart,
    schema_is_unchanged,
    spans_nest,
    native_id_is_recorded,
    obliged_redaction_is_delivered,
)
"""Every check, in the order in which a new door is made to pass them."""


def check_door(driver: DoorDriver) -> None:
    """Run every check.

    Args:
        driver: of the door.

    Raises:
        AssertionError: the door does not pass; the message has the check and what was expected.
    """
    for check in DOOR_CHECKS:
        try:
            check(driver)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error
