"""The store's grants: accepted with an answer, looked up, withdrawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from agenttool_otel.approvals.clock import to_us
from agenttool_otel.approvals.database import Transaction
from agenttool_otel.approvals.grants import grant_from_suggestion, grant_matches, offered_again
from agenttool_otel.approvals.rows import grant_of
from agenttool_otel.approvals.schema import grants
from agenttool_otel.approvals.store_base import StoreBase
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest, Grant
from agenttool_otel.errors import ApprovalConflict, ApprovalNotFound, ApprovalStoreError
from agenttool_otel.names import ApprovalConflictReason as Reason
from agenttool_otel.names import ApprovalLogKind as Kind

__all__ = ["GrantMethods"]


class GrantMethods(StoreBase):
    """The part of ``ApprovalStore`` that keeps remembered approvals."""

    def grants_for(
        self,
        *,
        tool_id: str,
        arguments: dict[str, Any],
        declaration_digest: str = "",
        actor_id: str = "",
        tenant: str | None = None,
        session_id: str | None = None,
    ) -> list[Grant]:
        """Return the live grants that cover a call, newest first. A grant answers an ask; it never lifts a deny.

        Raises:
            ApprovalError: the arguments have no canonical form.
            ApprovalStoreError: the store can't be read; nothing is granted.
        """
        digest = self._digest(arguments)
        found = []
        for grant in self.list_grants(tool_id=tool_id):
            if grant_matches(
                grant,
                tool_id=tool_id,
                declaration_digest=declaration_digest,
                actor_id=actor_id,
                tenant=tenant,
                session_id=session_id,
                arguments=arguments,
                digest=digest,
            ):
                found.append(grant)
        return found

    def use_grant(self, suggestions: Sequence[Any], *, invocation_id: str, **call: Any) -> Grant | None:
        """Return the grant that answers a question about a call, and log that it did; ``None`` where there is none.

        Args:
            suggestions: the suggested updates of the decision that asks; a grant that they don't offer answers nothing.
            invocation_id: the call.
            call: the call, as for ``grants_for``.

        Raises:
            ApprovalError: the store can't be read or written, or the arguments have no canonical form.
        """
        for grant in self.grants_for(**call):
            if offered_again(grant, suggestions):
                with self._db.write() as tx:
                    tx.log(Kind.GRANT_USED, grant.request_id, grant=grant.grant_id, invocation=invocation_id)
                return grant
        return None

    def list_grants(self, *, tool_id: str | None = None, live: bool = True) -> list[Grant]:
        """Return grants, newest first; those that can't be opened are left out, since they grant nothing.

        Args:
            tool_id: only those of this tool.
            live: only those that are neither expired nor revoked.
        """
        query = select(grants).order_by(grants.c.created_us.desc())
        if tool_id is not None:
            query = query.where(grants.c.tool_id == tool_id)
        with self._db.read() as (connection, now_us):
            if live:
                query = query.where(grants.c.expires_us > now_us, grants.c.revoked_us.is_(None))
            rows = connection.execute(query).all()
        result = []
        for row in rows:
            try:
                grant = grant_of(self._sealer, row)
            except ApprovalStoreError:
                continue
            if not live or to_us(grant.expires_at) > now_us:  # the sealed time, not only the column
                result.append(grant)
        return result

    def revoke(self, grant_id: str, *, revoked_by: str = "") -> None:
        """Withdraw a grant; withdrawing it twice changes nothing.

        Raises:
            ApprovalNotFound: there is none of that id.
        """
        with self._db.write() as tx:
            row = tx.connection.execute(select(grants).where(grants.c.grant_id == grant_id)).first()
            if row is None:
                raise ApprovalNotFound("no such grant")
            if row.revoked_us is None:
                tx.connection.execute(grants.update().where(grants.c.grant_id == grant_id).values(revoked_us=tx.now_us))
                tx.log(Kind.GRANT_REVOKED, "", grant=grant_id, by=revoked_by)

    def _accepted_grant(
        self, tx: Transaction, request: ApprovalRequest, answer: ApprovalAnswer, digest: str
    ) -> Grant | None:
        if answer.remember is None:
            return None
        if not answer.approved or not 0 <= answer.remember < len(request.suggested_updates):
            raise ApprovalConflict("there is no such suggested update", reason=Reason.INVALID_ANSWER)
        return grant_from_suggestion(
            request,
            request.suggested_updates[answer.remember],
            granted_by=answer.answered_by,
            approved_digest=digest,
            now_us=tx.now_us,
        )

    def _insert_grant(self, tx: Transaction, grant: Grant) -> None:
        body = grant.model_dump(mode="json", exclude={"revoked_at"})
        tx.connection.execute(
            grants.insert().values(
                grant_id=grant.grant_id,
                tool_id=grant.tool_id,
                created_us=to_us(grant.created_at),
                expires_us=to_us(grant.expires_at),
                sealed_grant=self._sealer.seal(body, purpose="grant", row=grant.grant_id),
            )
        )
        tx.log(
            Kind.GRANTED,
            grant.request_id,
            grant=grant.grant_id,
            tool=grant.tool_id,
            scope=grant.scope,
            by=grant.granted_by,
            exact=grant.args is None,
            expires_us=to_us(grant.expires_at),
        )
