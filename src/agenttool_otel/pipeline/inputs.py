"""The four inputs of a call: parsed, checked, and changed only with a record of who changed what."""

from __future__ import annotations

from typing import Any

from agenttool_otel.invocation import Invocation
from agenttool_otel.names import Attr, ErrorClass, Event, InvocationStatus, MutationSource, ResultStatus
from agenttool_otel.pipeline.endings import Endings
from agenttool_otel.pipeline.target import Target
from agenttool_otel.recorder import Recorder
from agenttool_otel.records import InputMutation
from agenttool_otel.records.values import changed_pointers, digest, to_json_value

__all__ = ["Inputs", "is_partial"]

_MAX_FIELDS = 64


class Inputs:
    """Parses and changes inputs.

    Args:
        endings: how a call ends that can't go on.
        recorder: telemetry.
    """

    __slots__ = ("_endings", "_recorder")

    def __init__(self, endings: Endings, recorder: Recorder) -> None:
        self._endings = endings
        self._recorder = recorder

    def parse(self, call: Invocation, target: Target) -> None:
        """Bind the arguments, check them against the model-facing schema, and prepare the observable input.

        Args:
            call: the call.
            target: what it runs.
        """
        spec = call.spec
        try:
            target.bind(call)
        except (TypeError, ValueError) as error:
            # Python's own words for a TypeError name parameters; a ValueError may quote a value
            self._endings.invalid(call, str(error) if type(error) is TypeError else "the arguments can't be read")
        if is_partial(call.model_input) or is_partial(call.observable_input):
            self._endings.undecidable(call, "the arguments are too large or too deep to be decided")
        if not call.validated:
            if not spec.check.is_valid(call.model_input):
                self._check(call)
            defaults = spec.parameters.defaults if spec.parameters is not None else None
            call.observable_input = {**defaults, **call.model_input} if defaults else call.model_input
        call.permission_input = call.observable_input
        if spec.validate is not None:
            self.validate(call)
        call.enter(InvocationStatus.ARGUMENTS_READY)

    def _check(self, call: Invocation) -> None:
        problems = [
            (pointer, keyword)
            for pointer, keyword in call.spec.check.problems(call.model_input)
            if not _accepted_as_python(call, pointer)
        ]
        if problems:
            self._endings.invalid(call, _told(problems))

    def validate(self, call: Invocation) -> None:
        """Run the developer's own value check.

        Args:
            call: the call.
        """
        check = call.spec.validate
        if check is None:
            return
        try:
            check(call.permission_input)
        except Exception as error:
            message = self._endings.message_of(error)
            self._endings.refuse(
                call,
                ErrorClass.INVALID_ARGUMENTS,
                message,
                InvocationStatus.VALIDATION_FAILED,
                ResultStatus.FAILED,
            )

    def mutate(
        self,
        call: Invocation,
        target: Target,
        updated: Any,
        source: MutationSource,
        source_ref: str,
        reason: str,
    ) -> None:
        """Replace the permission input, record who did it, and validate it like a model's.

        Args:
            call: the call.
            target: what it runs.
            updated: the new JSON arguments.
            source: kind of author.
            source_ref: the author.
            reason: why.
        """
        before, after = call.permission_input, to_json_value(updated)
        if not isinstance(after, dict) or is_partial(after):
            self._endings.mutation_failed(call, "the changed input is no object, or too large")
        changed = changed_pointers(before, after)
        mutation = InputMutation(
            invocation_id=call.id,
            source_type=source,
            source_ref=source_ref or None,
            from_input_ref=digest(before),
            to_input_ref=digest(after),
            changed_fields=changed,
            reason=reason,
        )
        call.mutations.append(mutation)
        self._recorder.emit(
            call,
            Event.INPUT_MUTATED,
            {
                Attr.MUTATION_ID: mutation.mutation_id,
                Attr.MUTATION_SOURCE: source.value,
                Attr.MUTATION_SOURCE_REF: source_ref,
                Attr.MUTATION_CHANGED_FIELDS: changed[:_MAX_FIELDS],
                Attr.MUTATION_DIGEST_FROM: mutation.from_input_ref or "",
                Attr.MUTATION_DIGEST_TO: mutation.to_input_ref or "",
            },
        )
        if call.spec.declaration.input_contract.mutation_policy not in _ALLOWED[source]:
            self._endings.mutation_failed(call, f"the tool's contract does not let a {source.value} change its input")
        if not call.spec.check.is_valid(after):
            told = _told(call.spec.check.problems(after))
            self._endings.mutation_failed(call, f"the changed input does not fit the schema: {told}")
        call.permission_input = after
        try:
            target.rebind(call, before, after)
        except ValueError as error:
            self._endings.mutation_failed(call, f"the changed input can't be used: {type(error).__name__}")
        self.validate(call)


_ALLOWED = {
    MutationSource.HOOK: {"allow", "hooks_only"},
    MutationSource.PERMISSION_PROMPT: {"allow", "approval_only"},
    MutationSource.ADAPTER: {"allow"},
    MutationSource.MIGRATION: {"allow"},
    MutationSource.RUNTIME: {"allow"},
}
"""Which ``mutation_policy`` of an input contract lets whom replace the input."""


def is_partial(document: dict[str, Any]) -> bool:
    """Tell whether something was left out of a JSON document on the way from Python.

    Half a value must never be decided on as if it were the value.

    Args:
        document: what ``to_json_value`` made of the arguments.
    """
    stack = [value for value in document.values() if type(value) is dict or type(value) is list]
    while stack:
        value = stack.pop()
        if type(value) is dict:
            if "$truncated" in value or "$error" in value:
                return True
            stack += [v for v in value.values() if type(v) is dict or type(v) is list]
        else:
            stack += [v for v in value if type(v) is dict or type(v) is list]
    return "$truncated" in document or "$error" in document


def _accepted_as_python(call: Invocation, pointer: str) -> bool:
    """A Python caller may pass what the annotation names (a model, a Path), whatever its JSON form looks like."""
    name = pointer.split("/", 2)[1].replace("~1", "/").replace("~0", "~") if pointer else ""
    parameters = call.spec.parameters
    if parameters is None or name not in call.bound:
        return False
    return parameters.accepts(name, call.bound[name])


def _told(problems: list[tuple[str, str]]) -> str:
    return ", ".join(f"{pointer or '/'} fails {keyword!r}" for pointer, keyword in problems)
