"""The store's grants: accepted with an answer, looked up, withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import String, bindparam, or_, select

from agenttool_otel.approvals.grants import grant_covers
from agenttool_otel.approvals.store.clock import to_us
from agenttool_otel.approvals.store.database import Database
from agenttool_otel.approvals.store.rows import grant_of
from agenttool_otel.approvals.store.schema import grants
from agenttool_otel.approvals.store.transaction import Transaction
from agenttool_otel.approvals.types import Grant, GrantQuery
from agenttool_otel.errors import ApprovalNotFound, ApprovalStoreError
from agenttool_otel.names import ApprovalLogKind as Kind

_TOOL: Final = bindparam("tool", type_=String)
_ALL: Final = (
    select(grants)
    .where(or_(_TOOL.is_(None), grants.c.tool_id == _TOOL))
    .order_by(grants.c.created_us.desc())
)
_LIVE: Final = _ALL.where(grants.c.expires_us > bindparam("now"), grants.c.revoked_us.is_(None))


class Grants:
    """Keeps remembered approvals."""

    def __init__(self, db: Database, digest: Callable[[Any], str]) -> None:
        self._db = db
        self._digest = digest
        self._any = not db.memory  # what is in memory is written here alone

    def find_grant(self, wanted: GrantQuery) -> Grant | None:
        """Return the newest live grant that answers all that is asked about a call; it gives no
        right to run it.
        """
        if not self._any:
            return None
        digest = self._digest(wanted.arguments)
        found = (
            grant
            for grant in self.list_grants(tool_id=wanted.tool_id)
            if grant_covers(grant, wanted, digest)
        )
        return next(found, None)

    def use_grant(
        self, grant_id: str, wanted: GrantQuery, *, invocation_id: str, policy_revision: str
    ) -> None:
        """Record that a call runs because of a grant, if it still holds: a revoked one is of no use
        from then on.
        """
        digest = self._digest(wanted.arguments)
        with self._db.write() as tx:
            row = tx.connection.execute(select(grants).where(grants.c.grant_id == grant_id)).first()
            if row is not None:
                tx.check(grants, row)
            grant = (
                None
                if row is None or row.revoked_us is not None
                else grant_of(self._db.sealer, row)
            )
            if (
                grant is None
                or to_us(grant.expires_at) <= tx.now_us
                or not grant_covers(grant, wanted, digest)
            ):
                raise ApprovalNotFound("no such grant holds for this call")
            tx.log(
                Kind.GRANT_USED,
                grant.request_id,
                grant=grant_id,
                invocation=invocation_id,
                tool=wanted.tool_id,
                actor=wanted.actor_id,
                args_digest=digest,
                policy_revision=policy_revision,
            )

    def list_grants(self, *, tool_id: str | None = None, live: bool = True) -> list[Grant]:
        """Return grants, newest first; those that can't be opened are left out, since they grant
        nothing.
        """
        with self._db.read() as (connection, now_us):
            values = {"tool": tool_id, "now": now_us} if live else {"tool": tool_id}
            rows = connection.execute(_LIVE if live else _ALL, values).all()
        result = []
        for row in rows:
            try:
                grant = grant_of(self._db.sealer, row)
            except ApprovalStoreError:
                continue
            if not live or to_us(grant.expires_at) > now_us:  # the sealed time, not only the column
                result.append(grant)
        return result

    def revoke(self, grant_id: str, *, revoked_by: str = "") -> None:
        """Withdraw a grant; withdrawing it twice changes nothing."""
        with self._db.write() as tx:
            row = tx.connection.execute(select(grants).where(grants.c.grant_id == grant_id)).first()
            if row is None:
                raise ApprovalNotFound("no such grant")
            if row.revoked_us is None:
                changes = {"revoked_us": tx.now_us}
                tx.update(
                    grants, row, changes, Kind.GRANT_REVOKED, "", grant=grant_id, by=revoked_by
                )

    def insert(self, tx: Transaction, grant: Grant) -> None:
        """Keep a grant in the transaction of the answer that it was accepted with."""
        body = grant.model_dump(mode="json", exclude={"revoked_at"})
        values = {
            "grant_id": grant.grant_id,
            "tool_id": grant.tool_id,
            "created_us": to_us(grant.created_at),
            "expires_us": to_us(grant.expires_at),
            "sealed_grant": self._db.sealer.seal(body, purpose="grant", row=grant.grant_id),
        }
        self._any = True
        tx.insert(
            grants,
            values,
            Kind.GRANTED,
            grant.request_id,
            grant=grant.grant_id,
            tool=grant.tool_id,
            scope=grant.scope,
            by=grant.granted_by,
            exact=grant.args is None,
            expires_us=values["expires_us"],
        )
