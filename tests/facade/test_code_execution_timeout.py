"""`enable_code_execution(timeout=...)`: the default, None for the default, and values that cannot be one."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from toolwire import ConfigurationError, Session, ToolCall, ToolRegistry, protocols
from toolwire.cli.options import TIMEOUT_S
from toolwire.facade.built_in.program_entry import programs_run_by
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import ProgramResult
from toolwire.testing import ScriptedRunner
from toolwire.tools import execute_python_code
from toolwire.vocabulary.calls import PROGRAM_TIME_S


class Noting(ScriptedRunner):
    """A runner that keeps the limits of each program."""

    def __init__(self) -> None:
        super().__init__({})
        self.limits: list[Limits] = []

    def run(self, program: Program, call: Any, /, *, cancel: Any = None) -> ProgramResult:
        self.limits.append(program.limits)
        return super().run(program, call, cancel=cancel)


def limits_of(registry: ToolRegistry) -> Limits:
    runner = Noting()
    with programs_run_by(runner):
        registry.invoke("code_execution", {"code": "1"})
    (limits,) = runner.limits
    return limits


def test_none_is_the_default_timeout() -> None:
    said, unsaid, other = ToolRegistry(), ToolRegistry(), ToolRegistry()
    said.enable_code_execution(timeout=None)
    unsaid.enable_code_execution()
    other.enable_code_execution(timeout=7)
    assert limits_of(said) == limits_of(unsaid) == Limits.within(30)
    assert limits_of(other) == Limits.within(7)


def test_every_way_to_run_a_program_has_the_same_default_time() -> None:
    registry = ToolRegistry()
    registry.enable_code_execution()
    runner = Noting()
    with programs_run_by(runner):
        registry.run_program("1")
        asyncio.run(execute_python_code("1"))
        reply = protocols.get("attp").render((ToolCall("code_execution", {"code": "1"}),))
        asyncio.run(Session(registry, protocol="attp").turn(reply))
        asyncio.run(Session([], protocol="attp").turn(reply))
    found = [limits_of(registry), *runner.limits]
    assert [limits.deadline_s for limits in found] == [PROGRAM_TIME_S] * 5
    assert PROGRAM_TIME_S == TIMEOUT_S


def test_limits_count_when_no_timeout_is_given() -> None:
    registry = ToolRegistry()
    registry.enable_code_execution(timeout=None, limits=Limits(deadline_s=3))
    assert limits_of(registry) == Limits(deadline_s=3)


@pytest.mark.parametrize("timeout", [0, -1, "30", True, math.nan, math.inf])
def test_a_timeout_that_is_not_a_number_of_seconds_is_refused_at_once(timeout: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ToolRegistry().enable_code_execution(timeout=timeout)
    assert str(refused.value) == f"timeout={timeout!r}: give seconds above 0, or None for the default of 30"
