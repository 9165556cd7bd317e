"""Whether a session's model may run programs: the protocol decides, a registry that enables them, or `programs`."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ConfigurationError, Limits, Session, ToolCall, ToolRegistry, protocols

OTHERS = [name for name in protocols.names() if name != "attp"]
PROGRAM = "```python\n__result__ = double(n=2) + 1\n```"


def double(n: int) -> int:
    """Doubles a number."""
    return 2 * n


def enabled() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(double)
    registry.enable_code_execution()
    return registry


def names_of(session: Session) -> list[str]:
    return [tool.name for tool in session.tools]


@pytest.mark.parametrize("protocol", OTHERS)
@pytest.mark.parametrize(
    ("tools", "programs", "are_offered"),
    [
        ([double], None, False),
        ([double], True, True),
        ([double], False, False),
        (enabled(), None, True),
        (enabled(), True, True),
        (enabled(), False, False),
    ],
)
def test_programs_are_offered_where_someone_asked_for_them(
    protocol: str, tools: Any, programs: bool | None, are_offered: bool
) -> None:
    session = Session(tools, protocol=protocol, programs=programs)
    assert names_of(session) == (["double", "code_execution"] if are_offered else ["double"])
    assert ("code_execution" in str(session.instructions) or "one Python program" in str(session.instructions)) is (
        are_offered
    )


@pytest.mark.parametrize("programs", [None, True])
def test_a_model_that_writes_attp_may_always_run_programs(programs: bool | None) -> None:
    reply = protocols.get("attp").render([ToolCall("double", {"n": 2})])
    assert Session([double], programs=programs).run_turn(reply).text == "4"


def test_a_program_runs_under_json_only_if_programs_are_offered() -> None:
    assert Session([double], protocol="json", programs=True).run_turn(PROGRAM).results[0].data == "5"
    assert Session(enabled(), protocol="json").run_turn(PROGRAM).results[0].data == "5"
    for tools, programs in (([double], None), ([double], False), (enabled(), False)):
        turn = Session(tools, protocol="json", programs=programs).run_turn(PROGRAM)
        assert [result.success for result in turn.results] == [False]
        assert "Programs cannot be run here." in turn.text


def test_a_session_without_programs_leaves_those_of_its_registry_on() -> None:
    registry = enabled()
    Session(registry, protocol="json", programs=False)
    assert names_of(Session(registry, protocol="json")) == ["double", "code_execution"]


def test_bounds_of_programs_turn_none_on_and_apply_to_those_that_are() -> None:
    bounds: dict[str, Any] = {"limits": Limits(calls=1), "modules": ["math"]}
    assert names_of(Session([double], protocol="json", **bounds)) == ["double"]
    session = Session([double], protocol="json", programs=True, **bounds)
    turn = session.run_turn(PROGRAM.replace("+ 1", "+ double(n=3)"))
    assert [result.success for result in turn.results] == [False]


def test_a_session_with_other_bounds_keeps_the_limits_of_its_registry() -> None:
    registry = enabled()
    registry.enable_code_execution(limits=Limits(calls=1))
    turn = Session(registry, protocol="json", modules=["math"]).run_turn(PROGRAM.replace("+ 1", "+ double(n=3)"))
    assert turn.results[0].text.startswith("Stopped: the program made more than 1 tool call.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"programs": False},
            "programs=False: each call of the protocol 'attp' is a program: take another protocol, such as 'json'",
        ),
        (
            {"programs": False, "protocol": "json", "modules": ["math"]},
            "programs=False: modules is for programs: leave it out, or write programs=True",
        ),
        ({"programs": "no", "protocol": "json"}, "programs='no': write True, False or None"),
    ],
)
def test_a_choice_that_contradicts_itself_is_an_error(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Session([double], **options)
    assert str(refused.value) == message
