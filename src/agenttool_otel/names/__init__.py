"""Every string that leaves the process, spelt once.

Attributes, events, metrics, error classes, states and environment variables: whatever a trace, a
metric, a policy input, a record or a person's dashboard may match on is written in this package
and nowhere else. The words come from Agent Tool v0.2.0 (*standard* in the docstrings, which name
its section), from the OpenTelemetry semantic conventions for generative AI, or, under
``agenttool.*``, from this package where neither has any. ``names.telemetry`` is generated from
``semconv/``, where each attribute, event and metric is described; a test holds the enumerations of
``semconv/`` to the classes here.
"""

from __future__ import annotations

from typing import Final

from agenttool_otel.names.approvals import AnswerWay as AnswerWay
from agenttool_otel.names.approvals import ApprovalConflictReason as ApprovalConflictReason
from agenttool_otel.names.approvals import ApprovalLogKind as ApprovalLogKind
from agenttool_otel.names.approvals import ApprovalStatus as ApprovalStatus
from agenttool_otel.names.approvals import RequiredStatus as RequiredStatus
from agenttool_otel.names.decisions import LOSS_RECORD as LOSS_RECORD
from agenttool_otel.names.decisions import SURFACE_REASON as SURFACE_REASON
from agenttool_otel.names.decisions import ArgumentRole as ArgumentRole
from agenttool_otel.names.decisions import Behavior as Behavior
from agenttool_otel.names.decisions import ChangeKind as ChangeKind
from agenttool_otel.names.decisions import ChangeOperation as ChangeOperation
from agenttool_otel.names.decisions import ClassifierState as ClassifierState
from agenttool_otel.names.decisions import DecisionSource as DecisionSource
from agenttool_otel.names.decisions import EffectKind as EffectKind
from agenttool_otel.names.decisions import EffectOperation as EffectOperation
from agenttool_otel.names.decisions import EngineName as EngineName
from agenttool_otel.names.decisions import EntryPoint as EntryPoint
from agenttool_otel.names.decisions import FailClosedCause as FailClosedCause
from agenttool_otel.names.decisions import GuardrailAction as GuardrailAction
from agenttool_otel.names.decisions import GuardrailVerdict as GuardrailVerdict
from agenttool_otel.names.decisions import Outcome as Outcome
from agenttool_otel.names.decisions import PermissionChannel as PermissionChannel
from agenttool_otel.names.decisions import PolicyMode as PolicyMode
from agenttool_otel.names.decisions import ReasonType as ReasonType
from agenttool_otel.names.decisions import SandboxNetwork as SandboxNetwork
from agenttool_otel.names.decisions import SandboxProfile as SandboxProfile
from agenttool_otel.names.decisions import SandboxScope as SandboxScope
from agenttool_otel.names.decisions import Sourced as Sourced
from agenttool_otel.names.decisions import StatedWord as StatedWord
from agenttool_otel.names.decisions import Trust as Trust
from agenttool_otel.names.invocations import AbortReason as AbortReason
from agenttool_otel.names.invocations import CancelOutcome as CancelOutcome
from agenttool_otel.names.invocations import ContextOrigin as ContextOrigin
from agenttool_otel.names.invocations import HookEvent as HookEvent
from agenttool_otel.names.invocations import InvocationStatus as InvocationStatus
from agenttool_otel.names.invocations import MutationSource as MutationSource
from agenttool_otel.names.invocations import Phase as Phase
from agenttool_otel.names.invocations import ProgressStatus as ProgressStatus
from agenttool_otel.names.mcp import McpMeta as McpMeta
from agenttool_otel.names.mcp import PinState as PinState
from agenttool_otel.names.results import ContentType as ContentType
from agenttool_otel.names.results import ErrorClass as ErrorClass
from agenttool_otel.names.results import PersistenceStrategy as PersistenceStrategy
from agenttool_otel.names.results import Recoverability as Recoverability
from agenttool_otel.names.results import ResultStatus as ResultStatus
from agenttool_otel.names.results import TrustLevel as TrustLevel
from agenttool_otel.names.serve import EvaluationsSemantic as EvaluationsSemantic
from agenttool_otel.names.serve import HookPart as HookPart
from agenttool_otel.names.serve import ProblemType as ProblemType
from agenttool_otel.names.serve import RehearsalState as RehearsalState
from agenttool_otel.names.serve import RemoteState as RemoteState
from agenttool_otel.names.telemetry import Attr as Attr
from agenttool_otel.names.telemetry import Event as Event
from agenttool_otel.names.telemetry import Exc as Exc
from agenttool_otel.names.telemetry import GenAI as GenAI
from agenttool_otel.names.telemetry import Label as Label
from agenttool_otel.names.telemetry import Mcp as Mcp
from agenttool_otel.names.telemetry import Metric as Metric
from agenttool_otel.names.tools import AccessKind as AccessKind
from agenttool_otel.names.tools import ArgumentMode as ArgumentMode
from agenttool_otel.names.tools import BlockReason as BlockReason
from agenttool_otel.names.tools import ContextModifierPolicy as ContextModifierPolicy
from agenttool_otel.names.tools import ExecutionKind as ExecutionKind
from agenttool_otel.names.tools import InterruptBehavior as InterruptBehavior
from agenttool_otel.names.tools import Lifecycle as Lifecycle
from agenttool_otel.names.tools import LoadingState as LoadingState
from agenttool_otel.names.tools import NextAction as NextAction
from agenttool_otel.names.tools import OrderingPolicy as OrderingPolicy
from agenttool_otel.names.tools import Ownership as Ownership
from agenttool_otel.names.tools import QueryType as QueryType
from agenttool_otel.names.tools import RiskLevel as RiskLevel
from agenttool_otel.names.tools import SchemaVisibility as SchemaVisibility
from agenttool_otel.names.tools import SiblingFailurePolicy as SiblingFailurePolicy
from agenttool_otel.names.tools import SurfaceScope as SurfaceScope
from agenttool_otel.names.tools import ToolKind as ToolKind
from agenttool_otel.names.tools import WriteEffect as WriteEffect
from agenttool_otel.names.tools import YieldPolicy as YieldPolicy

# readers and redaction import nothing of the package but values, so their words are spelt there
from agenttool_otel.readers.vocabulary import AddressClass as AddressClass
from agenttool_otel.readers.vocabulary import PathAccess as PathAccess
from agenttool_otel.readers.vocabulary import PathClass as PathClass
from agenttool_otel.readers.vocabulary import PathRejection as PathRejection
from agenttool_otel.readers.vocabulary import UrlRejection as UrlRejection
from agenttool_otel.readers.vocabulary import WindowsForm as WindowsForm
from agenttool_otel.redaction.state import RedactionState as RedactionState
from agenttool_otel.values import canonical

SCHEMA_VERSION: Final = "0.2.0"
"""The version of Agent Tool that every record states (standard, "Version compatibility")."""

TELEMETRY_SCHEMA: Final = f"https://agenttool.invalid/schemas/{SCHEMA_VERSION}"
"""Schema URL of the tracer, meter and logger of this package: that of ``semconv/manifest.yaml``."""

INSTRUMENTATION_NAME: Final = "agenttool_otel"
"""Name of the OpenTelemetry tracer, meter and logger of this package."""

EVENT_SOURCE: Final = "agenttool-otel"
"""Default ``source`` of a tool_event envelope (standard, event schema)."""

OPERATION_EXECUTE_TOOL: Final = "execute_tool"
SPAN_ANSWER_APPROVAL: Final = "answer_approval"
"""Begins the name of the span of a person's answer; the tool's name follows."""
"""``gen_ai.operation.name`` and the first word of the span's name."""


class Env:
    """Environment variables that the package reads (context/settings.py documents each)."""

    PREFIX: Final = "AGENTTOOL_"
    CAPTURE_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    APPROVALS_URL: Final = "AGENTTOOL_APPROVALS_URL"
    APPROVALS_KEY: Final = "AGENTTOOL_APPROVALS_KEY"
    APPROVALS_PROXY: Final = "AGENTTOOL_APPROVALS_PROXY_SECRET"
    APPROVALS_NOTIFY: Final = "AGENTTOOL_APPROVALS_NOTIFY_SECRET"
    APPROVALS_ANSWERS: Final = "AGENTTOOL_APPROVALS_ANSWERS_SECRET"
    DIGEST_KEY: Final = canonical.DIGEST_KEY
    OPA_PROGRAM: Final = "AGENTTOOL_OPA"

    @classmethod
    def beside_settings(cls) -> frozenset[str]:
        """Return the package's variables that are no settings, with some that are."""
        texts = (value for value in vars(cls).values() if isinstance(value, str))
        return frozenset(
            text for text in texts if len(text) > len(cls.PREFIX) and text.startswith(cls.PREFIX)
        )
