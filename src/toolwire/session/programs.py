"""Decides whether a session's model may run programs, and adds `code_execution` for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolwire.facade.built_in.kept_variables import KeepVariables, KeptVariables
from toolwire.facade.built_in.program_entry import (
    program_limits,
    program_modules,
    programs_entry,
    require_runner,
)
from toolwire.facade.driving import call_blocking
from toolwire.invocation.scope import Scope
from toolwire.protocols.base import CallingProtocol, Language
from toolwire.runtime.identity import new_id
from toolwire.sandbox.limits import Limits, require_limits
from toolwire.sandbox.report import MinIsolation
from toolwire.sandbox.runner import RunnerChoice
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult


def refuse_wrong_programs(programs: bool | None, protocol: CallingProtocol, **bounds: Any) -> None:
    """Refuses a choice that contradicts the protocol or the bounds of programs.

    Raises:
        ConfigurationError: Programs are off, and the protocol's calls are programs, or a bound of programs is given.
    """
    if programs not in (True, False, None):
        raise ConfigurationError(f"programs={programs!r:.80}: write True, False or None")
    if programs is not False:
        return
    if protocol.writes_programs:
        raise ConfigurationError(
            f"programs=False: each call of the protocol {protocol.name!r} is a program: take another protocol, "
            "such as 'json'"
        )
    given = [name for name, value in bounds.items() if value is not None]
    if given:
        raise ConfigurationError(f"programs=False: {given[0]} is for programs: leave it out, or write programs=True")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of each program of a session. None: those of the registry's programs."""

    limits: Limits | None
    min_isolation: MinIsolation | None
    modules: Iterable[str] | None
    variables: KeepVariables | None = None
    """"keep": a program has the variables of earlier ones. Those of one reply then run one after the other."""
    runner: RunnerChoice | None = None
    """Runs the programs; None: the registry's runner, or that of this machine."""


def with_programs(
    scope: Callable[[], Scope],
    protocol: CallingProtocol,
    programs: bool | None,
    bounds: Bounds,
    language: Language | None,
) -> tuple[Scope, KeptVariables]:
    """Returns the scope of a session whose model may run programs, or may not, and the variables that programs share.

    The calls of the scope have the limits' clean-up.

    Raises:
        ConfigurationError: The choice contradicts the protocol or the bounds.
    """
    limits = None if bounds.limits is None else require_limits(bounds.limits)
    least, modules = bounds.min_isolation, bounds.modules
    given = {"min_isolation": least, "modules": modules, "variables": bounds.variables, "runner": bounds.runner}
    refuse_wrong_programs(programs, protocol, **given)
    runner = None if bounds.runner is None else require_runner(bounds.runner)
    if programs is False:
        # The model sees the tools as before programs were enabled.
        made = scope().narrow(visible=lambda name, _: name != CODE_EXECUTION, caller=None)
    else:
        _offer(scope, bounds, is_asked=protocol.writes_programs if programs is None else programs)
        made = scope()
    variables = KeptVariables.for_option(bounds.variables, language or "en", made)
    made = made if runner is None else replace(made, runner=runner)
    return made if limits is None else replace(made, cleanup_s=limits.cleanup_s), variables


def _offer(scope: Callable[[], Scope], bounds: Bounds, *, is_asked: bool) -> None:
    """Adds `code_execution` to the catalogue, if programs are asked for or bounds of existing ones are given."""
    catalogue = scope().catalogue
    there = catalogue.find(CODE_EXECUTION)
    if there is None and not is_asked:
        return
    limits, least, modules = bounds.limits, bounds.min_isolation, bounds.modules
    if there is not None and bounds == Bounds(None, None, None):
        return

    def call_back(name: str, arguments: Mapping[str, object]) -> ToolResult:
        return call_blocking(ToolCall(name, arguments, id=new_id("r")), scope())

    entry = programs_entry(
        scope,
        limits or program_limits(there),
        call_back,
        min_isolation=least,
        modules=program_modules(there) if modules is None else modules,
        keeps_variables=bounds.variables is not None,
    )
    catalogue.add(entry, replace=True)
