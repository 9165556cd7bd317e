"""The parts of a session that its options set: its protocol, toolwire's own tools, and the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from toolwire.definition.tool import Permission
from toolwire.facade.built_in.finding import offer_search
from toolwire.facade.policy_sources import PolicySource, policy_of, refuse_unknown_names, refuse_wrong_rules
from toolwire.invocation.asking.nobody import NobodyAsked
from toolwire.invocation.scope import Scope
from toolwire.permission.approval import Approver, refuse_wrong_approver
from toolwire.protocols import get
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.native.protocol import NativeProtocol
from toolwire.vocabulary.errors import ConfigurationError


def chosen_protocol(protocol: str | CallingProtocol, *, read_text_calls: bool) -> CallingProtocol:
    """Returns the protocol by its name, or the given one.

    Raises:
        ConfigurationError: No protocol has this name, or a text protocol is to read the calls in a text.
    """
    found = get(protocol) if isinstance(protocol, str) else protocol
    if not read_text_calls:
        return found
    if isinstance(found, NativeProtocol):
        return found.reading_text_calls()
    raise ConfigurationError(
        f"read_text_calls=True: the protocol {found.name!r} reads calls in texts anyway: leave it out"
    )


def bind_built_in(scope: Callable[[], Scope], always: Iterable[str] | None) -> None:
    """Binds toolwire's own tools to the session's catalogue, and adds the search that `always` asks for."""
    catalogue = scope().catalogue
    for entry in list(catalogue):
        bound = entry.bound_to(scope, is_conversation=True)
        if bound is not entry:
            catalogue.add(bound, replace=True)
    if always is not None:
        offer_search(scope, always)


def ruled(
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
