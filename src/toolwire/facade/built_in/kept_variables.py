"""The variables that the programs of one conversation share: `Session(variables="keep")`."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from toolwire.invocation.scope import Scope
from toolwire.protocols.base import Language
from toolwire.vocabulary.calls import CODE_EXECUTION, Caller
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.variables import (
    Variables,
    VariablesChange,
    drop_oldest,
    join_changes,
    with_change,
)

KeepVariables = Literal["keep"]
CALLERS_LIMIT = 16
"""Callers of which one session object keeps variables in memory: the agents of a team are fewer. So a session holds 16
MiB of them at most.
"""


class TurnVariables:
    """The variables of one turn. It implements `vocabulary.variables.SharedVariables`. Usable from any thread."""

    def __init__(self, given: Variables, language: Language) -> None:
        """`given` are the variables at the start of the turn."""
        self.language: Language = language
        self._given = given
        self._changes: dict[str, VariablesChange] = {}

    def now(self) -> dict[str, str]:
        """Returns the variables of a program that starts now."""
        return with_change(self._given, self.joined_change)

    def change(self, call_id: str, change: VariablesChange, /) -> None:
        """Takes the changes of this call's program."""
        self._changes[call_id] = change

    @property
    def joined_change(self) -> VariablesChange:
        """One change in place of all those of the turn's programs."""
        return join_changes(list(self._changes.values()))


class KeptVariables:
    """The variables in the memory of one session object, for callers whose variables no store keeps."""

    def __init__(self, language: Language, *, is_on: bool) -> None:
        self.language: Language = language
        self.is_on = is_on
        self._kept: dict[Caller, dict[str, str]] = {}

    @classmethod
    def for_option(cls, variables: KeepVariables | None, language: Language, scope: Scope) -> KeptVariables:
        """Returns the variables of a session with this option.

        Raises:
            ConfigurationError: The option is unknown, or the session runs no programs.
        """
        if variables not in ("keep", None):
            raise ConfigurationError(
                f"variables={variables!r:.80}: write 'keep', or leave it out: each program then starts empty"
            )
        if variables is not None and scope.catalogue.find(CODE_EXECUTION) is None:
            raise ConfigurationError(f"variables={variables!r}: this session runs no programs: write programs=True")
        return cls(language, is_on=variables is not None)

    def of(self, caller: Caller) -> Variables | None:
        """Returns the variables of this caller: none of another principal, tenant or agent. None: none are kept."""
        return self._kept.get(caller, {}) if self.is_on else None

    @contextmanager
    def turn(self, caller: Caller) -> Generator[TurnVariables | None]:
        """Yields the variables of a turn without a store; None: none are kept. A turn that raises changes nothing."""
        given = self.of(caller)
        shared = None if given is None else TurnVariables(given, self.language)
        yield shared
        if shared is not None:
            self.keep(caller, shared.joined_change)

    def keep(self, caller: Caller, change: VariablesChange) -> None:
        """Keeps the changes of a turn. Beyond the limits, the oldest variables and callers are dropped."""
        if not self.is_on:
            return
        kept = with_change(self._kept.pop(caller, {}), change)
        drop_oldest(kept)
        self._kept[caller] = kept
        if len(self._kept) > CALLERS_LIMIT:
            del self._kept[next(iter(self._kept))]

    def take_from(self, before: KeptVariables) -> None:
        """Shares the variables of the session before this one in an agent's conversation."""
        self._kept = before._kept
