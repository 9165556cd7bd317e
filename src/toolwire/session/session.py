"""`Session`: reads a model's replies, runs their calls, and returns the messages for the model."""

# Over 500 lines: most of it are the texts of what users call, and each method is a few lines over the parts of a turn.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from toolwire.catalogue.selection import Visible
from toolwire.catalogue.similar_names import suggestion
from toolwire.definition.tool import Permission, Tool
from toolwire.facade.built_in.kept_variables import KeepVariables
from toolwire.facade.built_in.program_entry import program_prompt_options
from toolwire.facade.driving import async_ports, async_scope
from toolwire.facade.named_tools import tools_html
from toolwire.facade.observing.observation import Observable, Watchers
from toolwire.facade.observing.traced import Traceable
from toolwire.facade.policy_sources import PolicySource
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.store_opening import resolve_store, scope_with_log
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.invocation.batch import invoke_turn
from toolwire.invocation.scope import Run, Scope, require_result
from toolwire.journal.conversation_info import refuse_other
from toolwire.journal.kept_reply import reply_of
from toolwire.journal.run import SuspendedRun
from toolwire.permission.approval import Approver
from toolwire.permission.seen_urls import with_urls
from toolwire.protocols.attp.prompt import StubStyle
from toolwire.protocols.base import CallingProtocol, Language, Thought
from toolwire.protocols.streaming import ReplyStream
from toolwire.runtime.identity import new_id
from toolwire.runtime.runtime import Runtime
from toolwire.runtime.tracer import Tracer
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import MinIsolation
from toolwire.sandbox.runner import RunnerChoice
from toolwire.session.dialogue import Dialogue, OnUnreadable
from toolwire.session.finish import TurnFinish, end_of, offer_finish
from toolwire.session.frame import refuse_options_below, run_below, trace_turn, turn_scope
from toolwire.session.kept_instructions import KeptInstructions
from toolwire.session.programs import Bounds, with_programs
from toolwire.session.runs.resume import Runs, RunStore, provider_ids, run_calls
from toolwire.session.runs.run_waiting import check_priority, check_timeout, wait_for_run
from toolwire.session.runs.turn_keys import keyed_run_id
from toolwire.session.runs.wire import GivenDecisions
from toolwire.session.session_tools import callable_tools, nameable_tools, read_reply, visible_tools, with_notes
from toolwire.session.setup import (
    bind_built_in,
    choose_protocol,
    new_conversation,
    own_scope,
    prompt_options,
    scope_with_rules,
)
from toolwire.session.turn import Suspended, Turn, result_for_provider
from toolwire.vocabulary.calls import Caller, Reply
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError
from toolwire.vocabulary.machine.system import call_at_fork
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolwire.permission.explain import Explanation
    from toolwire.vocabulary.call_events import ToolEvent


_UNNAMED: WeakSet[Session] = WeakSet()
"""Sessions with a store whose conversation the caller did not name. Each process that is forked has another."""


class Session(Traceable, Observable):
    """Tools, a protocol and rules for talking to one model.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> session = Session([add], protocol="xml")  # give session.system_prompt to the model
    >>> turn = session.run_turn("<tool_call><name>add</name><params><a>1</a><b>2</b></params></tool_call>")
    >>> turn.results[0].data  # append turn.reply.message and turn.messages to the conversation, and ask again
    3

    A session follows its tools live: tools that are registered or switched later count from the next turn on.
    `programs` says whether the model may reply with programs. None: with `attp` it may, and with other protocols only
    if the registry has enabled programs.

    Attributes:
        protocol: The model's calling format, as an object.
    """

    _taints: frozenset[Label] = frozenset()
    """Labels of the data that the model has read."""
    _urls: tuple[str, ...] = ()
    """URLs that stood whole in results that the model has read."""
    _first: Caller | None = None
    """The caller of the first turn without a store, whose principal the conversation belongs to."""

    def __init__(
        self,
        tools: ToolRegistry | Toolkit | Iterable[object],
        *,
        protocol: str | CallingProtocol = "attp",
        permissions: Mapping[str, Permission] | None = None,
        policy: PolicySource | None = None,
        approver: Approver | None = None,
        store: str | RunStore | None = None,
        programs: bool | None = None,
        limits: Limits | None = None,
        min_isolation: MinIsolation | None = None,
        runner: RunnerChoice | None = None,
        modules: Iterable[str] | None = None,
        variables: KeepVariables | None = None,
        always: Iterable[str] | None = None,
        visible: Visible | None = None,
        caller: Caller | None = None,
        conversation: str | None = None,
        state: Mapping[str, Any] | None = None,
        language: Language | None = None,
        thought: Thought | None = None,
        style: StubStyle | None = None,
        on_unreadable: OnUnreadable = "keep",
        finish: str | type[BaseModel] | None = None,
        read_text_calls: bool = False,
        ending_line: bool = False,
    ) -> None:
        """Combines the tools with a protocol and rules.

        `tools` is a registry or toolkit, whose rules, approver and log apply, or a list of what it can register.
        `permissions` replace the tools' own by name, and `policy` (a `Policy`, rules, or a file) the registry's.
        `approver` asks. With a `store` (a `Store` or its URL) turns are recorded, and one that needs a decision is
        suspended; else such calls do not run. `limits` bound programs and clean-ups, no program runs below
        `min_isolation` or imports more than `modules`, and `runner` ("kernel", "wasm", a `ProgramRunner`) runs them;
        None: the registry's settings. With `variables="keep"`, a program has the variables of the last. `language`
        ("en", "zh"), `thought` ("short", "full") and, for `attp`, `style` ("full", "compact") shape a text prompt; None
        is the first. `on_unreadable="note"` notes an unreadable reply in `turn.reply.message`. With `always`, the model
        sees the tools that it names (`*` matches any text), and finds others with `search_tools`; None: the registry's
        setting. `finish` offers a tool by which the model ends: its name, or a pydantic model (`Turn.final`).
        `read_text_calls` runs a native text that is only calls. `ending_line` adds to native results how to end.
        `conversation` names what turns of several processes share; None: a new id. The model calls for `caller`, or the
        toolkit's agent, and sees what `visible(tool_name, caller)` allows. Bound parameters come from `state` first.

        Raises:
            ConfigurationError: An option or name is unknown, taken or does not fit, or a rule has no effect.
        """
        self.protocol = choose_protocol(protocol, read_text_calls=read_text_calls)
        self._prompt = prompt_options(self.protocol, ending_line, language=language, thought=thought, style=style)
        scope, self._watchers = own_scope(tools, conversation)
        self._scope = scope.narrow(visible=visible, caller=caller).with_state(state)
        bind_built_in(lambda: self._scope, always)
        is_whole, is_new = not isinstance(tools, Toolkit), conversation is None
        self._scope = scope_with_rules(self._scope, policy, permissions or {}, approver, is_whole=is_whole)
        bounds = Bounds(limits, min_isolation, modules, variables, runner)
        self._scope, self._variables = with_programs(lambda: self._scope, self.protocol, programs, bounds, language)
        self._finish = offer_finish(finish, self._scope)
        self._runs, self._instructions = WeakSet[Run](), KeptInstructions()
        self._stored_runs = None if store is None else self._open_runs(resolve_store(store), is_new=is_new)
        self._dialogue = Dialogue(self.protocol, language, on_unreadable, self._finish, self._variables, ending_line)

    @property
    def conversation(self) -> str:
        """The name of the conversation that the session's turns belong to."""
        return self._scope.conversation

    @property
    def caller(self) -> Caller:
        """The caller for which the model calls, unless a turn names another."""
        return self._scope.caller

    @property
    def store(self) -> RunStore | None:
        """The store that records the session's turns; None without one."""
        return None if self._stored_runs is None else self._stored_runs.store

    @property
    def tools(self) -> list[Tool]:
        """The tools that the model sees: neither disabled nor denied, and with tool search those found so far.

        `code_execution` is included unless the protocol's prompt explains programs itself.
        """
        return visible_tools(self._scope, self.protocol)

    @property
    def instructions(self) -> str | list[dict[str, Any]]:
        """The description of the tools: the system prompt, or for a native protocol the request's tools."""
        self._dialogue.has_prompt = True
        if self._stored_runs is not None:
            self._stored_runs.groups.switch_on(self._scope)
        options = {**self._prompt, **program_prompt_options(self._scope.catalogue, self.protocol)}
        return with_notes(self._instructions.of(self.protocol, self.tools, options), self._scope)

    @property
    def system_prompt(self) -> str:
        """The system prompt of a text protocol.

        Raises:
            ConfigurationError: The protocol is native. Its tools go into the request, as `request_tools`.
        """
        described = self.instructions
        if isinstance(described, str):
            return described
        raise ConfigurationError(
            f"the protocol {self.protocol.name!r} has no system prompt: give session.request_tools to the request"
        )

    @property
    def request_tools(self) -> list[Any]:
        """The `tools` of a native protocol's request, in the provider's form.

        Raises:
            ConfigurationError: The protocol is a text protocol. Its tools stand in `system_prompt`.
        """
        described = self.instructions
        if not isinstance(described, str):
            return described
        raise ConfigurationError(
            f"the protocol {self.protocol.name!r} has no request tools: give session.system_prompt to the model"
        )

    def stream(self, *, marks_end: bool | None = None) -> ReplyStream:
        """Returns a parser for one reply that arrives in pieces, over all tools that a turn may call.

        Give each piece to `feed`, and the complete reply to `turn`: `await session.turn(stream.reply())`. `turn`
        refuses a reply whose end is not marked. A provider marks it, unless `marks_end=False` says that this server
        never does. A text has no mark: with `marks_end=True` the caller marks it by `stream.end()`. None: the
        protocol's own way.
        """
        tools = callable_tools(self._scope, self.protocol)
        return self.protocol.stream(tools) if marks_end is None else self.protocol.stream(tools, marks_end=marks_end)

    def __repr__(self) -> str:
        kept = "" if self._stored_runs is None else ", with a store"
        return f"<Session {self.protocol.name!r}: {count_of(len(self._scope.catalogue), 'tool')}{kept}>"

    def _repr_html_(self) -> str:
        """Returns the session with its tools as HTML, which notebooks show. All texts are escaped."""
        from toolwire.vocabulary.html_display import html_text

        return html_text(repr(self)) + tools_html(self._scope.tools, self._scope.policy)

    def run_turn(
        self,
        reply: Any,
        *,
        deadline_s: float | None = None,
        events: Callable[[ToolEvent], Any] | None = None,
        caller: Caller | None = None,
        key: str | None = None,
    ) -> Turn:
        """Runs `turn` for blocking code, also in a notebook, and returns its result.

        The turn runs on an event loop in a thread of toolwire's own, and so does a coroutine function as `events`. In a
        coroutine, await `turn` instead: this method blocks the event loop.

        Raises:
            ConfigurationError, DecisionRefused: As `turn`.
        """
        turn = partial(self.turn, reply, deadline_s=deadline_s, events=events, caller=caller, key=key)
        return self._scope.runtime.portal.run(turn)

    async def turn(
        self,
        reply: Any,
        *,
        deadline_s: float | None = None,
        events: Callable[[ToolEvent], Any] | None = None,
        caller: Caller | None = None,
        below: CallContext | None = None,
        key: str | None = None,
    ) -> Turn:
        """Reads a reply, runs its calls in parallel, and returns the turn with the messages for the model.

        `reply` is text, UTF-8 bytes, or the `Reply` of a stream. A native protocol also accepts the SDK's response or
        message, or a mapping of either. None is a message without content. An unreadable reply or a failing call does
        not raise; the turn reports it. With a store, a turn that needs a decision and gets none is `suspended`.

        `deadline_s` is the time in seconds after which no call or program of this turn starts or goes on. `events` is a
        function that takes each `ToolEvent` of this turn, in order. Each call waits until it has taken the call's
        events. `caller` replaces the session's caller for this turn.

        A turn with a `key`, such as the id of a message in a queue, runs once in its conversation, in any process. The
        same key again goes on with it, as `resume` does, or returns its recorded turn. It needs a store.

        With `below`, the context of a running tool, the calls are calls of that tool: its turn's rules, deadline,
        labels, events and record hold for them, beside this session's tools and rules, and the earlier deadline counts.
        The agent is that of the session's caller. If a call waits for a person, the tool ends here and is called again
        after the decision.

        Raises:
            ConfigurationError: `reply` is not a reply of this protocol, such as another provider's object, an option
                does not fit, or two streams in a row broke off before their end.
            DecisionRefused: `not_permitted` (another principal's conversation) or `conversation_busy`. With a key also
                `divergence` (another reply has run with it), `run_busy` (it is at work elsewhere), or `run_ended` (its
                record was deleted). Nothing was run.
        """
        if below is not None:
            refuse_options_below(events=events, caller=caller, store=self._stored_runs, key=key)
            async with turn_scope(self._scope, deadline_s=deadline_s, events=None, caller=None) as scope:
                return await self._turn_below(reply, below, scope)
        if deadline_s is None and events is None and caller is None:
            return await self._read(reply, self._scope, key)
        async with turn_scope(self._scope, deadline_s=deadline_s, events=events, caller=caller) as scope:
            if self._stored_runs is not None:
                await self._stored_runs.with_scope(scope).restore_rules_once()
            return await self._read(reply, scope, key)

    async def _turn_below(self, reply: Any, context: CallContext, scope: Scope) -> Turn:
        read = read_reply(reply, scope, self.protocol)
        self._dialogue.count_broken(read)
        if not read.calls:
            return self._dialogue.without_calls(read, nameable_tools(scope, self.protocol))
        for_whom = replace(context.scope.caller, agent=scope.caller.agent)
        with self._variables.turn(for_whom) as shared:
            scope = replace(scope, variables=shared)
            results, end = await run_below(read, context, scope, self._finish)
        answers = [result_for_provider(result, call) for result, call in zip(results, read.calls, strict=True)]
        turn = self._dialogue.with_results(new_id("r"), read, answers, nameable_tools(scope, self.protocol), end)
        run: Run | None = context.scope.run
        return replace(turn, run_id="", stopped="" if run is None else run.stopped or "")

    async def _read(self, reply: Any, scope: Scope, key: str | None) -> Turn:
        runs = None if key is None else self._require_runs("turn(key=...)").with_scope(scope)
        run_id = new_id("r") if key is None else keyed_run_id(scope.conversation, key)
        read = read_reply(reply, scope, self.protocol)
        self._dialogue.count_broken(read)
        if runs is not None and await runs.has(run_id):
            await asyncio.to_thread(runs.restore_rules, run_id)
            turn = self._run_again(runs, run_id, scope, read)
        else:
            turn = self._take(run_id, read, scope)
        name = self.protocol.name
        return await trace_turn(turn, scope, run_id=run_id, protocol=name, given_ids=provider_ids(run_id, read))

    async def _take(self, run_id: str, read: Reply, scope: Scope) -> Turn:
        if not read.calls:
            return self._dialogue.without_calls(read, nameable_tools(scope, self.protocol))
        run = self._new_run(self._taints)
        run.saw(self._urls)
        if self._stored_runs is None:
            results: Sequence[ToolResult] | SuspendedRun = await self._run(run_id, read, run, scope)
        else:
            results = await self._stored_runs.with_scope(scope).start(run_id, read, run)
        return self._turn(run_id, read, results, run, scope)

    def run_submit(self, reply: Any, *, priority: int = 0) -> str:
        """Runs `submit` for blocking code, also in a notebook, and returns its result; see `run_turn`.

        Raises:
            ConfigurationError, DecisionRefused: As `submit`.
        """
        return self._scope.runtime.portal.run(partial(self.submit, reply, priority=priority))

    async def submit(self, reply: Any, *, priority: int = 0) -> str:
        """Records a reply for a worker (`toolwire worker`) and returns the id of its run, once that is durable.

        Nothing runs here. The turns of a conversation run one after the other, in the order in which they were
        submitted. Of others the one with the higher `priority` begins first. `wait` gives the turn.

        Raises:
            ConfigurationError: As `turn`, or the session has no `Store`, or `priority` is not a whole number.
            DecisionRefused: `not_permitted`: the conversation is another principal's.
        """
        runs = self._require_runs("submit")
        check_priority(priority)
        read = read_reply(reply, self._scope, self.protocol)
        self._dialogue.count_broken(read)
        run_id = new_id("r")
        await async_ports(self._scope).wait_for(runs.submit(run_id, read, self._taints, priority))
        return run_id

    def run_wait(self, run_id: str, *, timeout_s: float | None = None) -> Turn:
        """Runs `wait` for blocking code, also in a notebook, and returns its result; see `run_turn`.

        Raises:
            TimeoutError, DecisionRefused, ConfigurationError: As `wait`.
        """
        return self._scope.runtime.portal.run(partial(self.wait, run_id, timeout_s=timeout_s))

    async def wait(self, run_id: str, *, timeout_s: float | None = None) -> Turn:
        """Waits until a run has ended or waits for people, and returns its turn. Nothing runs here.

        A turn that waits is `suspended`. `timeout_s` is in seconds; None waits as long as it takes.

        Raises:
            TimeoutError: The run has not ended in time. It goes on; `wait` may be called again.
            DecisionRefused: `unknown_run`, `not_permitted` (another principal's run), `parked` or `divergence`.
            ConfigurationError: The session has no store, or `timeout_s` is not a number from 0.
        """
        check_timeout(timeout_s)
        passes = self._require_runs("wait").with_scope(self._scope)
        await asyncio.to_thread(passes.run_id_of, run_id)
        async with asyncio.timeout(timeout_s):
            suspended = await wait_for_run(passes.store, run_id)
        if suspended is None:
            return await self._run_again(passes, run_id, self._scope)
        read = reply_of(suspended.start.reply)
        return Turn(reply=read, suspended=Suspended.of(suspended), run_id=run_id)

    def _require_runs(self, what: str) -> Runs:
        if self._stored_runs is None:
            raise ConfigurationError(f"{what}: give the session a store, Session(..., store='sqlite:///runs.db')")
        return self._stored_runs

    def explain_call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Explanation:
        """Returns the effect of the rules on a call, as `ToolRegistry.explain_call`, with what this conversation read.

        So it tells of a guard on private and untrusted data. With a store it waits for the store. Runs nothing.

        Raises:
            RegistrationError: No tool has that name, or the model may not call it.
            ConfigurationError: The arguments are wrong.
        """
        from toolwire.facade.given_calls import explain_in

        entry = next((one for one in self._scope.catalogue if one.name == name), None)
        if entry is None or self._scope.tools.find(name) is None:
            raise RegistrationError(f"no tool is named {name!r}{suggestion(self._scope.catalogue.nearest(name))}")
        read = self._taints if self._stored_runs is None else self._taints | self._stored_runs.taints()
        run = self._new_run(read)
        run.saw(self._urls)
        return explain_in(replace(self._scope, run=run), entry, arguments)

    def interrupt(self, reason: str = "the user stopped it") -> None:
        """Stops the turns of this session that run, from any thread. `turn` then returns, with messages as ever.

        Calls that have ended keep their results. One that runs is cancelled, gets `Limits(cleanup_s=)` seconds for its
        clean-up, and is told as one that may have taken effect. Those that have not begun do not run, and nothing waits
        for a person. `reason` is told to the model. Without a running turn, nothing happens.
        """
        for run in list(self._runs):
            run.interrupt(reason)

    def _new_run(self, taints: Iterable[Label]) -> Run:
        run = Run(taints, None if self._finish is None else TurnFinish(self._finish))
        self._runs.add(run)
        return run

    def run_resume(
        self,
        run: str | SuspendedRun,
        decisions: GivenDecisions | None = None,
        *,
        deadline_s: float | None = None,
        events: Callable[[ToolEvent], Any] | None = None,
        caller: Caller | None = None,
    ) -> Turn:
        """Runs `resume` for blocking code, also in a notebook, and returns its result; see `run_turn`.

        Raises:
            DecisionRefused, ConfigurationError: As `resume`.
        """
        turn = partial(self.resume, run, decisions, deadline_s=deadline_s, events=events, caller=caller)
        return self._scope.runtime.portal.run(turn)

    async def resume(
        self,
        run: str | SuspendedRun,
        decisions: GivenDecisions | None = None,
        *,
        deadline_s: float | None = None,
        events: Callable[[ToolEvent], Any] | None = None,
        caller: Caller | None = None,
    ) -> Turn:
        """Continues a turn, also in another process, after a crash or days later.

        `run` is the run's id, `turn.suspended`, or the text of `turn.suspended.to_json()`. `decisions` are `Decision`
        objects, mappings of their fields, or JSON of these. They may cover a part of the pending requests; the turn
        stays suspended until all are decided. `deadline_s`, `events` and `caller` are as in `turn`, for this pass.

        Calls that ended are not run again. Nor is an approved call whose outcome a crash hid, unless its tool allows
        it. A finished run returns its recorded turn and runs nothing.

        Raises:
            DecisionRefused: The run or a decision is not valid; `code` gives the reason. Nothing was run, except with
                `divergence`: other calls of the reply may have run before it was found.
            ConfigurationError: The session has no store, or runs no programs and the run holds one. Or `finish` does
                not fit the call by which the run ended. Or an option does not fit.
        """
        runs = self._require_runs("resume")
        async with turn_scope(self._scope, deadline_s=deadline_s, events=events, caller=caller) as scope:
            passes = runs.with_scope(scope)
            run_id = await passes.prepare_resume(run, decisions)
            turn = self._run_again(passes, run_id, scope)
            return await trace_turn(turn, scope, run_id=run_id, protocol=self.protocol.name, given_ids={})

    async def _run_again(self, passes: Runs, run_id: str, scope: Scope, expected: Reply | None = None) -> Turn:
        return self._turn(run_id, *await passes.run_again(run_id, expected), scope)

    def _watchers_and_runtime(self) -> tuple[Watchers, Runtime]:
        return self._watchers, self._scope.runtime

    def _belong_to(self, agent_run: object, before: Session | None) -> Tracer | None:
        """Makes later turns part of an agent's run, and returns the tracer.

        The turns know the labels and URLs that the session `before` has read, and the rules that people kept for it.
        With a store, the record of the conversation knows them.
        """
        self._scope = replace(self._scope, agent_run=agent_run)
        if before is not None:
            self._taints, self._urls, self._first = before._taints, before._urls, before._first  # noqa: SLF001 - as self
            self._variables.take_from(before._variables)  # noqa: SLF001 - as self
            for rule in before._scope.policy.rules_of_decisions:  # noqa: SLF001 - as self
                self._scope.policy.restore(rule)
        return self._scope.tracer

    def _restore_rules(self, runs: Sequence[str]) -> None:
        """Restores the rules that people kept for the session in these runs. Waits for the store."""
        if self._stored_runs is not None:
            self._stored_runs.restore_rules(*runs)

    def _trace_with(self, tracer: Tracer) -> None:
        """Sets the tracer of this session's later turns and calls, whatever its registry or toolkit has."""
        self._scope = replace(self._scope, tracer=tracer)

    async def _run(self, run_id: str, read: Reply, run: Run, scope: Scope) -> list[ToolResult]:
        self._first = self._first or scope.caller
        refuse_other(scope.conversation, self._first, scope.caller)
        with self._variables.turn(scope.caller) as shared:
            scope = async_scope(scope, run_id=run_id, run=run, end=run.end, variables=shared)
            outcomes = await invoke_turn(run_calls(run_id, read), scope, run, is_sequence=read.is_sequence)
        scope.policy.forget(run_id)
        return [require_result(outcome) for outcome in outcomes]

    def _turn(
        self, run_id: str, read: Reply, results: Sequence[ToolResult] | SuspendedRun, run: Run, scope: Scope
    ) -> Turn:
        # Data that a turn has read stays in the model's context for all later turns.
        self._taints |= run.taints
        self._urls = tuple(with_urls(self._urls, run.urls))
        end = end_of(run)
        if isinstance(results, SuspendedRun):
            final, has_final = None if end is None else end.final, end is not None
            suspended = Suspended.of(results)
            return Turn(reply=read, suspended=suspended, final=final, has_final=has_final, run_id=run_id)
        if not read.calls:
            return self._dialogue.without_calls(read, nameable_tools(scope, self.protocol))
        answers = [result_for_provider(result, call) for result, call in zip(results, read.calls, strict=True)]
        turn = self._dialogue.with_results(run_id, read, answers, nameable_tools(scope, self.protocol), end)
        return turn if run.stopped is None else replace(turn, stopped=run.stopped)

    def _open_runs(self, store: RunStore, *, is_new: bool) -> Runs:
        """Records turns and calls in the store, and restores the rules that people kept and the active groups."""
        self._scope = replace(scope_with_log(self._scope, store), clock=store.clock)
        passes = Runs(store, lambda: self._scope, self.protocol.name, self._new_run, self._variables)
        passes.restore_rules()
        if is_new:
            _UNNAMED.add(self)
        else:
            passes.groups.read(self._scope, self._scope.conversation)
        return passes


def _after_fork_in_child() -> None:
    """Begins a conversation for each session that has one of its own: one process at a time works on a conversation."""
    for session in list(_UNNAMED):
        session._scope = replace(session._scope, conversation=new_conversation())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


call_at_fork(after_in_child=_after_fork_in_child)
