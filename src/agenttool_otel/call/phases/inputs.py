"""The four inputs of a call: parsed, checked, and changed only with a record of who changed
what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import core_schema

from agenttool_otel.call.invocation import NOT_READ, Invocation
from agenttool_otel.call.phases.refusals import Refusals
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.target import Target
from agenttool_otel.names import (
    Attr,
    ErrorClass,
    Event,
    InvocationStatus,
    MutationSource,
    SchemaVisibility,
)
from agenttool_otel.records import InputMutation
from agenttool_otel.values.canonical import digest, keyed_digest
from agenttool_otel.values.conversion import DEFAULT_MAX_CHARS, DEFAULT_MAX_DEPTH, DEFAULT_MAX_NODES
from agenttool_otel.values.copying import NotCopyable
from agenttool_otel.values.inspection import short_name
from agenttool_otel.values.numbers import NoJsonNumber
from agenttool_otel.values.pointers import changed_pointers, escape_token, unescape_token
from agenttool_otel.values.policy_value import NotUnicode, to_policy_value
from agenttool_otel.values.snapshot import snapshot

_MAX_FIELDS = 64
_MAX_PROBLEMS = 1000
_MAX_SHOWN = 8
_QUOTING = frozenset({"value_error", "assertion_error", "union_tag_invalid"})
"""Errors of pydantic whose words may hold the value; so may those of a validator that makes errors
of its own.
"""
_ATOMS = frozenset({str, int, float, bool, bytes})


_PYDANTIC_ERRORS = frozenset(get_args(core_schema.ErrorType))


class Inputs:
    """Parses and changes inputs."""

    __slots__ = ("_refusals", "_span")

    def __init__(self, refusals: Refusals, span: CallSpan) -> None:
        self._refusals = refusals
        self._span = span

    def parse(self, call: Invocation, target: Target) -> None:
        """Bind the arguments, check them against the model-facing schema, and prepare the
        observable input.
        """
        spec, inputs = call.spec, call.inputs
        inputs.observable_input = NOT_READ
        self._bind(call, target)
        # reading the arguments changed something about them
        read = inputs.observable_input is not NOT_READ
        if is_partial(inputs.model_input):
            self._refusals.undecidable(call, self._partial(call, inputs.model_input))
        if read and is_partial(inputs.observable_input):
            self._refusals.undecidable(call, self._partial(call, inputs.observable_input))
        if not inputs.validated:
            if not spec.check.is_valid(inputs.model_input):
                self._check(call)
            if not read:
                # "Never mutate `model_input` in place" (standard, "Mutation rule")
                inputs.observable_input = inputs.model_input
                if spec.parameters is not None and spec.parameters.defaults:
                    inputs.observable_input = {**spec.parameters.defaults, **inputs.model_input}
        elif inputs.unchecked:
            self._find_misfits(call)
        if spec.declaration.input_contract.internal_only_fields:
            self._take_out_internal(call)
        inputs.permission_input = inputs.observable_input
        if spec.validate is not None:
            self.validate(call)
        call.enter(InvocationStatus.ARGUMENTS_READY)

    def _bind(self, call: Invocation, target: Target) -> None:
        """Bind the arguments, or end the call because they can't be."""
        try:
            target.bind(call)
        except NotCopyable:
            self._refusals.undecidable(
                call, "an argument can't be copied, so that it could change after the decision"
            )
        except ValidationError as error:
            self._refusals.invalid(call, self._describe(call, _refused(call, error)))
        except (TypeError, ValueError) as error:
            if type(error) is not TypeError:  # it may quote a value
                self._refusals.invalid(call, "the arguments can't be read")
            # "f() got an unexpected keyword argument 'AKIA...'": a keyword may be a secret
            self._refusals.invalid(call, self._refusals.redact(str(error), call))

    def _find_misfits(self, call: Invocation) -> None:
        """Find the arguments of which a reader made something that does not fit the schema."""
        check, shown = call.spec.check, call.inputs.observable_input
        if not check.is_valid(shown):
            call.inputs.misfits = check.misfits(self._problems(call, shown))

    def _take_out_internal(self, call: Invocation) -> None:
        """Leave internal-only arguments out of what is decided; no model may give one."""
        internal = call.spec.declaration.input_contract.internal_only_fields
        if not call.inputs.model_input.keys().isdisjoint(internal):
            self._refusals.invalid(call, "an internal argument was given")
        visible = {}
        for name, value in call.inputs.observable_input.items():
            if name not in internal:
                visible[name] = value
        call.inputs.observable_input = visible

    def _check(self, call: Invocation) -> None:
        """See whether arguments that miss the schema may run: a plain function takes what its
        caller gives it.
        """
        problems = self._problems(call, call.inputs.model_input)
        if call.inputs.unchecked and all(pointer for pointer, _ in problems):
            call.inputs.misfits = call.spec.check.misfits(problems)
        elif problems:
            self._refusals.invalid(call, self._describe(call, problems[:_MAX_SHOWN]))

    def _problems(self, call: Invocation, shown: dict[str, Any]) -> list[tuple[str, str]]:
        """Return what in a document misses the schema, but for Python values that are what the
        annotation names.
        """
        found = call.spec.check.problems(shown, limit=_MAX_PROBLEMS)
        if len(found) == _MAX_PROBLEMS:  # there may be more: no argument counts as one that fits
            found += [(f"/{escape_token(name)}", "must fit the schema") for name in shown]
        return [
            (pointer, wanted) for pointer, wanted in found if not _accepted_as_python(call, pointer)
        ]

    def _describe(self, call: Invocation, problems: list[tuple[str, str]]) -> str:
        """Describe where the arguments don't fit; the places are keys, which may be secrets
        themselves.
        """
        places = [
            (self._pointer(call, pointer).removeprefix("/").replace("/", "."), text)
            for pointer, text in problems
        ]
        return ", ".join(
            f"{place}: {text}" if place else f"the arguments {text}" for place, text in places
        )

    def _pointer(self, call: Invocation, pointer: str) -> str:
        """Redact the parts of a JSON pointer, each for itself: next to a slash nothing would look
        like a secret.
        """
        parts = (self._refusals.redact(unescape_token(part), call) for part in pointer.split("/"))
        return "/".join(escape_token(part) for part in parts)

    def _partial(self, call: Invocation, shown: dict[str, Any]) -> str:
        """Describe which argument the policy can't be shown, and why."""
        pointer, tag = next(_partial_places(shown), ("", {}))
        place = self._pointer(call, pointer).removeprefix("/").replace("/", ".")
        argument = f"the argument {place}" if place else "the arguments"
        if str(tag.get("$error", "")).endswith(NoJsonNumber.__name__):
            return f"{argument} holds a number that JSON lacks (infinite, undefined or too large): nothing is decided"
        return (
            f"{argument} can't be shown to the policy whole ({_reason(tag)}), so nothing is decided"
        )

    def validate(self, call: Invocation) -> None:
        """Run the developer's own value check."""
        if (check := call.spec.validate) is None:
            return
        try:
            # a copy: a check that sorts a list in place must not change what runs
            check(snapshot(call.inputs.permission_input))
        except Exception as error:
            message = self._refusals.message_of(error, call)
            self._refusals.refuse(
                call, ErrorClass.INVALID_ARGUMENTS, message, InvocationStatus.VALIDATION_FAILED
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
        """Replace the permission input, record who did it, and validate it like a model's."""
        before, after = call.inputs.permission_input, to_policy_value(updated)
        if not isinstance(after, dict) or is_partial(after):
            self._refusals.mutation_failed(call, "the changed input is no object, or too large")
        changed = [self._pointer(call, pointer) for pointer in changed_pointers(before, after)]
        mutation = InputMutation(
            invocation_id=call.id,
            source_type=source,
            source_ref=source_ref or None,
            from_input_ref=keyed_digest(before),
            to_input_ref=keyed_digest(after),
            changed_fields=changed,
            reason=reason,
        )
        self._mutated(call, mutation)
        if not self.split(call, after)[1].keys().isdisjoint(after):
            self._refusals.mutation_failed(call, "an internal-only argument was given")
        if not call.spec.check.is_valid(after):
            # what a Python caller gave and nobody changed stays as it is
            problems = call.spec.check.problems(after, limit=_MAX_PROBLEMS)
            kept = {
                name
                for name in before.keys() & after.keys()
                if not differs(before[name], after[name])
            }
            changed_ones = [
                entry for entry in problems if not call.spec.check.misfits([entry]) & kept
            ]
            if changed_ones or len(problems) == _MAX_PROBLEMS:
                places = self._describe(call, (changed_ones or problems)[:_MAX_SHOWN])
                self._refusals.mutation_failed(
                    call, f"the changed input does not fit the schema: {places}"
                )
        call.inputs.permission_input = after
        call.inputs.given = None
        try:
            target.rebind(call, before, after)
        except (TypeError, ValueError) as error:
            self._refusals.mutation_failed(
                call, f"the changed input can't be used: {short_name(error)}"
            )
        if is_partial(call.inputs.permission_input):
            self._refusals.mutation_failed(
                call, f"the changed input: {self._partial(call, call.inputs.permission_input)}"
            )
        # reading it changed it ("~" became a home directory), or added a default that it leaves out
        if call.inputs.permission_input is not after:
            call.inputs.given = (source, after)
            # a framework's door may have recorded it under its own name
            if call.inputs.mutations[-1] is mutation:
                self._read_differently(call, after)
        if call.internal:
            self._give(call, call.internal)  # a framework's door starts from what it was given
        self.validate(call)

    def _read_differently(self, call: Invocation, given: dict[str, Any]) -> None:
        """Record that a changed input was read as something else, which is decided and runs."""
        read = call.inputs.permission_input
        self._record(
            call,
            InputMutation(
                invocation_id=call.id,
                source_type=MutationSource.RUNTIME,
                source_ref=call.spec.tool_id,
                from_input_ref=keyed_digest(given),
                to_input_ref=keyed_digest(read),
                changed_fields=[
                    self._pointer(call, pointer) for pointer in changed_pointers(given, read)
                ],
                reason="what the tool's signature makes of the changed input",
            ),
        )

    def is_new(self, call: Invocation, updated: Any) -> bool:
        """Return whether an input is another one than that in force, also than that in force as its
        author gave it.
        """
        return differs(updated, call.inputs.permission_input) and (
            call.inputs.given is None or differs(updated, call.inputs.given[1])
        )

    def approved_form(self, call: Invocation) -> dict[str, Any]:
        """Return the arguments that an approval of this input is bound to: an approver's edit as it
        was given.
        """
        given = call.inputs.given
        return (
            call.inputs.permission_input
            if given is None or given[0] is not MutationSource.PERMISSION_PROMPT
            else given[1]
        )

    def split(
        self, call: Invocation, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Part a hook's arguments into those that a model may produce and the internal-only
        ones.
        """
        names = call.spec.declaration.input_contract.internal_only_fields
        visible = {name: value for name, value in arguments.items() if name not in names}
        return visible, {name: value for name, value in arguments.items() if name in names}

    def inject(
        self, call: Invocation, internal: Mapping[str, Any], source_ref: str, reason: str
    ) -> None:
        """Give the executor internal-only arguments; the model, the policy and the records see
        their names alone.
        """
        new = {
            name: value
            for name, value in internal.items()
            if not _same(call.inputs.bound, name, value)
        }
        if not new:
            return
        pointers = [self._pointer(call, f"/{escape_token(name)}") for name in new]
        reference = keyed_digest(call.inputs.permission_input)
        source = MutationSource.HOOK
        mutation = InputMutation(
            invocation_id=call.id,
            source_type=source,
            source_ref=source_ref,
            from_input_ref=reference,
            to_input_ref=reference,
            changed_fields=pointers,
            reason=reason,
            fields=[
                {
                    "pointer": pointer,
                    "visibility": SchemaVisibility.INTERNAL.value,
                    "mutation_source": source.value,
                }
                for pointer in pointers
            ],
        )
        self._mutated(call, mutation)
        call.internal = {**(call.internal or {}), **new}
        self._give(call, new)

    def _give(self, call: Invocation, new: Mapping[str, Any]) -> None:
        parameters = call.spec.parameters
        if parameters is not None and new.keys() <= parameters.arguments.keys():
            call.inputs.bound = {**call.inputs.bound, **new}
            call.call_args, call.call_kwargs = parameters.unbind(call.inputs.bound)
        elif parameters is None and call.inputs.bound is call.call_kwargs:
            # a tool without a signature, such as a framework's: its keywords are what it runs with
            call.inputs.bound = call.call_kwargs = {**call.call_kwargs, **new}
        else:
            self._refusals.mutation_failed(call, "this tool takes no such internal argument")

    def _mutated(self, call: Invocation, mutation: InputMutation) -> None:
        """Record a change, whether it can be used or not; then check whether the contract
        allows its author.
        """
        self._record(call, mutation)
        source = mutation.source_type
        if call.spec.declaration.input_contract.mutation_policy not in _ALLOWED[source]:
            self._refusals.mutation_failed(
                call, f"the tool's contract does not let a {source.value} change its input"
            )

    def _record(self, call: Invocation, mutation: InputMutation) -> None:
        # "the result MUST record the mutation source and must not silently rewrite the original
        # model input" (standard, "Input contract and mutation boundary")
        call.inputs.mutations.append(mutation)
        self._span.emit(
            call,
            Event.INPUT_MUTATED,
            {
                Attr.MUTATION_ID: mutation.mutation_id,
                Attr.MUTATION_SOURCE: mutation.source_type.value,
                Attr.MUTATION_SOURCE_REF: mutation.source_ref or "",
                Attr.MUTATION_CHANGED_FIELDS: mutation.changed_fields[:_MAX_FIELDS],
                Attr.MUTATION_DIGEST_FROM: mutation.from_input_ref or "",
                Attr.MUTATION_DIGEST_TO: mutation.to_input_ref or "",
            },
        )


_ALLOWED = {
    MutationSource.HOOK: {"allow", "hooks_only"},
    MutationSource.PERMISSION_PROMPT: {"allow", "approval_only"},
    MutationSource.ADAPTER: {"allow"},
    MutationSource.MIGRATION: {"allow"},
    MutationSource.RUNTIME: {"allow"},
}
"""Which ``mutation_policy`` of an input contract lets whom replace the input."""


def differs(a: Any, b: Any) -> bool:
    """Return whether two JSON values are different as JSON: to Python ``1`` is ``True``, to a tool it
    may not be.
    """
    return bool(a != b) or digest(a) != digest(b)


def _reason(tag: dict[str, Any]) -> str:
    """Describe why a part of the arguments is shown by a tag alone."""
    match tag.get("$truncated"):
        case "chars":
            return f"{tag.get('chars', 0):,} characters, limit {DEFAULT_MAX_CHARS:,} in all"
        case "nodes":
            return f"more than {DEFAULT_MAX_NODES:,} values"
        case "depth":
            return f"nested deeper than {DEFAULT_MAX_DEPTH} levels"
        case "int":
            return f"a number of {tag.get('bits', 0):,} bits"
    if str(tag.get("$error", "")).endswith(NotUnicode.__name__):
        return "not UTF-8: it has a lone surrogate"
    return "it can't be read"


def is_partial(document: dict[str, Any]) -> bool:
    """Return whether something was left out of a JSON document on the way from Python.

    Half a value must never be decided on as if it were the value."""
    return next(_partial_places(document), None) is not None


def _partial_places(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON pointers of what was left out of a document, with what stands there."""
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        pointer, value = stack.pop()
        if type(value) is dict:
            if "$truncated" in value or "$error" in value:
                yield pointer, value
            stack += [
                (f"{pointer}/{escape_token(name)}", item)
                for name, item in value.items()
                if type(item) is dict or type(item) is list
            ]
        else:
            stack += [
                (f"{pointer}/{index}", item)
                for index, item in enumerate(value)
                if type(item) is dict or type(item) is list
            ]


def _same(bound: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether an internal argument has this value already; objects are compared by identity,
    never asked.
    """
    if name not in bound:
        return False
    present = bound[name]
    return present is value or (
        type(present) is type(value) and type(value) in _ATOMS and bool(present == value)
    )


def _by_name(place: tuple[int | str, ...], names: tuple[str, ...]) -> tuple[int | str, ...]:
    """Return a place with the name of the argument in it: pydantic counts those that are given by
    position.
    """
    first = place[0] if place else ""
    if isinstance(first, int) and first < len(names):
        return names[first], *place[1:]
    return place


def _refused(call: Invocation, error: ValidationError) -> list[tuple[str, str]]:
    """Return where a reader refuses the arguments, and what it wants there; never a value."""
    names = tuple(call.spec.parameters.arguments) if call.spec.parameters is not None else ()
    places = error.errors(include_url=False, include_context=False, include_input=False)[
        :_MAX_SHOWN
    ]
    return [
        (
            "".join(f"/{escape_token(str(part))}" for part in _by_name(place["loc"], names)),
            "is refused"
            if place["type"] in _QUOTING or place["type"] not in _PYDANTIC_ERRORS
            else place["msg"],
        )
        for place in places
    ]


def _accepted_as_python(call: Invocation, pointer: str) -> bool:
    """A Python caller may pass what the annotation names (a model, a Path), whatever its JSON form
    looks like.
    """
    name = unescape_token(pointer.split("/", 2)[1]) if pointer else ""
    parameters = call.spec.parameters
    if parameters is None or name not in call.inputs.bound:
        return False
    return parameters.accepts(name, call.inputs.bound[name])
