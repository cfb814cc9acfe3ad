"""The decision point: one warm process that decides calls whose bodies run elsewhere, see
docs/serve.md.

The server is ``serve.server``, which needs the extra ``web``. A client needs nothing more than
this package.
"""

from agenttool_otel.serve.client import DecisionPointError as DecisionPointError
from agenttool_otel.serve.client import DecisionPointGarbled as DecisionPointGarbled
from agenttool_otel.serve.client import DecisionPointRefused as DecisionPointRefused
from agenttool_otel.serve.client import DecisionPointUnavailable as DecisionPointUnavailable
from agenttool_otel.serve.client import RemoteGovernor as RemoteGovernor
from agenttool_otel.serve.client import RemoteNotPermitted as RemoteNotPermitted
