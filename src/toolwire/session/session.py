"""`Session`: reads a model's replies, runs their calls, and returns the messages for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from toolwire.catalogue.catalogue import Catalogue, Overlay
from toolwire.catalogue.selection import Visible
from toolwire.definition.tool import Permission, Tool
from toolwire.facade.built_in.finding import allowed, offer_search, offered
from toolwire.facade.built_in.program_entry import modules_told, program_modules, programs_entry
from toolwire.facade.driving import awaited, call_blocking, new_scope
from toolwire.facade.observing.observation import Observed, Watchers
from toolwire.facade.observing.traced import Traced
from toolwire.facade.policy_sources import PolicySource, policy_of, refuse_unknown_names, refuse_wrong_rules
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.store_opening import logged, opened
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.facade.tools.intake import entries_of
from toolwire.invocation.batch import invoke_all
from toolwire.invocation.judge import is_denied
from toolwire.invocation.ports import Tracer
from toolwire.invocation.scope import Run, Scope, ended
from toolwire.journal.run import SuspendedRun
from toolwire.permission.approval import Approver, Decision, refuse_wrong_approver
from toolwire.protocols import get
from toolwire.protocols.attp.prompt import StubStyle
from toolwire.protocols.base import CallingProtocol, Language, Thought
from toolwire.protocols.streaming import ReplyStream
from toolwire.runtime.identity import new_id
from toolwire.runtime.runtime import Runtime
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.report import MinIsolation
from toolwire.session.prompt_options import prompt_options
from toolwire.session.resume import Passes, RunStore, decisions_of, given_ids, run_calls
from toolwire.session.suspended import Suspended
from toolwire.session.turn import Turn, answering
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller, Reply, ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult


class Session(Traced, Observed):
    """Tools, a protocol and rules for talking to one model.

    A session follows its tools live: tools that are registered or switched later count from the next turn on. A text
    protocol's model may always run programs. A native protocol's model may run them only if the registry has enabled
    them.

    Attributes:
        protocol: The model's calling format, as an object.
    """

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
        modules: Iterable[str] | None = None,
        always: Iterable[str] | None = None,
        visible: Visible | None = None,
        caller: Caller | None = None,
        state: Mapping[str, Any] | None = None,
        language: Language | None = None,
        thought: Thought | None = None,
        style: StubStyle | None = None,
    ) -> None:
        """Combines the tools with a protocol and rules.

        `tools` is a registry or toolkit, or an iterable of anything that can be registered. The rules, approver and log
        of a registry or toolkit apply. `protocol` is the model's calling format. `permissions` replace the tools' own,
        by name. `policy` (a `Policy`, rules, or the path of a policy file) replaces the registry's. `approver` is the
        callback that asks a person when a rule or tool requires confirmation.

        `store` is a `Store` or its URL. With a store, turns and calls are recorded, and a turn without a decision is
        suspended until someone decides. Without one, calls that need a decision do not run. `limits` bound each
        program, and none runs with weaker isolation than `min_isolation` ("kernel"); if both are None, the registry's
        settings apply. Programs may import only `modules`; None means those of the registry's programs, or all.

        `language` ("en", "zh"), `thought` ("short", "full") and, for `attp`, `style` ("full", "compact") shape the
        prompt of a text protocol. None leaves the choice to the protocol, which takes the first value.

        With `always`, the model sees the tools that it names (`*` matches any text), and finds the others with
        `search_tools`. `always=()` leaves all tools to the search. None: the registry's setting applies.

        `caller` is the caller on whose behalf the model calls, by default the toolkit's agent. `visible(tool_name,
        caller)` further restricts which tools the caller sees. Bound parameters are looked up in `state` first, then in
        the `state` of a toolkit or a `ToolSpec`. `state` belongs to this session alone and is never stored.

        Raises:
            ConfigurationError: The protocol is unknown, `permissions` name an unknown tool, `state` is not a mapping,
                the prompt has no such option, or a rule has no effect on these tools.
        """
        refuse_wrong_approver(approver)
        self.protocol = get(protocol) if isinstance(protocol, str) else protocol
        self._prompt = prompt_options(self.protocol, language=language, thought=thought, style=style)
        self._scope = self._own_scope(tools).narrowed(visible=visible, caller=caller).with_state(state)
        self._take_built_in(always)
        self._take_rules(policy, permissions or {}, approver, is_whole=not isinstance(tools, Toolkit))
        self._offer_programs(limits, min_isolation, modules)
        self._passes = None if store is None else self._kept_in(opened(store))
        self._taints: frozenset[Label] = frozenset()

    @property
    def tools(self) -> list[Tool]:
        """The tools that the model sees: neither disabled nor denied, and with tool search those found so far.

        `code_execution` is included unless the protocol's prompt explains programs itself.
        """
        tools, told = self._scope.tools, dict(offered(self._scope))
        programs = tools.find(CODE_EXECUTION)
        is_told = programs is not None and programs.disabled is None and not is_denied(programs, self._scope.policy)
        if programs is not None and is_told and not self.protocol.writes_programs:
            told[CODE_EXECUTION] = programs.tool
        return [told[entry.name] for entry in tools if entry.name in told]

    @property
    def instructions(self) -> str | list[dict[str, Any]]:
        """The description of the tools: the system prompt, or for a native protocol the request's tools."""
        return self.protocol.describe(self.tools, **self._prompt, **modules_told(self._scope.catalogue, self.protocol))

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

    def stream(self) -> ReplyStream:
        """Returns a parser for one reply that arrives in pieces, over all tools that a turn may call.

        Give each piece to `feed`, and the complete reply to `turn`: `await session.turn(stream.reply())`.
        """
        return self.protocol.stream(self._callable())

    def __repr__(self) -> str:
        kept = "" if self._passes is None else ", with a store"
        return f"<Session {self.protocol.name!r}: {len(self._scope.catalogue)} tools{kept}>"

    def run_turn(self, reply: Any) -> Turn:
        """Runs `turn` for blocking code, also in a notebook, and returns its result.

        The turn runs on an event loop in a thread of toolwire's own. In a coroutine, await `turn` instead: this method
        blocks the event loop.

        Raises:
            ConfigurationError: As `turn`.
        """
        return self._scope.runtime.portal.run(lambda: self.turn(reply))

    async def turn(self, reply: Any) -> Turn:
        """Reads a reply, runs its calls in parallel, and returns the turn with the messages for the model.

        `reply` is text, UTF-8 bytes, or the `Reply` of a stream. A native protocol also accepts the SDK's response or
        message, or a mapping of either. None is a message without content. An unreadable reply or a failing call does
        not raise; the turn reports it. With a store, a turn that needs a decision and gets none is `suspended`.

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
        """Continues a turn, also in another process, after a crash or days later.

        `run` is the run's id, `turn.suspended`, or the text of `turn.suspended.to_json()`. `decisions` are `Decision`
        objects, mappings of their fields, or JSON of these. They may cover a part of the pending requests; the turn
        stays suspended until all are decided.

        Calls that ended are not run again. Nor is an approved call whose outcome a crash hid, unless its tool allows
        it. A finished run returns its recorded turn and runs nothing.

        Raises:
            DecisionRefused: The run or a decision is not valid; `code` gives the reason. Nothing was run, except with
                `divergence`: other calls of the reply may have run before it was found.
            ConfigurationError: The session has no store.
        """
        if self._passes is None:
            raise ConfigurationError(
                "Session.resume: give the session a store, Session(..., store='sqlite:///runs.db')"
            )
        run_id = await asyncio.to_thread(self._passes.named, run)
        if decisions is not None:
            # The store waits for a disk, which would block the event loop.
            await asyncio.to_thread(self._passes.decide, run_id, decisions_of(run_id, decisions))
        await asyncio.to_thread(self._passes.restore_rules, run_id)
        return await self._followed(run_id, {}, self._resumed(self._passes, run_id))

    async def _resumed(self, passes: Passes, run_id: str) -> Turn:
        return self._turn(*await passes.again(run_id))

    async def _followed(self, run_id: str, ids: Mapping[str, str], turn: Coroutine[Any, Any, Turn]) -> Turn:
        """Returns the turn, and traces it if the session has a tracer."""
        tracer, caller = self._scope.tracer, self._scope.caller
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

    def _watchers_and_runtime(self) -> tuple[Watchers, Runtime]:
        return self._watchers, self._scope.runtime

    def _trace_with(self, tracer: Tracer) -> None:
        """Sets the tracer of this session's later turns and calls, whatever its registry or toolkit has."""
        self._scope = replace(self._scope, tracer=tracer)

    async def _run(self, run_id: str, read: Reply, run: Run) -> list[ToolResult]:
        scope = replace(awaited(self._scope), run_id=run_id, run=run)
        outcomes = await invoke_all(run_calls(run_id, read), scope)
        scope.policy.forget(run_id)
        return [ended(outcome) for outcome in outcomes]

    def _turn(self, read: Reply, results: Sequence[ToolResult] | SuspendedRun, run: Run) -> Turn:
        # Data that a turn has read stays in the model's context for all later turns.
        self._taints |= run.taints
        if isinstance(results, SuspendedRun):
            return Turn(reply=read, suspended=Suspended.of(results))
        answers = [answering(result, call) for result, call in zip(results, read.calls, strict=True)]
        return Turn.ended(read, answers, self.protocol.format(answers))

    def _own_scope(self, tools: ToolRegistry | Toolkit | Iterable[object]) -> Scope:
        """Returns the scope of the tools, over a catalogue and with observers of this session's own."""
        self._watchers = Watchers()
        if isinstance(tools, ToolRegistry | Toolkit):
            # A public name could be hidden by a tool of the same name in a user's subclass.
            scope = tools._call_scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            return replace(scope, catalogue=Overlay(scope.catalogue), watchers=(*scope.watchers, self._watchers))
        if not isinstance(cast("object", tools), Iterable) or isinstance(tools, str | Mapping):
            raise ConfigurationError(f"Session(tools={tools!r:.80}): give a list of tools, a ToolRegistry or a Toolkit")
        catalogue = Catalogue()
        for thing in tools:
            for entry in entries_of(thing):
                catalogue.add(entry)
        return replace(new_scope(catalogue), watchers=(self._watchers,))

    def _take_built_in(self, always: Iterable[str] | None) -> None:
        """Binds toolwire's own tools to this session's catalogue, and adds the search that `always` asks for."""
        catalogue = self._scope.catalogue
        for entry in list(catalogue):
            bound = entry.bound_to(lambda: self._scope, is_conversation=True)
            if bound is not entry:
                catalogue.add(bound, replace=True)
        if always is not None:
            offer_search(lambda: self._scope, always)

    def _take_rules(
        self,
        policy: PolicySource | None,
        permissions: Mapping[str, Permission],
        approver: Approver | None,
        *,
        is_whole: bool,
    ) -> None:
        scope = self._scope
        rules = scope.policy if policy is None else policy_of(policy)
        refuse_wrong_rules(rules, scope.catalogue, is_whole=is_whole and scope.catalogue.is_whole)
        refuse_unknown_names(permissions, scope.catalogue)
        rules = rules.for_session(permissions)
        self._scope = replace(scope, policy=rules, approver=approver or scope.approver)

    def _callable(self) -> list[Tool]:
        """Returns the tools that may be called. With tool search they are more than the model sees.

        Disabled tools are included, so that a call of one is refused with its reason.
        """
        callable_ = {entry.name: entry.described for entry in allowed(self._scope)}
        return [*callable_.values(), *(tool for tool in self.tools if tool.name not in callable_)]

    def _kept_in(self, store: RunStore) -> Passes:
        """Records turns and calls in the store, and restores the rules that people kept there."""
        self._scope = logged(self._scope, store)
        passes = Passes(store, lambda: self._scope, self.protocol.name)
        passes.restore_rules()
        return passes

    def _offer_programs(self, limits: Limits | None, least: MinIsolation | None, modules: Iterable[str] | None) -> None:
        """Adds `code_execution` to the catalogue, unless the existing one applies or a native protocol has none."""
        catalogue = self._scope.catalogue
        there = catalogue.find(CODE_EXECUTION)
        if there is None and self.protocol.is_native:
            return
        if there is not None and limits is None and least is None and modules is None:
            return
        programs = programs_entry(
            lambda: self._scope,
            limits or Limits(),
            self._call_back,
            min_isolation=least or "kernel",
            modules=program_modules(there) if modules is None else modules,
        )
        catalogue.add(programs, replace=True)

    def _call_back(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        call = ToolCall(name, arguments, id=new_id("r"))
        return call_blocking(call, self._scope)
