"""`ToolRegistry.configure`: the settings of a registry that is in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from toolwire.catalogue.entry import Entry, Middleware
from toolwire.catalogue.selection import Visible
from toolwire.definition.tool import Tool
from toolwire.facade.built_ins import BuiltInTools
from toolwire.facade.policy_sources import PolicySource, policy_of, refuse_wrong_rules
from toolwire.invocation.scope import Scope
from toolwire.permission.approval import Approver, refuse_wrong_approver
from toolwire.permission.policy import Policy
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.vocabulary.kept_text import Spill


class Settings(BuiltInTools):
    """A registry whose settings can change."""

    def configure(
        self,
        *,
        policy: PolicySource | None = None,
        rules: PolicySource | None = None,
        approver: Approver | None = None,
        visible: Visible | None = None,
        middleware: Iterable[Middleware] = (),
        tool_search: bool | Iterable[str] | None = None,
        result_pages: bool | Spill | None = None,
        user_questions: bool | None = None,
        background_calls: bool | None = None,
    ) -> None:
        """Changes settings, also for the toolkits of this registry. Other settings stay. An error changes nothing.

        `policy` and the switches replace the earlier setting. `rules`, `visible` and `middleware` add to it. Only a
        registry without an approver takes one.

        Args:
            policy: Replaces all rules in force: a `Policy`, the path of a policy file, or a list of rules. It counts
                from the next call on, also in sessions that exist. Rules that people chose to keep stay. A `Policy`
                that other registries share is replaced for them too.
            rules: Adds rules to those in force, in the same forms as `policy`.
            approver: Decides calls that the rules confirm. Sessions that exist already keep theirs.
            visible: Hides more tools: `visible(tool_name, caller)` returns True if the caller may see the tool.
            middleware: Adds layers around every call, inside of the present ones.
            tool_search: True adds the tool `search_tools`, so that prompts need not list all tools. Sessions then list
                it and the tools found so far; a list of names (`*` stands for any text) adds those to be listed always.
                All tools can still be called. False removes it, and sessions list all tools.
            result_pages: True adds the tool `read_result`, with which models read on in results that are too long for
                them: a model gets the first page, and an id. A session with a store keeps the whole text there. Other
                texts are in memory, with 16 MiB here and as much in each toolkit and session; the least recently read
                are dropped first. A `Spill` of your own keeps all texts. False removes it, and long results are cut.
            user_questions: True adds the tool `ask_user(question, options=None, schema=None)`. A question is decided as
                an approval is: by the session's approver, or later in its store. False removes it.
            background_calls: True adds the tools `start_call`, `poll_call` and `cancel_call`, with which models start
                long calls in the background. False removes them; started calls run on.

        Raises:
            ConfigurationError: A policy file cannot be read, a rule is not valid or can never apply to the tools here,
                or an approver, a predicate or a layer cannot be used; or the registry has an approver already.
            RegistrationError: A tool of yours has the name of one that a switch adds.
        """
        # Read and checked before the change, which holds a lock: rules and tools may run code of the host.
        new = None if policy is None else policy_of(policy)
        more = None if rules is None else policy_of(rules)
        if new is not None and more is not None:
            new, more = new.merge_with(more), None
        edit = partial(_with_settings, rules=more, approver=approver, visible=visible, layers=tuple(middleware))
        edit(self._call_scope)
        tools = self._tools_of(tool_search, result_pages, user_questions, background_calls)
        catalogue, given = self._call_scope.catalogue, more if new is None else new
        if given is not None:
            refuse_wrong_rules(given, catalogue, also=chain(*tools.values()), is_whole=catalogue.is_whole)
        self._switch(tools)
        self._parts.change(edit)
        if new is not None:
            self.policy.replace(new)

    def _tools_of(
        self,
        tool_search: bool | Iterable[str] | None,
        result_pages: bool | Spill | None,
        user_questions: bool | None,
        background_calls: bool | None,
    ) -> dict[str, list[Entry]]:
        """Returns the tools of each given switch, by its name; none if it is switched off."""
        from toolwire.builtin.ask_user import ask_user_tool
        from toolwire.builtin.background_calls import background_tools
        from toolwire.facade.built_in.pages import pages_entry
        from toolwire.facade.finding import search_entry

        parts = self._parts
        tools: dict[str, list[Entry]] = {}
        if isinstance(tool_search, str):
            raise ConfigurationError(f"tool_search={tool_search!r} is one string: write tool_search=[{tool_search!r}]")
        if tool_search is not None:
            always = () if isinstance(tool_search, bool) else tool_search
            tools["tool_search"] = (
                [search_entry(lambda: parts.scope, always=always)] if tool_search is not False else []
            )
        if result_pages is not None:
            spill = None if isinstance(result_pages, bool) else result_pages
            tools["result_pages"] = [pages_entry(spill)] if result_pages is not False else []
        if user_questions is not None:
            tools["user_questions"] = [_entry(ask_user_tool())] if user_questions else []
        if background_calls is not None:
            calls = background_tools(self.background) if background_calls else []
            tools["background_calls"] = [_entry(tool) for tool in calls]
        return tools

    def _switch(self, tools: Mapping[str, list[Entry]]) -> None:
        """Adds and removes the tools of all switches, or changes nothing after an error. Added tools are enabled."""
        parts = self._parts
        catalogue, switched = parts.scope.catalogue, parts.switched
        ours: set[str] = set()
        for switch in tools:
            # A tool of the host may have the same name.
            for entry in switched.get(switch, ()):
                there = catalogue.find(entry.name)
                if there is not None and there.handle is entry.handle:
                    ours.add(entry.name)
        added = [entry for entries in tools.values() for entry in entries]
        catalogue.add_all([entry for entry in added if entry.name not in ours])
        catalogue.add_all([entry for entry in added if entry.name in ours], replace=True)
        switched.update(tools)
        for entry in added:
            catalogue.enable(entry.name)
        for name in ours - {entry.name for entry in added}:
            catalogue.remove(name)


def _entry(tool: Tool) -> Entry:
    return Entry(name=tool.name, tool=tool, handle=tool)


def _with_settings(
    scope: Scope,
    *,
    rules: Policy | None,
    approver: Approver | None,
    visible: Visible | None,
    layers: tuple[Middleware, ...],
) -> Scope:
    refuse_wrong_approver(approver)
    if approver is not None:
        if scope.approver is not None:
            raise ConfigurationError("configure(approver=...): this registry has an approver already, and keeps it")
        scope = replace(scope, approver=approver)
    if rules is not None:
        scope = replace(scope, policy=scope.policy.merge_with(rules))
    return scope.narrow(visible=visible).with_middleware(layers)
