"""`ToolRegistry.configure`: the settings of a registry that is in use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from toolwire.catalogue.entry import Middleware
from toolwire.catalogue.selection import Visible
from toolwire.facade.built_ins import BuiltInTools
from toolwire.facade.policy_sources import PolicySource, policy_of, refuse_wrong_rules
from toolwire.invocation.scope import Scope
from toolwire.permission.approval import Approver, refuse_wrong_approver
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from toolwire.facade.built_in.switches import Switch
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
        """Changes settings, also for the toolkits of this registry. What is not given stays. An error changes nothing.

        `policy` and the switches replace what was set before. `rules`, `visible` and `middleware` are added to it. Only
        a registry without an approver takes one.

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
        from toolwire.facade.built_in.switches import switch_tools

        refuse_wrong_approver(approver)
        # Read and checked before the change, which holds a lock: rules and tools may run code of the host.
        new = None if policy is None else policy_of(policy)
        more = None if rules is None else policy_of(rules)
        if new is not None and more is not None:
            new, more = new.joined(more), None
        layers = tuple(middleware)

        def edit(scope: Scope) -> Scope:
            if approver is not None:
                scope = _with_approver(scope, approver)
            if more is not None:
                scope = replace(scope, policy=scope.policy.joined(more))
            return scope.narrowed(visible=visible).with_middleware(layers)

        edit(self._call_scope)
        switches = self._switches(tool_search, result_pages, user_questions, background_calls)
        catalogue, given = self._call_scope.catalogue, more if new is None else new
        if given is not None:
            added = [entry for switch in switches for entry in switch.entries]
            refuse_wrong_rules(given, catalogue, also=added, is_whole=catalogue.is_whole)
        switch_tools(catalogue, switches)
        self._parts.change(edit)
        if new is not None:
            self.policy.replace(new)

    def _switches(
        self,
        tool_search: bool | Iterable[str] | None,
        result_pages: bool | Spill | None,
        user_questions: bool | None,
        background_calls: bool | None,
    ) -> list[Switch]:
        from toolwire.facade.built_in import switches

        parts = self._parts
        found: list[Switch] = []
        if tool_search is not None:
            found.append(switches.search_switch(lambda: parts.scope, tool_search))
        if result_pages is not None:
            found.append(switches.pages_switch(result_pages))
        if user_questions is not None:
            found.append(switches.questions_switch(user_questions))
        if background_calls is not None:
            found.append(switches.background_switch(self.background, background_calls))
        return found


def _with_approver(scope: Scope, approver: Approver) -> Scope:
    if scope.approver is not None:
        raise ConfigurationError("configure(approver=...): this registry has an approver already, and keeps it")
    return replace(scope, approver=approver)
