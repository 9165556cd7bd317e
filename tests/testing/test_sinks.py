"""The kit for sinks passes ours, and names the fault of a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

import tests.testing.kits.sinks as kit
from tests.testing.kits.sinks import SINK_CHECKS, ListSink, MakeSink, OpenSink, check_sink
from toolwire.invocation.fold import CallOutput
from toolwire.invocation.ports.ports import Part
from toolwire.runtime.rendezvous import Rendezvous
from toolwire.testing import PortFails
from toolwire.vocabulary.response import ToolResponse


class Meeting:
    """A sink as ours is: a rendezvous with one reader. Wrong ones change a step."""

    def __init__(self) -> None:
        self.meeting: Rendezvous[Part] = Rendezvous()

    def offer(self, part: Part, /) -> Future[bool] | None:
        return self.meeting.offer(part)

    def end_with(self, response: ToolResponse, /) -> None:
        pass

    def take(self) -> Part | None:
        return self.meeting.take().result(10)

    def leave(self) -> None:
        self.meeting.close()


def opened(kind: type[Meeting] = Meeting) -> OpenSink:
    sink = kind()
    return OpenSink(sink=sink, take=sink.take, leave=sink.leave)


@pytest.mark.parametrize("check", SINK_CHECKS)
def test_our_own_passes(check: str) -> None:
    SINK_CHECKS[check](opened)


class RunsAhead(Meeting):
    def offer(self, part: Part, /) -> Future[bool] | None:
        self.meeting.offer(part)
        turn: Future[bool] = Future()
        turn.set_result(True)
        return turn


class HoldsNobodyUp(Meeting):
    def offer(self, part: Part, /) -> Future[bool] | None:
        self.meeting.offer(part)
        return None


class GoesOnAlone(Meeting):
    """The tool is told to go on although the reader left."""

    def leave(self) -> None:
        pass


class WaitsInOffer(Meeting):
    def offer(self, part: Part, /) -> Future[bool] | None:
        turn = self.meeting.offer(part)
        turn.result(10)
        return turn


class LosesWhatIsUnderWay(Meeting):
    def end_with(self, response: ToolResponse, /) -> None:
        self.meeting.take()


class MixesThreadsUp(Meeting):
    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def take(self) -> Part | None:
        part = super().take()
        self.taken += 1
        # More than any one tool of the kit gives.
        return part if self.taken <= 10 else Part(pieces=("another's",))


EVERY = list(SINK_CHECKS)
BROKEN: list[tuple[type[Meeting], list[str]]] = [
    (RunsAhead, EVERY[:3]),
    (HoldsNobodyUp, EVERY),
    (GoesOnAlone, ["a reader who left stops the tool"]),
    (WaitsInOffer, [*EVERY[:3], *EVERY[4:]]),
    (LosesWhatIsUnderWay, ["the last response holds nobody up"]),
    (MixesThreadsUp, ["tools of several threads keep apart"]),
]


@pytest.mark.parametrize(("kind", "broken"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
def test_a_wrong_sink_is_told_by_what_it_does(
    kind: type[Meeting], broken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit, "_PATIENCE_S", 1.0)
    make: MakeSink = lambda: opened(kind)  # noqa: E731
    with pytest.raises(PortFails) as failed:
        check_sink(make)
    assert [line.partition(": ")[0] for line in str(failed.value).splitlines()] == broken


def test_a_list_keeps_what_a_call_gave() -> None:
    sink, response = ListSink(), ToolResponse([])
    put: Callable[[object], bool] = CallOutput(sink).put
    assert [put("a"), put("b")] == [True, True]
    sink.end_with(response)
    assert [part.pieces for part in sink.parts] == [("a",), ("b",)]
    assert sink.last is response


def test_a_list_whose_reader_left_stops_the_tool() -> None:
    sink = ListSink(wants=1)
    put: Callable[[object], bool] = CallOutput(sink).put
    assert [put("a"), put("b")] == [True, False]
    assert [part.pieces for part in sink.parts] == [("a",)]
