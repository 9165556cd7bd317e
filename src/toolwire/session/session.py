"""`Session`: reads a model's replies, runs what they ask for, and says what the model reads next."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.overlay import Overlay
from toolwire.catalogue.selection import Selection, Visible
from toolwire.definition.tool import Permission, Tool
from toolwire.facade.finding import allowed, offer_search
from toolwire.facade.intake import entries_of
from toolwire.facade.pages import keep_apart
from toolwire.facade.policies import PolicySource, policy_of, refuse_wrong_rules
from toolwire.facade.programs import offered, programs_entry, told_among
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.setup import Setup, call_blocking
from toolwire.facade.store import logged, opened
from toolwire.facade.toolkit import Toolkit
from toolwire.facade.tracing import Traced
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.ports import Tracer
from toolwire.invocation.scope import Run, ended
from toolwire.journal.run import SuspendedRun
from toolwire.permission.approval import Approver, Decision, refuse_wrong_approver
from toolwire.protocols import get
from toolwire.protocols.attp.prompt import StubStyle
from toolwire.protocols.base import CallingProtocol, Language, Thought
from toolwire.runtime.identity import new_id
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import MinIsolation
from toolwire.session.prompt_options import prompt_options
from toolwire.session.resume import Passes, RunStore, decisions_of, given_ids, run_calls
from toolwire.session.suspended import Suspended
from toolwire.session.turn import Turn
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller, Reply, ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult


class Session(Traced):
    """Tools, a protocol and rules, put together to talk to one model."""

    def __init__(
        self,
        tools: ToolRegistry | Toolkit | Iterable[object],
        *,
        protocol: str | CallingProtocol = "attp",
        permissions: Mapping[str, Permission] | None = None,
        policy: PolicySource | None = None,
        approver: Approver | None = None,
        store: str | RunStore | None = None,
        limits: Limits | None = None,
        min_isolation: MinIsolation | None = None,
        always: Iterable[str] | None = None,
        visible: Visible | None = None,
        caller: Caller | None = None,
        state: Mapping[str, Any] | None = None,
        language: Language | None = None,
        thought: Thought | None = None,
        style: StubStyle | None = None,
    ) -> None:
        """`tools`: a registry or toolkit, whose rules, approver and log then count, or whatever can be registered.

        `protocol` is the model's calling format. `permissions` stand in for the tools' own, by name; `policy` (a
        `Policy`, rules, or the path of a policy file) stands in for the registry's. `approver` is asked where a rule or
        tool says confirm. With a `store` (a `Store`, or the URL of one) turns and calls are on record, and a turn that
        nobody decides on now is suspended until somebody does; without, its calls do not run. `limits` bound each
        program, and behind weaker walls than `min_isolation` ("kernel") none runs; without either, what the registry
        gave its own programs counts.

        With `always` the model is told of the tools that it names (`*` stands for any text) and finds all others by
        `search_tools`, where `always=()` leaves all to the search. None: as the registry has it.

        `caller` is on whose behalf the model calls, by default the toolkit's agent; `visible(tool_name, caller)` says
        which tools are there for it, beside what the registry or toolkit says. The tools are followed live: what is
        registered or switched later counts from the next turn on. Bound parameters are looked up in `state` for this
        session alone, before the `state` of a toolkit or a `ToolSpec`; it is never stored.

        `language` ("en", "zh"), `thought` ("short", "full") and, for `attp`, `style` ("full", "compact") shape the
        prompt of a text protocol; None leaves them to the protocol, which takes the first.

        A text protocol's model may always run programs. A native one's may when the registry has them enabled.

        Raises:
            ConfigurationError: the protocol is unknown, `permissions` name a tool that is not there, `state` is not a
                mapping, the prompt has no such option, or a rule can do nothing for these tools.
        """
        refuse_wrong_approver(approver)
        self.protocol = get(protocol) if isinstance(protocol, str) else protocol
        self._prompt = prompt_options(self.protocol, language=language, thought=thought, style=style)
        self._catalogue, setup = _parts_of(tools)
        setup = setup.narrowed(visible=visible, caller=caller).with_state(state)
        offer_search(self._catalogue, lambda: self._setup, always)
        keep_apart(self._catalogue)
        rules = setup.policy if policy is None else policy_of(policy)
        is_whole = not isinstance(tools, Toolkit) and self._catalogue.is_whole
        refuse_wrong_rules(rules, self._catalogue, is_whole=is_whole)
        setup = replace(setup, policy=rules.for_session(self._known(permissions or {})))
        self._setup = setup if approver is None else replace(setup, approver=approver)
        self._offer_programs(limits, min_isolation)
        self._passes = None if store is None else self._kept_in(opened(store))
        self._taints: frozenset[Label] = frozenset()

    @property
    def tools(self) -> list[Tool]:
        """The tools that the model is told of: those that are not denied to it, or of many those it has found.

        `code_execution` is one of them unless the protocol speaks of programs by itself.
        """
        selection = self._selection
        told = dict(offered(selection, self._setup.policy))
        programs = selection.find(CODE_EXECUTION)
        if programs is not None and not self.protocol.writes_programs and self._is_offered(programs):
            told[CODE_EXECUTION] = programs.tool
        return [told[entry.name] for entry in selection if entry.name in told]

    @property
    def instructions(self) -> str | list[dict[str, Any]]:
        """What tells the model of the tools: the system prompt, or for a native protocol the request's tools."""
        return self.protocol.describe(self.tools, **self._prompt)

    async def turn(self, reply: Any) -> Turn:
        """Reads a reply, runs its calls (side by side where it makes several), and gives what the model reads next.

        A reply is text, bytes in UTF-8 or the `Reply` that a stream gave; for a native protocol also the SDK's own
        response or message, or the mapping of one. None is a message without content, an empty reply. Never raises for
        a reply that cannot be read or a call that fails: the turn says so. With a store, a turn that needs a person and
        does not get one is `suspended`.

        Raises:
            ConfigurationError: `reply` is not a reply of this protocol, such as another provider's object.
        """
        read = reply if isinstance(reply, Reply) else self.protocol.parse(reply, self._callable())
        run_id = new_id("r")
        return await self._followed(run_id, given_ids(run_id, read), self._take(run_id, read))

    async def _take(self, run_id: str, read: Reply) -> Turn:
        if not read.calls:
            return Turn.ended(read, (), self.protocol.refuse(read) if read.is_refused else [])
        run = Run(self._taints)
        if self._passes is None:
            results: Sequence[ToolResult] | SuspendedRun = await self._run(run_id, read, run)
        else:
            results = await self._passes.start(run_id, read, run)
        return self._turn(read, results, run)

    async def resume(
        self,
        run: str | SuspendedRun,
        decisions: str | Mapping[str, Any] | Iterable[Decision | Mapping[str, Any]] | None = None,
    ) -> Turn:
        """The turn, gone on with: in another process, after a crash, days later.

        `run` is its id, `turn.suspended`, or the text that `turn.suspended.to_json()` gave.

        Calls that ended are not run again, nor is the approved one whose outcome a crash hid, unless its tool knows
        how. A run that is finished gives its recorded turn and runs nothing. `decisions` are `Decision`s or mappings
        of their fields, or JSON of these, some or all of what is pending; what nobody decided leaves the turn
        suspended.

        Raises:
            DecisionRefused: the run or a decision cannot count; `code` says why, and nothing was run for it.
            ConfigurationError: the session has no store.
        """
        if self._passes is None:
            raise ConfigurationError(
                "Session.resume: give the session a store, Session(..., store='sqlite:///runs.db')"
            )
        run_id = await asyncio.to_thread(self._passes.named, run)
        if decisions is not None:
            # It waits for a disk, and an event loop must not.
            await asyncio.to_thread(self._passes.decide, run_id, decisions_of(run_id, decisions))
        await asyncio.to_thread(self._passes.restore_rules, run_id)
        return await self._followed(run_id, {}, self._resumed(self._passes, run_id))

    async def _resumed(self, passes: Passes, run_id: str) -> Turn:
        return self._turn(*await passes.again(run_id))

    async def _followed(self, run_id: str, ids: Mapping[str, str], turn: Coroutine[Any, Any, Turn]) -> Turn:
        """The turn; a tracer follows it."""
        tracer, caller = self._setup.tracer, self._setup.caller
        if tracer is None:
            return await turn
        span = tracer.turn(run_id, caller=caller, protocol=self.protocol.name, given_ids=ids)
        try:
            ended = await turn
        except BaseException as error:
            span.failed(error)
            raise
        refused = "refused" if ended.reply.is_refused else "answered"
        span.ended(refused if ended.suspended is None else "suspended", len(ended.reply.calls))
        return ended

    def __follow__(self, tracer: Tracer) -> None:
        """This session's turns and calls from now on, whatever its registry or toolkit has."""
        self._setup = replace(self._setup, tracer=tracer)
        if self._passes is not None:
            self._passes.setup = self._setup

    async def _run(self, run_id: str, read: Reply, run: Run) -> list[ToolResult]:
        scope = self._setup.loop_scope(self._catalogue, run_id=run_id)
        scope.run = run
        outcomes = await invoke_all(run_calls(run_id, read), scope)
        self._setup.policy.forget(run_id)
        return [ended(outcome) for outcome in outcomes]

    def _turn(self, read: Reply, results: Sequence[ToolResult] | SuspendedRun, run: Run) -> Turn:
        # What a turn has read stays in the model's context for all later ones.
        self._taints |= run.taints
        if isinstance(results, SuspendedRun):
            return Turn(reply=read, suspended=Suspended.of(results))
        answers = [_answering(result, call) for result, call in zip(results, read.calls, strict=True)]
        return Turn.ended(read, answers, self.protocol.format(answers))

    @property
    def _selection(self) -> Catalogue | Selection:
        return self._setup.select(self._catalogue)

    def _callable(self) -> list[Tool]:
        """What may be called: more than the model is told of where it searches.

        A call of a disabled tool is read like any other, so that it is refused for its reason.
        """
        callable_ = {entry.name: entry.described for entry in allowed(self._selection, self._setup.policy)}
        return [*callable_.values(), *(tool for tool in self.tools if tool.name not in callable_)]

    def _kept_in(self, store: RunStore) -> Passes:
        """Puts turns and calls on record there, and rules that persons kept there in force."""
        self._setup = logged(self._setup, store)
        passes = Passes(store, self._catalogue, self._setup, self.protocol.name)
        passes.restore_rules()
        return passes

    def _offer_programs(self, limits: Limits | None, min_isolation: MinIsolation | None) -> None:
        """Puts `code_execution` into the catalogue, unless it is there and stays, or is not to be there."""
        there = self._catalogue.find(CODE_EXECUTION)
        if there is not None and limits is None and min_isolation is None:
            self._catalogue.add(told_among(self._catalogue, lambda: self._setup, there), replace=True)
            return
        if self.protocol.is_native and there is None:
            return
        programs = programs_entry(
            self._catalogue,
            lambda: self._setup,
            limits or Limits(),
            self._call_back,
            min_isolation=min_isolation or "kernel",
        )
        self._catalogue.add(programs, replace=True)

    def _is_offered(self, entry: Entry) -> bool:
        return entry.disabled is None and not self._setup.denies(entry)

    def _call_back(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        call = ToolCall(name, arguments, id=new_id("r"))
        return call_blocking(call, self._setup.scope(self._catalogue), self._setup)

    def _known(self, permissions: Mapping[str, Permission]) -> Mapping[str, Permission]:
        for name in permissions:
            if name not in self._catalogue and name != CODE_EXECUTION:
                near = self._catalogue.nearest(name)
                raise ConfigurationError(
                    f"permissions name {name!r}, and there is no such tool"
                    + (f"; did you mean {near!r}?" if near else "")
                )
        return permissions


def _parts_of(tools: ToolRegistry | Toolkit | Iterable[object]) -> tuple[Catalogue, Setup]:
    """A catalogue of the session's own over that of the tools, and how calls are run."""
    if isinstance(tools, ToolRegistry | Toolkit):
        catalogue, setup = tools.__offer__()
        return Overlay(catalogue), setup
    catalogue = Catalogue()
    for thing in tools:
        for entry in entries_of(thing):
            catalogue.add(entry)
    return catalogue, Setup()


def _answering(result: ToolResult, call: ToolCall) -> ToolResult:
    """The result under the id that the provider gave its call: a model may use one twice, and a run may not."""
    if not call.id:
        return result
    return ToolResult(
        result.success,
        result.data,
        result.error,
        result.metadata,
        content=result.blocks,
        failure=result.failure,
        call=call,
    )
