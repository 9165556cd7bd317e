"""Requests, decisions and stops in the database.

A call is asked about once, decided once, and its approval is used once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, exists, insert, or_, select, update

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import DECISIONS, OWNERS, REQUESTS, RULES, RUNS
from toolwire.journal.ledger.asked import AskedRequest
from toolwire.journal.ledger.forms import ASKING, encode_form, plain_form, read_form, read_plain, read_run
from toolwire.journal.ledger.leases import living_holder
from toolwire.journal.log.chain import append
from toolwire.journal.log.events import decision_event, request_event, rule_event, run_event
from toolwire.journal.run import RunStart, RunStatus
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.deciding import ALLOWING, check_authority, narrow_rule
from toolwire.permission.policy import Rule
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start


def ask(connection: Connection, sealer: Sealer, request: ApprovalRequest) -> tuple[ApprovalRequest, Decision | None]:
    """Records the request for this attempt at the call.

    Returns the first recorded request, with its decision if it has one.
    """
    same = (
        REQUESTS.c.run_id == request.run_id,
        REQUESTS.c.call_id == request.call_id,
        REQUESTS.c.attempt == request.attempt,
    )
    row = connection.execute(WITH_DECISION.where(*same)).one_or_none()
    if row is not None:
        return read_request(sealer, row), read_decision(sealer, row)
    connection.execute(
        insert(REQUESTS).values(
            request_id=request.id,
            run_id=request.run_id,
            call_id=request.call_id,
            attempt=request.attempt,
            state="pending",
            created_at=request.created_at,
            expires_at=request.expires_at,
            request=sealer.seal(encode_request(request), "requests", request.run_id, request.id),
            tool=request.tool,
            principal=request.caller.principal,
            agent=request.caller.agent,
            tenant=request.caller.tenant,
        )
    )
    append(connection, sealer, [request_event(request, _conversation(connection, request.run_id))])
    return request, None


def decide(
    connection: Connection, sealer: Sealer, request_id: str, decision: Decision, now: float, *, is_vetted: bool = False
) -> Decision:
    """Records the decision and returns it in its final form. `is_vetted`: the policy already checked the decider.

    Raises:
        DecisionRefused: The decision does not count; nothing was written.
    """
    row = _lock_request(connection, request_id)
    if row is None:
        raise DecisionRefused("unknown_request", f"there is no request {request_id!r}", request_id=request_id)
    request, first = read_request(sealer, row), read_decision(sealer, row)
    if first is not None:
        raise DecisionRefused(
            "already_decided",
            (
                f"request {request_id} was decided before: {first.verdict} by "
                f"{first.by.principal or 'an unnamed approver'}"
            ),
            request_id=request_id,
            decided=first,
        )
    if row.state != "pending" or (request.expires_at and now > request.expires_at):
        raise DecisionRefused("expired", f"request {request_id} is no longer waiting", request_id=request_id)
    check_authority(request, decision, is_vetted=is_vetted)
    decision = dataclasses.replace(
        decision,
        request_id=request_id,
        at=decision.at or now,
        seen_arguments_digest=decision.seen_arguments_digest or request.arguments_digest,
    )
    _record_decision(connection, sealer, request, decision, now)
    return decision


def _lock_request(connection: Connection, request_id: str) -> Any:
    """Returns the request with its decision, locked until the end of the transaction."""
    # First the run's row, as all do that change a run and its requests.
    of = select(REQUESTS.c.run_id).where(REQUESTS.c.request_id == request_id).scalar_subquery()
    connection.execute(select(RUNS.c.run_id).where(RUNS.c.run_id == of).with_for_update())
    # Two statements: after a wait, PostgreSQL would return the joined row as it was before the wait.
    connection.execute(select(REQUESTS.c.request_id).where(REQUESTS.c.request_id == request_id).with_for_update())
    return connection.execute(WITH_DECISION.where(REQUESTS.c.request_id == request_id)).one_or_none()


def _record_decision(
    connection: Connection, sealer: Sealer, request: ApprovalRequest, decision: Decision, now: float
) -> None:
    state = "approved" if decision.verdict in ALLOWING else "denied"
    if decision.verdict == "stop_run":
        state = "stopped"
    elif request.kind == "question":
        state = "answered"
    sealed = sealer.seal(encode_decision(decision), "decisions", request.id)
    connection.execute(insert(DECISIONS).values(request_id=request.id, decided_at=now, decision=sealed))
    connection.execute(update(REQUESTS).where(REQUESTS.c.request_id == request.id).values(state=state))
    connection.execute(update(RUNS).where(RUNS.c.run_id == request.run_id).values(rev=RUNS.c.rev + 1, updated_at=now))
    if decision.remember is not None:
        kept = narrow_rule(decision.remember, request)
        rule = sealer.seal(encode_rule(kept), "rules", request.id)
        values = {"run_id": request.run_id, "created_at": now, "rule": rule}
        whose = {"scope": kept.scope, "principal": kept.principal, "tenant": kept.tenant}
        connection.execute(insert(RULES).values(rule_id=request.id, **values, **whose))
    append(connection, sealer, [decision_event(request, decision, _conversation(connection, request.run_id))])


def use(connection: Connection, sealer: Sealer, start: Start, *, is_again: bool) -> ToolResult | None:
    """Uses up the approval of the step. Returns a failure if the approval does not allow the step, else None."""
    row = _lock_request(connection, start.request_id)
    if row is None or row.call_id != start.step.key:
        return _not_run(start, "denied", "it was approved for another call")
    request, decision = read_request(sealer, row), read_decision(sealer, row)
    if decision is None or decision.verdict not in ALLOWING:
        return _not_run(start, "denied", "no one approved it")
    if decision.verdict == "approve" and request.arguments_digest != start.arguments_digest:
        return _not_run(start, "approval_mismatch", "it was approved with other arguments")
    if request.tool_digest and request.tool_digest != start.tool_digest:
        return _not_run(start, "approval_mismatch", "the tool has changed since it was approved")
    if row.state == "reserved" and is_again:
        return None
    if row.state != "approved":
        return _not_run(start, "denied", "its approval has already been used")
    connection.execute(update(REQUESTS).where(REQUESTS.c.request_id == start.request_id).values(state="reserved"))
    return None


def pending(connection: Connection, sealer: Sealer, run_id: str, now: float) -> list[ApprovalRequest]:
    """Returns the requests of a run that wait and have not expired, oldest first.

    Raises:
        DecisionRefused: `bad_mac`, or `schema_too_new`.
    """
    query = WITH_DECISION.where(REQUESTS.c.run_id == run_id, waits(now))
    query = query.order_by(REQUESTS.c.created_at, REQUESTS.c.request_id)
    return [read_request(sealer, row) for row in connection.execute(query)]


def use_answers(connection: Connection, request_ids: Sequence[str]) -> None:
    """Records that the tool receives the answers to these questions, or that the person declined."""
    wanted = REQUESTS.c.request_id.in_(request_ids) & (REQUESTS.c.state == "answered")
    connection.execute(update(REQUESTS).where(wanted).values(state="done"))


def requests_of_run(
    connection: Connection, sealer: Sealer, run_id: str, ended: Container[str], now: float
) -> tuple[AskedRequest, ...]:
    """Returns the requests of a run. `ended` has the ids of its ended calls.

    It reads every request and decision, so that a damaged row is found before the run continues.

    Raises:
        DecisionRefused: `bad_mac`, or `schema_too_new`.
    """
    found: list[AskedRequest] = []
    for row in connection.execute(WITH_DECISION.where(REQUESTS.c.run_id == run_id).order_by(REQUESTS.c.created_at)):
        request = read_request(sealer, row)
        read_decision(sealer, row)
        found.append(
            AskedRequest(
                id=request.id,
                call_id=request.call_id,
                asked_at=row.created_at,
                decided_at=row.decided_at or 0.0,
                is_used=row.state in ("reserved", "done") or request.call_id in ended,
                is_waiting=row.state == "pending" and not (request.expires_at and now > request.expires_at),
                is_question=request.kind == "question",
            )
        )
    return tuple(found)


def waits(now: Any, state: Any = REQUESTS.c.state) -> Any:
    """Returns the SQL condition for a request that waits. `state` is the expression of its state, `now` of the time."""
    return (state == "pending") & ((REQUESTS.c.expires_at == 0) | (REQUESTS.c.expires_at >= now))


def supersede(connection: Connection, run_id: str) -> None:
    """Marks the run's pending requests as superseded: the run no longer waits for them."""
    connection.execute(
        update(REQUESTS).where(REQUESTS.c.run_id == run_id, REQUESTS.c.state == "pending").values(state="superseded")
    )


def is_stopped(connection: Connection, run_id: str) -> bool:
    """True if a person stopped the run."""
    stops = exists().where(REQUESTS.c.run_id == run_id, REQUESTS.c.state == "stopped")
    return bool(connection.execute(select(stops)).scalar())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStop:
    """The stop of a run from outside, as it is on record."""

    by: Decider
    reason: str
    at: float
    lease: int = 0
    """The number that it gave to the lease of the process that holds the run; 0 if none did."""

    @property
    def why(self) -> str:
        """The reason, for the model and the host."""
        return self.reason or f"{self.by.principal or 'the host'} stopped the run"


def stop_run(connection: Connection, sealer: Sealer, run_id: str, stop: RunStop) -> RunStatus:
    """Stops a run. A process that holds it finds the new number of its lease at its next record.

    Returns `stopped`, or `running` if such a process will end the run.

    Raises:
        DecisionRefused: `unknown_run`, `run_ended`, or `bad_mac`.
    """
    row = connection.execute(_STOPPED_RUN.where(RUNS.c.run_id == run_id).with_for_update()).one_or_none()
    if row is None:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    if row.status == "stopped":
        return "stopped"
    if row.has_ended:
        raise DecisionRefused("run_ended", f"run {run_id!r} has ended: it is {row.status}")
    start = read_form(sealer.open(row.start, "runs", run_id, "start"), read_run)
    alive_until = connection.execute(select(OWNERS.c.alive_until).where(OWNERS.c.owner == row.owner)).scalar()
    leased_until, now = float(row.lease_until), stop.at
    if not row.owner or not living_holder(row.owner, lease_until=leased_until, alive_until=alive_until, now=now):
        first = stop if row.stop is None else read_stop(sealer, run_id, row.stop)
        mark_stopped(connection, sealer, start, first, lease=row.lease + 1)
        return "stopped"
    if row.stop is None:
        stop = dataclasses.replace(stop, lease=row.lease + 1)
        values = {"stop": _seal_stop(sealer, run_id, stop), "lease": stop.lease, "rev": row.rev + 1}
        connection.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(**values, updated_at=stop.at))
        append(connection, sealer, [run_event(start, "stopping", lease=stop.lease, by=stop.by, reason=stop.reason)])
    return "running"


_STOPPED_RUN = select(
    *(RUNS.c[name] for name in ("status", "rev", "start", "owner", "lease", "lease_until", "stop")),
    (RUNS.c.outcome.is_not(None) | RUNS.c.divergence.is_not(None)).label("has_ended"),
)
"""Selects what a stop looks at. The outcome, which may be large, is not read."""


def mark_stopped(connection: Connection, sealer: Sealer, start: RunStart, stop: RunStop, *, lease: int) -> None:
    """Records that a run which no process holds is stopped: nothing of it begins any more.

    `lease` is the next number of its lease. A process that was taken for dead cannot write any more.
    """
    values = {"stop": _seal_stop(sealer, start.run_id, stop), "status": "stopped", "owner": "", "lease": lease}
    values |= {"rev": RUNS.c.rev + 1, "updated_at": stop.at, "ready_at": None}
    connection.execute(update(RUNS).where(RUNS.c.run_id == start.run_id).values(values))
    supersede(connection, start.run_id)
    append(connection, sealer, [run_event(start, "stopped", lease=lease, by=stop.by, reason=stop.reason)])


def read_stop(sealer: Sealer, run_id: str, sealed: bytes) -> RunStop:
    """Returns the stop that is on record.

    Raises:
        DecisionRefused: `bad_mac`.
    """
    return read_form(sealer.open(sealed, "runs", run_id, "stop"), lambda form: read_plain(RunStop, form))


def _seal_stop(sealer: Sealer, run_id: str, stop: RunStop) -> bytes:
    return sealer.seal(encode_form(plain_form(stop)), "runs", run_id, "stop")


def forget_rule(connection: Connection, sealer: Sealer, rule_id: str, by: Decider, now: float) -> None:
    """Removes a remembered rule by its id, or by that of the request with which it was remembered.

    Raises:
        DecisionRefused: `unknown_rule`.
    """
    rows = connection.execute(_RULES.add_columns(RULES.c.run_id.label("of_run")).order_by(RULES.c.rule_id)).all()
    found = [row for row in rows if rule_id == row.rule_id or rule_id == _id_of_rule(sealer, row)]
    if not found:
        raise DecisionRefused("unknown_rule", f"no rule {rule_id!r} is remembered: see Store.rules()")
    for row in found:
        connection.execute(delete(RULES).where(RULES.c.rule_id == row.rule_id))
        append(connection, sealer, [rule_event(row.of_run, row.rule_id, by, now)])


def _id_of_rule(sealer: Sealer, row: Any) -> str | None:
    """Returns the id that the rule has as a `Rule`; None if its record is damaged."""
    try:
        return read_form(sealer.open(row.rule, "rules", row.rule_id), lambda form: read_plain(Rule, form)).id
    except DecisionRefused:
        return None


def request_and_decision(
    connection: Connection, sealer: Sealer, request_id: str
) -> tuple[ApprovalRequest, Decision | None] | None:
    """Returns a request with the decision that counts; None if the id is unknown."""
    row = connection.execute(WITH_DECISION.where(REQUESTS.c.request_id == request_id)).one_or_none()
    return None if row is None else (read_request(sealer, row), read_decision(sealer, row))


def read_rules(connection: Connection, sealer: Sealer, run_id: str | None) -> list[Rule]:
    """Returns the rules that people chose to remember, oldest first.

    A rule of an older store has no principal. It gets that of its request, or none if the request is gone.
    """
    query = _RULES.order_by(RULES.c.created_at, RULES.c.rule_id)
    if run_id is not None:
        query = query.where(RULES.c.run_id == run_id)
    found: list[Rule] = []
    for row in connection.execute(query):
        rule = read_form(sealer.open(row.rule, "rules", row.rule_id), lambda form: read_plain(Rule, form))
        if rule.principal is None:
            caller = NOBODY if row.request is None else read_request(sealer, row).caller
            rule = dataclasses.replace(rule, principal=caller.principal, tenant=caller.tenant)
        found.append(rule)
    return found


def decisions_with_rules(
    connection: Connection, sealer: Sealer, run_ids: Sequence[str], caller: Caller | None
) -> list[tuple[ApprovalRequest, Decision]]:
    """Returns the decisions that carry a rule, oldest first, each with its request; see `Store.decisions_with_rules`.

    A decision whose call has not started yet is left out.
    """
    query = WITH_DECISION.join(RULES, RULES.c.rule_id == REQUESTS.c.request_id).where(REQUESTS.c.state != "approved")
    if caller is not None:
        is_theirs = and_(
            RULES.c.scope == "workspace", RULES.c.principal == caller.principal, RULES.c.tenant == caller.tenant
        )
        query = query.where(or_(RULES.c.run_id.in_(run_ids), is_theirs, RULES.c.scope.is_(None)))
    elif run_ids:
        query = query.where(RULES.c.run_id.in_(run_ids))
    found = [
        (read_request(sealer, row), read_decision(sealer, row))
        for row in connection.execute(query.order_by(RULES.c.created_at, RULES.c.rule_id))
    ]
    return [(request, decision) for request, decision in found if decision is not None]


def _conversation(connection: Connection, run_id: str) -> str:
    return connection.execute(select(RUNS.c.conversation).where(RUNS.c.run_id == run_id)).scalar() or ""


WITH_DECISION = select(
    REQUESTS.c.request_id,
    REQUESTS.c.run_id,
    REQUESTS.c.call_id,
    REQUESTS.c.state,
    REQUESTS.c.created_at,
    REQUESTS.c.expires_at,
    REQUESTS.c.request,
    DECISIONS.c.decided_at,
    DECISIONS.c.decision,
).select_from(REQUESTS.outerjoin(DECISIONS, DECISIONS.c.request_id == REQUESTS.c.request_id))
"""Selects requests with their decisions."""


_RULES = select(
    RULES.c.rule_id,
    RULES.c.rule,
    REQUESTS.c.request_id,
    REQUESTS.c.run_id,
    REQUESTS.c.expires_at,
    REQUESTS.c.request,
).select_from(RULES.outerjoin(REQUESTS, REQUESTS.c.request_id == RULES.c.rule_id))


def read_request(sealer: Sealer, row: Any) -> ApprovalRequest:
    """Returns the request of a row of `WITH_DECISION`.

    Raises:
        DecisionRefused: `bad_mac`, or `schema_too_new`.
    """
    data = sealer.open(row.request, "requests", row.run_id, row.request_id)
    request = read_form(data, lambda form: read_plain(ApprovalRequest, form))
    # The lists use the column. If the column and the sealed request differ, the earlier time counts: a request in no
    # list cannot be decided.
    if row.expires_at and row.expires_at < (request.expires_at or math.inf):
        return dataclasses.replace(request, expires_at=row.expires_at)
    return request


def read_decision(sealer: Sealer, row: Any) -> Decision | None:
    """Returns the decision of a row of `WITH_DECISION`; None if it has none.

    Raises:
        DecisionRefused: `bad_mac`, or `schema_too_new`.
    """
    if row.decision is None:
        return None
    return read_form(sealer.open(row.decision, "decisions", row.request_id), lambda form: read_plain(Decision, form))


def encode_request(request: ApprovalRequest) -> bytes:
    """Encodes a request. An approval has the form that it has had since the first store, and later fields if set."""
    form = plain_form(request)
    for name in ("depth", "approvers", "name", "damaged"):
        if not form[name]:
            del form[name]
    if request.kind == "question":
        return encode_form(form, ASKING)
    return encode_form(
        {name: value for name, value in form.items() if name not in ("kind", "question", "answer_schema")}
    )


def encode_decision(decision: Decision) -> bytes:
    """Encodes a decision. One without an answer has the form that it has had since the first store."""
    form = plain_form(decision)
    if decision.verdict != "answer":
        del form["answer"]
    if form["remember"] is not None:
        form["remember"] = _rule_form(form["remember"])
    return encode_form(form)


def encode_rule(rule: Rule) -> bytes:
    """Encodes a rule. One for all principals has the form that it has had since the first store."""
    return encode_form(_rule_form(plain_form(rule)))


def _rule_form(form: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in form.items() if name not in ("principal", "tenant") or value is not None}


def _not_run(start: Start, kind: Any, why: str) -> ToolResult:
    return ToolResult.failed(kind, f"{start.step.tool!r} was not run: {why}.", data={"request_id": start.request_id})
