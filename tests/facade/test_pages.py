"""Results that are too long, read page by page."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.invocation.world import outcome
from toolwire import Caller, Rule, Session, ToolRegistry, ToolResult, ToolSpec
from toolwire.facade.built_in.pages import MemorySpill

LINES = "".join(f"line {n}\n" for n in range(1000))
LIMIT = 500


def lines() -> str:
    """Gives many lines."""
    return LINES


def registry_of(tool: Any = lines, **options: Any) -> ToolRegistry:
    registry = ToolRegistry(result_limit_bytes=LIMIT, **options)
    registry.register(tool)
    registry.configure(result_pages=True)
    return registry


def id_in(result: ToolResult) -> str:
    return result.metadata["result_id"]


def test_a_model_gets_the_first_page_up_to_a_line_and_how_to_read_on() -> None:
    result = registry_of().invoke("lines")
    page, _, note = result.text.rpartition("\n")
    assert page == LINES[:494].rstrip()
    assert note == (
        f"[the first 494 of 8,890 characters; call read_result with id='{id_in(result)}' and offset=494 to read on]"
    )
    assert (result.data, result.metadata["is_cut"]) == (LINES, True)


def test_reading_on_gives_page_after_page_to_the_end() -> None:
    registry = registry_of()
    result = registry.invoke("lines")
    read, offset, notes = "", 0, []
    while True:
        page = registry.invoke("read_result", {"id": id_in(result), "offset": offset})
        assert page.success
        assert len(page.text.encode()) <= LIMIT
        assert "is_cut" not in page.metadata
        text, _, note = page.text.rpartition("\n")
        read += f"{text}\n"
        notes.append(note)
        if note.endswith("; the end]"):
            break
        offset = int(re.findall(r"offset=(\d+)", note)[0])
    assert read == LINES
    assert notes[0] == "[characters 0 to 334 of 8,890; read on with offset=334]"
    assert notes[-1].endswith("to 8,890 of 8,890; the end]")


async def test_structured_data_is_read_as_the_text_that_a_model_would_see() -> None:
    def table() -> list[dict[str, int]]:
        """Gives many rows."""
        return [{"n": n} for n in range(500)]

    registry = registry_of(table)
    result = await registry.ainvoke("table")
    whole = ToolResult(True, table()).text
    assert result.text.startswith(whole[:LIMIT])
    page = await registry.ainvoke("read_result", {"id": id_in(result), "offset": LIMIT})
    assert page.text.startswith(whole[LIMIT : LIMIT + 300])


def test_output_before_a_failure_can_be_read_in_pages() -> None:
    def fails() -> Any:
        """Gives many lines and fails."""
        yield LINES
        raise ValueError("in the end")

    registry = registry_of(fails)
    result = registry.invoke("fails")
    assert result.text.endswith("ValueError: in the end\nRead the error; change the arguments or try another tool.")
    assert registry.invoke("read_result", {"id": id_in(result), "offset": 8880}).text == (
        "line 999\n[characters 8,880 to 8,890 of 8,890; the end]".replace("line 999", "\nline 999")
    )


def test_pictures_stay_beside_the_page() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}

    def both() -> list[Any]:
        """Gives text and a picture."""
        return [{"type": "text", "text": LINES}, picture]

    result = registry_of(both).invoke("both")
    assert [block["type"] for block in result.content] == ["text", "image"]


def test_a_short_result_is_shown_whole() -> None:
    registry = registry_of(ToolSpec.from_function(lambda: "x" * LIMIT, name="short"))
    result = registry.invoke("short")
    assert (result.text, dict(result.metadata)) == ("x" * LIMIT, {})


def test_a_program_receives_the_data_whole() -> None:
    registry = registry_of()
    assert registry.run_program("__result__ = len(lines())").value == 8890


def test_without_the_tool_a_long_result_is_cut() -> None:
    registry = registry_of()
    registry.configure(result_pages=False)
    result = registry.invoke("lines")
    assert result.text.endswith("\n[cut: the first 500 of 8,890 bytes are shown]")
    assert "result_id" not in result.metadata


@pytest.mark.parametrize(
    "options",
    [{"rules": [Rule(effect="deny", tool="read_result")]}, {"visible": lambda name, caller: name != "read_result"}],
    ids=["denied", "hidden"],
)
def test_a_model_that_may_not_read_on_is_not_told_to(options: Any) -> None:
    assert registry_of(**options).invoke("lines").text.endswith("[cut: the first 500 of 8,890 bytes are shown]")


def test_an_id_that_is_gone_or_wrong_says_so() -> None:
    registry = registry_of()
    registry.configure(result_pages=MemorySpill(entries_limit=1))
    first = registry.invoke("lines")
    registry.invoke("lines")
    gone = registry.invoke("read_result", {"id": id_in(first)})
    assert gone.text == (
        f"There is no result '{id_in(first)}' to read on in: it was dropped to make room, or it is not yours.\n"
        "If you copied the id exactly, make the call again that gave the result, with a narrower request."
    )
    assert outcome(gone) == "invalid_arguments"


def test_an_offset_beyond_the_end_says_how_long_it_is() -> None:
    registry = registry_of()
    key = id_in(registry.invoke("lines"))
    assert registry.invoke("read_result", {"id": key, "offset": 8890}).error == (
        "offset=8890 is beyond the end: the result has 8,890 characters."
    )
    assert registry.invoke("read_result", {"id": key, "offset": 8889}).success
    assert outcome(registry.invoke("read_result", {"id": key, "offset": -1})) == "invalid_arguments"


@pytest.mark.threat(27)
async def test_another_caller_session_or_toolkit_cannot_read_it() -> None:
    registry, ada = registry_of(), Caller(principal="ada")
    session = Session(registry, protocol="json", caller=ada)
    turn = await session.turn('{"name": "lines", "arguments": {}}')
    key = id_in(turn.results[0])
    asked = f'{{"name": "read_result", "arguments": {{"id": "{key}"}}}}'
    others = [
        Session(registry, protocol="json", caller=Caller(principal="bo")),
        Session(registry, protocol="json", caller=ada),
    ]
    refused = [(await other.turn(asked)).results[0] for other in others]
    refused.append(registry.invoke("read_result", {"id": key}))
    toolkit = registry.create_agent_toolkit("scout", ["lines", "read_result"])
    refused.append(await toolkit.execute_tool("read_result", {"id": key}))
    assert [outcome(result) for result in refused] == ["invalid_arguments"] * 4
    # The control: the session that it belongs to.
    assert (await session.turn(asked)).results[0].success


async def test_a_toolkit_reads_what_its_own_calls_gave() -> None:
    toolkit = registry_of().create_agent_toolkit("scout", ["lines", "read_result"])
    result = await toolkit.execute_tool("lines")
    assert (await toolkit.execute_tool("read_result", {"id": id_in(result)})).success


async def test_reading_a_page_taints_the_session_as_its_result_does() -> None:
    registry = registry_of(ToolSpec.from_function(lines, labels=["untrusted", "private"]))
    registry.register(ToolSpec.from_function(lambda: "sent", name="send", effects=["send"]))
    spill = MemorySpill()
    # One that is the owner's own is shared by sessions of one caller.
    spill.empty_copy = lambda: spill  # type: ignore[method-assign]
    registry.configure(result_pages=spill)
    first, second, third = (Session(registry, protocol="json") for _ in range(3))
    key = id_in((await first.turn('{"name": "lines", "arguments": {}}')).results[0])
    send = '{"name": "send", "arguments": {}}'
    await second.turn(f'{{"name": "read_result", "arguments": {{"id": "{key}"}}}}')
    assert [outcome((await session.turn(send)).results[0]) for session in (first, second, third)] == [
        "approval_required",
        "approval_required",
        "success",
    ]


def test_loops_and_threads_keep_results_at_once() -> None:
    registry = registry_of()

    async def many() -> list[ToolResult]:
        return await asyncio.gather(*(registry.ainvoke("lines") for _ in range(20)))

    ids = {id_in(result) for result in [*asyncio.run(many()), *(registry.invoke("lines") for _ in range(20))]}
    assert len(ids) == 40
