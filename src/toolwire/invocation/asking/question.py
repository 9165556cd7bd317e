"""The questions of one running call. A question is a request like an approval, and its tool waits for the answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NoReturn

from toolwire.invocation.ask import LATE, NO_ANSWER, accept_or_deny, ask_for_decision, is_late, new_request
from toolwire.invocation.asking.call_notes import CallNotes
from toolwire.invocation.asking.ends import other_call, other_question, too_many, wrong_round
from toolwire.invocation.ports.pauses import PauseClock
from toolwire.invocation.ports.ports import Ledger
from toolwire.invocation.record import is_divergence
from toolwire.invocation.scope import Scope
from toolwire.invocation.tell import tell_asked, tell_decided
from toolwire.invocation.validate import Prepared
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.deciding import UNASKED, author_text
from toolwire.vocabulary.context import Interrupted
from toolwire.vocabulary.errors import BoundValueError, ConfigurationError, DefinitionError, Unrepresentable
from toolwire.vocabulary.questions import A_PERSON, QUESTIONS_LIMIT, InputRequired, Question, QuestionDeclined
from toolwire.vocabulary.results import Outcome, Pending, ToolResult
from toolwire.vocabulary.values import digest, plain_value


class Questions:
    """The questions of one call. Its tool may ask from any thread or task."""

    def __init__(self, prepared: Prepared, scope: Scope) -> None:
        self._call, self._scope = prepared.call, scope
        self._asker = prepared.entry.tool.asker
        self._prepared = prepared
        # A wait moves the time limits of the calls around it, but not the end of the run, which the first clock knows.
        self.clock = PauseClock(scope.clocks[0].deadline if scope.clocks else scope.deadline)
        self.clocks = (*scope.clocks, self.clock)
        """The clocks that a wait stops, also for the calls that the tool makes."""
        self._calls: set[Future[None]] = set()
        """The calls of the tool that are under way."""
        self._ordinals = count(1)
        self.notes = CallNotes(self._call.id, scope.ledger)
        self.answers: Mapping[str, Any] = {}
        self.state: Any = None
        self.outcome: Outcome | None = None
        """The outcome of the call if the tool must not go on; None as long as it may."""
        self.wanted: InputRequired | None = None
        """The questions that the tool has returned in this pass."""
        self.error: Exception | None = None
        """The error of the record, which leaves the call as an exception."""
        self.is_async = prepared.entry.tool.is_async
        """True if the tool awaits its answers. A sync tool waits in its thread."""
        self._start: Callable[[Callable[[], Coroutine[Any, Any, Any]]], Future[Any]] | None = None
        if not self.is_async:
            self._start = scope.ports.from_tool()
        self._waiting: set[Future[Any]] = set()
        """The questions for whose answer a thread waits."""
        self._is_stopped = False

    def put(self, question: Question) -> Any:
        """Asks for the tool: returns a coroutine of the answer, or the answer itself in a sync tool."""
        schema = answer_schema_of(question)
        core = partial(self._answer, next(self._ordinals), question.message, schema)
        if self._start is None:
            return core()
        if self.is_async:
            raise ConfigurationError(
                f"{self._call.name!r} returns an awaitable from a plain function: write it with `async def` to ask"
            )
        waiting = self._start(core)
        self._waiting.add(waiting)
        if self._is_stopped:
            waiting.cancel()
        try:
            return waiting.result()
        except CancelledError as error:
            raise Interrupted from error
        finally:
            self._waiting.discard(waiting)

    def stop(self) -> None:
        """Ends the wait of a sync tool. The call was cancelled or its time is over."""
        # The order matters: a thread that is about to wait will then see `_is_stopped`.
        self._is_stopped = True
        for waiting in tuple(self._waiting):
            waiting.cancel()

    def wants(self, wanted: InputRequired) -> ToolResult:
        """Takes the questions that the tool returned. The result stands for the pass and is not told."""
        self.wanted = wanted
        return ToolResult(True, None, call=self._call)

    def leave(self, outcome: Outcome) -> NoReturn:
        """Ends the tool with this outcome. The first one counts, and calls that wait are added up."""
        first = self.outcome
        if isinstance(first, Pending) and isinstance(outcome, Pending):
            self.outcome = Pending(call=self._call, request_ids=(*first.request_ids, *outcome.request_ids))
        elif first is None:
            self.outcome = outcome
        raise Interrupted

    async def resume(self) -> None:
        """Goes back to the last `InputRequired` on record, if the tool has returned one in an earlier pass."""
        ledger = self._scope.ledger
        notes = () if ledger is None else ledger.notes(self._call.id)
        if notes:
            await self._round(_Round.read(notes[-1]))

    async def require(self, wanted: InputRequired) -> None:
        """Asks the questions that the tool returned, and keeps the answers for its next pass.

        `outcome` is set if the tool must not be called again now.
        """
        self._is_stopped = False
        try:
            schemas = {name: answer_schema_of(question) for name, question in wanted.questions.items()}
            state = plain_value(wanted.state)
        except (ConfigurationError, Unrepresentable) as error:
            self.outcome = wrong_round(self._call, error)
            return
        messages = {name: question.message for name, question in wanted.questions.items()}
        first, calls = next(self._ordinals), next(self._prepared.numbers)
        found = _Round(first=first, messages=messages, schemas=schemas, state=state, calls=calls)
        if self._scope.ledger is not None:
            self._scope.ledger.note(self._call.id, found.form())
        await self._round(found)

    async def _round(self, found: _Round) -> None:
        """Asks all questions of the round. If one of them waits, the others are asked all the same."""
        decisions: dict[str, tuple[ApprovalRequest, Decision]] = {}
        for number, (name, message) in enumerate(found.messages.items(), found.first):
            with suppress(Interrupted), self._pause_clocks():
                wanted = self._request(number, message, found.schemas[name], name)
                decisions[name] = await self._decision(number, wanted, self._scope.ledger)
            if self.outcome is not None and not isinstance(self.outcome, Pending):
                return
        if self.outcome is not None:
            return
        await self._use((request for request, _ in decisions.values()), self._scope.ledger)
        self.answers = {
            name: plain_value(decision.answer) if decision.verdict == "answer" else _declined(request, decision)
            for name, (request, decision) in decisions.items()
        }
        self.state, self._ordinals = found.state, count(found.first + len(found.messages))
        self._prepared.numbers = count(found.calls + 1)

    async def _answer(self, number: int, message: str, schema: Mapping[str, Any]) -> Any:
        # A server that waits for the answer cannot be asked again after a crash, so nothing may lead back to here.
        ledger = None if self._asker else self._scope.ledger
        try:
            with self._pause_clocks():
                request, decision = await self._decision(number, self._request(number, message, schema), ledger)
                await self._use([request], ledger)
        except Exception as error:
            raise self._note_failed_record(error) from error
        if decision.verdict == "answer":
            return plain_value(decision.answer)
        raise _declined(request, decision)

    async def await_call(self, calling: Coroutine[Any, Any, Outcome]) -> ToolResult:
        """Awaits a call that the tool makes, and returns its result.

        The tool ends here if the call waits for a person, or differs from the one on record.
        """
        under_way = Future[None]()
        self._calls.add(under_way)
        try:
            outcome = await calling
        except BoundValueError:
            raise
        except Exception as error:
            raise self._note_failed_record(error) from error
        finally:
            self._calls.discard(under_way)
            under_way.set_result(None)
        if isinstance(outcome, Pending):
            self.leave(outcome)
        if is_divergence(outcome):
            self.leave(other_call(self._call, outcome))
        return outcome

    async def end_calls(self) -> None:
        """Waits for the calls that the tool left under way, if it waits for a person.

        None of them may run on when the run is suspended.
        """
        for under_way in tuple(self._calls) if isinstance(self.outcome, Pending) else ():
            await self._scope.ports.wait_for(under_way)

    def _note_failed_record(self, error: Exception) -> Interrupted:
        # The record failed: the tool must not catch that and go on.
        self.error = self.error or error
        return Interrupted()

    @contextmanager
    def _pause_clocks(self) -> Generator[None]:
        for clock in self.clocks:
            clock.begin()
        try:
            yield
        finally:
            for clock in self.clocks:
                clock.end()

    async def _use(self, requests: Iterable[ApprovalRequest], ledger: Ledger | None) -> None:
        if ledger is not None:
            await self._scope.ports.wait_for(ledger.use_answers([request.id for request in requests]))

    async def _decision(
        self, number: int, wanted: ApprovalRequest, ledger: Ledger | None
    ) -> tuple[ApprovalRequest, Decision]:
        """Returns the question as a request, and the answer or refusal that counts. Without one, it ends the tool."""
        scope, call = self._scope, self._call
        if number > QUESTIONS_LIMIT:
            self.leave(too_many(call))
        request, decision = wanted, None
        if ledger is not None:
            request, decision = await scope.ports.wait_for(ledger.ask(wanted))
            if (request.kind, request.arguments_digest) != (wanted.kind, wanted.arguments_digest):
                self.leave(other_question(call, request.id))
        why = LATE if is_late(request, scope) else NO_ANSWER
        if decision is not None:
            decision = accept_or_deny(decision, request, scope)
        elif not is_late(request, scope):
            tell_asked(request, call, scope)
            decision, why = await ask_for_decision(request, scope, ledger)
        if decision is None and self._asker and (ledger is None or not self._scope.can_suspend):
            decision = await self._decline(request, why, ledger)
        if decision is None:
            self._leave_unanswered(request, why)
        tell_decided(request, decision, call, scope)
        if decision.verdict == "stop_run":
            self._stop_run(decision)
        return request, decision

    async def _decline(self, request: ApprovalRequest, why: str, ledger: Ledger | None) -> Decision:
        """Declines a server's question in the place of a person, so that the server can end its work."""
        self._warn_of_nobody(request, why)
        seen = request.arguments_digest
        by = Decider(channel=UNASKED)
        refusal = Decision(verdict="deny", reason=why, by=by, request_id=request.id, seen_arguments_digest=seen)
        return refusal if ledger is None else await self._scope.ports.wait_for(ledger.decide(request, refusal))

    def _leave_unanswered(self, request: ApprovalRequest, why: str) -> NoReturn:
        call, data = self._call, {"request_id": request.id}
        if is_late(request, self._scope):
            message = f"{call.name!r} was stopped at its question: no answer came in time."
            self.leave(ToolResult.failed("approval_expired", message, hint=_BEFORE, data=data, call=call))
        if self._scope.can_suspend:
            self.leave(Pending(call=call, request_ids=(request.id,)))
        self._warn_of_nobody(request, why)
        message = f"{call.name!r} was stopped at its question: a person has to answer, and {why}."
        self.leave(ToolResult.failed("approval_required", message, hint=_BEFORE, data=data, call=call))

    def _warn_of_nobody(self, request: ApprovalRequest, why: str) -> None:
        has_approver = self._scope.approver is not None
        if not has_approver or why == NO_ANSWER:
            self._scope.nobody_asked.warn(request.tool, is_question=True, has_approver=has_approver)

    def _stop_run(self, decision: Decision) -> NoReturn:
        reason = decision.reason or "a person stopped the run"
        if self._scope.run is not None:
            self._scope.run.stopped = reason
        message = f"{self._call.name!r} was stopped at its question: {reason}."
        self.leave(ToolResult.failed("denied", message, data={"reason": reason}, call=self._call))

    def _request(self, number: int, message: str, schema: Mapping[str, Any], name: str = "") -> ApprovalRequest:
        return new_request(
            self._prepared,
            self._scope,
            kind="question",
            question=message,
            name=name,
            answer_schema=schema,
            call_id=f"{self._call.id}?{number}",
            arguments={},
            reasons=(f"untrusted:{self._asker}",) if self._asker else (),
            parent=self._call.id,
            arguments_digest=digest({"question": message, "schema": schema}),
        )


def _declined(request: ApprovalRequest, decision: Decision) -> QuestionDeclined:
    return QuestionDeclined(request.question, decision.reason, by=author_text(decision.by, person=A_PERSON))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One `InputRequired` of a tool, as it is on record."""

    first: int
    """The number of the first of its questions."""
    messages: Mapping[str, str]
    schemas: Mapping[str, Mapping[str, Any]]
    state: Any
    calls: int = 0
    """A number between those of the calls that the tool made before and after."""

    def form(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> _Round:
        return cls(**form)


_BEFORE = "It stopped there, and may have done a part of its work. Tell the user that a person has to answer."


def answer_schema_of(question: Question) -> dict[str, Any]:
    """Returns the schema of the answer as plain JSON.

    Raises:
        ConfigurationError: No answer can be checked against it.
    """
    # Imported here: the JSON schema validator takes a tenth of a second, and most tools ask nothing.
    from toolwire.permission.edits import check_answer_schema

    try:
        return check_answer_schema(question.schema)
    except (DefinitionError, Unrepresentable) as error:
        raise ConfigurationError(str(error)) from error
