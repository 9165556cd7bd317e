"""Questions about the rules that tools are under; shared by registries and other holders of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolwire.catalogue.catalogue import Catalogue, suggestion
from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Permission
from toolwire.facade.setup import Setup
from toolwire.invocation.judge import judged_by_name
from toolwire.permission.policy import Policy
from toolwire.vocabulary.errors import ConfigurationError, RegistrationError

if TYPE_CHECKING:
    from toolwire.permission.explain import Explanation


class Governed:
    """Tools, and the rules they are under."""

    def _catalogue_and_setup(self) -> tuple[Catalogue, Setup]:
        """Returns the live catalogue, and how its tools are run."""
        raise NotImplementedError

    @property
    def policy(self) -> Policy:
        """The rules in force."""
        return self._catalogue_and_setup()[1].policy

    def permission_of(self, name: str) -> Permission:
        """Returns the effect on calls of that tool: `auto`, `confirm` or `deny`, by rules, registration and its own
        default.

        Rules that depend on the call are left out; `explain_call` includes them.

        Raises:
            RegistrationError: no tool has that name.
        """
        entry, setup = self._found(name)
        return judged_by_name(entry, setup.policy).effect

    def explain_call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> Explanation:
        """Returns the effect of the rules on a call, and the rules that lead to it. Runs nothing. `state` is as in
        `invoke`.

        Raises:
            RegistrationError: no tool has that name.
            ConfigurationError: the arguments are wrong, or `state` is not a mapping.
        """
        from toolwire.invocation.judge import judged, subject_of
        from toolwire.invocation.scope import Prepared
        from toolwire.invocation.validate import validate
        from toolwire.permission.explain import explain
        from toolwire.vocabulary.calls import ToolCall

        entry, setup = self._found(name)
        prepared = validate(ToolCall(entry.name, arguments), entry, setup.with_state(state).states)
        if not isinstance(prepared, Prepared):
            raise ConfigurationError(prepared.error or "the arguments are wrong")
        scope = setup.scope(Catalogue())
        subject, verdict = subject_of(prepared, scope), judged(prepared, scope)
        return explain(setup.policy, entry.name, entry.own_permission, subject, verdict)

    def _found(self, name: str) -> tuple[Entry, Setup]:
        catalogue, setup = self._catalogue_and_setup()
        entry = catalogue.find(name)
        if entry is None:
            raise RegistrationError(f"no tool is named {name!r}{suggestion(catalogue.nearest(name))}")
        return entry, setup
