"""Recorded results are replayed without running a tool, and an unrecorded call is refused by name."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from toolwire import ConfigurationError, Session, ToolCall, Toolkit, ToolRegistry
from toolwire.testing import PortFails, Recorder, Replayer


class Weather:
    """A service that can be out of reach."""

    def __init__(self, *, is_there: bool = True) -> None:
        self.is_there = is_there
        self.calls = 0

    def temperature(self, city: str, token: str = "") -> dict[str, Any]:
        """Says how warm it is."""
        self.calls += 1
        if not self.is_there:
            raise AssertionError("no tool may run")
        if city == "Atlantis":
            raise LookupError("no such city")
        return {"city": city, "degrees": 10 + self.calls, "session_id": "hunter2hunter2"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weather.json"


def recorded(path: Path, *calls: dict[str, Any]) -> list[Any]:
    registry = ToolRegistry()
    registry.register(Weather().temperature)
    with Recorder(path) as recorder:
        registry.configure(middleware=[recorder])
        return [registry.invoke("temperature", arguments) for arguments in calls]


def replaying(path: Path) -> tuple[ToolRegistry, Replayer, Weather]:
    weather, replayer = Weather(is_there=False), Replayer(path)
    registry = ToolRegistry(middleware=[replayer])
    registry.register(weather.temperature)
    return registry, replayer, weather


def test_recorded_results_are_given_without_running_the_tool(path: Path) -> None:
    before = recorded(path, {"city": "Rome"}, {"city": "Atlantis"}, {"city": "Rome"})
    registry, replayer, weather = replaying(path)
    calls = [{"city": "Rome"}, {"city": "Rome"}, {"city": "Atlantis"}]
    after = [registry.invoke("temperature", arguments) for arguments in calls]
    assert [result.data and result.data["degrees"] for result in after] == [11, 13, None]
    assert (after[2].failure, after[2].text) == (before[1].failure, before[1].text)
    assert weather.calls == 0
    replayer.check()


def test_no_secret_is_in_the_file(path: Path) -> None:
    recorded(path, {"city": "Rome", "token": "hunter2hunter2"})
    text = path.read_text("utf-8")
    assert ["hunter2" in text, text.count("<redacted>"), json.loads(text)["format"]] == [False, 2, "toolwire-cassette"]
    # Another secret is still the same call.
    registry, _, _ = replaying(path)
    assert registry.invoke("temperature", {"city": "Rome", "token": "another-secret"}).success


def test_a_call_that_was_not_recorded_is_refused_by_the_nearest_that_was(path: Path) -> None:
    recorded(path, {"city": "Rome"}, {"city": "Oslo"})
    registry, replayer, weather = replaying(path)
    result = registry.invoke("temperature", {"city": "Romes"})
    message = (
        'temperature({"city":"Romes","token":"<redacted>"}) was not recorded in weather.json; '
        'the nearest that was is temperature({"city":"Rome","token":"<redacted>"})'
    )
    assert result.failure is not None
    assert (result.failure.kind, result.error, weather.calls) == ("unavailable", message, 0)
    with pytest.raises(PortFails) as failed:
        replayer.check()
    assert str(failed.value).splitlines()[0] == message
    assert str(failed.value).splitlines()[1:] == [
        f'temperature({{"city":"{city}","token":"<redacted>"}}) was recorded (1) more often than it was called (0)'
        for city in ("Rome", "Oslo")
    ]


def test_a_call_more_than_was_recorded_is_refused(path: Path) -> None:
    recorded(path, {"city": "Rome"})
    registry, _, _ = replaying(path)
    registry.invoke("temperature", {"city": "Rome"})
    call = 'temperature({"city":"Rome","token":"<redacted>"})'
    said = f"{call} is called more often than it was recorded in weather.json (1)"
    assert registry.invoke("temperature", {"city": "Rome"}).error == said


def test_rules_hold_for_what_is_replayed(path: Path) -> None:
    recorded(path, {"city": "Rome"})
    weather = Weather(is_there=False)
    registry = ToolRegistry(middleware=[Replayer(path)], rules=[{"effect": "deny", "tool": "temperature"}])
    registry.register(weather.temperature)
    result = registry.invoke("temperature", {"city": "Rome"})
    assert result.failure is not None
    assert result.failure.kind == "denied"


def test_a_programs_calls_are_recorded_and_replayed(path: Path) -> None:
    code = {"code": "print(temperature(city='Rome')['degrees'])"}
    recording, replayed = ToolRegistry(), ToolRegistry()
    recording.register(Weather().temperature)
    recording.enable_code_execution()
    with Recorder(path) as recorder:
        recording.configure(middleware=[recorder])
        assert recording.invoke("code_execution", code).text == "11\n"
    assert [call["tool"] for call in json.loads(path.read_text("utf-8"))["calls"]] == ["temperature"]
    replayed.register(Weather(is_there=False).temperature)
    replayed.enable_code_execution()
    replayed.configure(middleware=[Replayer(path)])
    assert replayed.invoke("code_execution", code).text == "11\n"


def test_sessions_and_toolkits_are_recorded_and_replayed(path: Path) -> None:
    def kit(weather: Weather, middleware: Any) -> Toolkit:
        toolkit = Toolkit(middleware=[middleware])
        toolkit.register_tool_function(weather.temperature)
        return toolkit

    async def turn(toolkit: Toolkit) -> Any:
        session = Session(toolkit, protocol="openai")
        reply = session.protocol.render([ToolCall("temperature", {"city": "Rome"}, id="call_x")])
        return (await session.turn(reply)).results[0].data["degrees"]

    with Recorder(path) as recorder:
        assert asyncio.run(turn(kit(Weather(), recorder))) == 11
    replayer = Replayer(path)
    assert asyncio.run(turn(kit(Weather(is_there=False), replayer))) == 11
    replayer.check()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "the cassette {path} cannot be read (No such file or directory): record it first"),
        ("{", "{path} is not a cassette: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "{path} is not a cassette: it has no format 'toolwire-cassette'"),
        (
            '{"format": "toolwire-cassette", "version": 2}',
            "the cassette {path} has version 2, and this toolwire reads 1: record it again",
        ),
    ],
)
def test_a_file_that_is_not_a_cassette_is_refused(path: Path, text: str | None, message: str) -> None:
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(ConfigurationError) as refused:
        Replayer(path)
    assert str(refused.value) == message.format(path=path)
