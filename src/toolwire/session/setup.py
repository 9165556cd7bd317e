"""The parts of a session that its options set: its protocol, prompt and scope, toolwire's own tools, and the rules."""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from toolwire.catalogue.catalogue import Catalogue, Overlay
from toolwire.definition.tool import Permission
from toolwire.facade.driving import new_scope
from toolwire.facade.finding import offer_search
from toolwire.facade.observing.observation import Watchers
from toolwire.facade.policy_sources import PolicySource, policy_of, refuse_unknown_names, refuse_wrong_rules
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.facade.tools.intake import entries_of
from toolwire.invocation.nobody import NobodyAsked
from toolwire.invocation.scope import Scope
from toolwire.journal.conversation_info import check_name
from toolwire.permission.approval import Approver, refuse_wrong_approver
from toolwire.protocols import get
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.vocabulary.errors import ConfigurationError

_ID_BYTES = 16
"""Random bytes of a conversation's own name. It cannot be guessed, and no two stores share one."""


def choose_protocol(protocol: str | CallingProtocol, *, read_text_calls: bool) -> CallingProtocol:
    """Returns the protocol by its name, or the given one.

    Raises:
        ConfigurationError: No protocol has this name, it is another value, or a text protocol is to read the calls in a
            text.
    """
    found = cast("CallingProtocol", protocol) if hasattr(protocol, "parse") else get(cast("str", protocol))
    if not read_text_calls:
        return found
    if isinstance(found, NativeProtocol):
        return found.with_text_calls()
    raise ConfigurationError(
        f"read_text_calls=True: the protocol {found.name!r} reads calls in texts anyway: leave it out"
    )


def prompt_options(protocol: CallingProtocol, has_ending_line: bool, **given: Any) -> dict[str, Any]:
    """Returns the options for `protocol.describe`; an option that is None is left to the protocol.

    With `has_ending_line` a native protocol may have a language, for that line alone.

    Raises:
        ConfigurationError: The protocol writes no prompt or lacks the option, or the value is unknown.
    """
    options = {option: value for option, value in given.items() if value is not None}
    if has_ending_line and protocol.is_native:
        options.pop("language", None)
    if not options:
        return {}
    for option, value in options.items():
        if protocol.is_native:
            raise ConfigurationError(
                f"{option}={value!r:.80}: the protocol {protocol.name!r} is native and writes no prompt: leave it out"
            )
        if not _takes(protocol, option):
            raise ConfigurationError(
                f"{option}={value!r:.80}: the prompt of the protocol {protocol.name!r} has no {option}: leave it out"
            )
    # The protocol alone knows its words, and refuses others.
    protocol.describe((), **options)
    return options


def _takes(protocol: CallingProtocol, option: str) -> bool:
    parameters = inspect.signature(protocol.describe).parameters
    return option in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def new_conversation() -> str:
    """Returns the name of a conversation of a session's own."""
    return f"c_{secrets.token_hex(_ID_BYTES)}"


def own_scope(tools: ToolRegistry | Toolkit | Iterable[object], conversation: str | None) -> tuple[Scope, Watchers]:
    """Returns the scope of the tools in a conversation, and the observers of the session's own; None: a new one.

    Raises:
        ConfigurationError: `tools` are not a list of tools, a registry or a toolkit, or the name is not valid.
    """
    watchers = Watchers()
    name = new_conversation() if conversation is None else check_name(conversation)
    if isinstance(tools, ToolRegistry | Toolkit):
        # A public name could be hidden by a tool of the same name in a user's subclass.
        scope = tools._call_scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        own = Overlay(scope.catalogue)
        return replace(scope, catalogue=own, watchers=(*scope.watchers, watchers), conversation=name), watchers
    if not isinstance(cast("object", tools), Iterable) or isinstance(tools, str | Mapping):
        raise ConfigurationError(f"Session(tools={tools!r:.80}): give a list of tools, a ToolRegistry or a Toolkit")
    catalogue = Catalogue()
    for thing in tools:
        for entry in entries_of(thing):
            catalogue.add(entry)
    return replace(new_scope(catalogue), watchers=(watchers,), conversation=name), watchers


def bind_built_in(scope: Callable[[], Scope], always: Iterable[str] | None) -> None:
    """Binds toolwire's own tools to the session's catalogue, and adds the search that `always` asks for."""
    catalogue = scope().catalogue
    for entry in list(catalogue):
        bound = entry.bound_to(scope, is_conversation=True)
        if bound is not entry:
            catalogue.add(bound, replace=True)
    if always is not None:
        offer_search(scope, always)


def scope_with_rules(
    scope: Scope,
    policy: PolicySource | None,
    permissions: Mapping[str, Permission],
    approver: Approver | None,
    *,
    is_whole: bool,
) -> Scope:
    """Returns the scope with the session's own policy and approver.

    Raises:
        ConfigurationError: The approver is none, a name is unknown, or a rule is idle.
    """
    refuse_wrong_approver(approver)
    rules = scope.policy if policy is None else policy_of(policy)
    are_all = is_whole and scope.catalogue.is_whole
    refuse_wrong_rules(rules, scope.catalogue, is_whole=are_all, came_later=policy is None)
    refuse_unknown_names(permissions, scope.catalogue)
    return replace(
        scope,
        policy=rules.for_session(permissions),
        approver=approver or scope.approver,
        nobody_asked=NobodyAsked(),
    )
