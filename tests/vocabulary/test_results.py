"""How a call ended."""

from __future__ import annotations

import copy
import datetime
import pickle
from dataclasses import asdict, replace
from typing import Any

import pytest

from toolwire.vocabulary.blocks import ContentBlock, TextBlock
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.failures import Failure
from toolwire.vocabulary.results import CallFailed, ToolResult

DAY = datetime.date(2024, 5, 1)
PICTURE: ContentBlock = {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}


def text_block(text: str) -> ContentBlock:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("data", "text", "structured"),
    [
        ("plain words", "plain words", {"result": "plain words"}),
        (None, "null", {"result": None}),
        ({"when": DAY}, '{"when": "2024-05-01"}', {"when": "2024-05-01"}),
        ([1, (2,)], "[1, [2]]", {"result": [1, [2]]}),
    ],
)
def test_data_are_shown_as_text_and_as_an_object(data: Any, text: str, structured: dict[str, Any]) -> None:
    result = ToolResult(True, data)
    assert (result.text, result.content, result.structured_content) == (text, [text_block(text)], structured)


def test_a_tools_own_blocks_are_its_content_and_its_text() -> None:
    result = ToolResult(True, 3, content=[text_block("three"), PICTURE])
    assert result.content == [text_block("three"), PICTURE]
    assert result.text == "three\n[image]"
    assert result.structured_content == {"result": 3}


@pytest.mark.parametrize("block", [{"type": "text"}, {"text": "x"}, "x", None], ids=repr)
def test_a_block_that_is_none_is_named(block: Any) -> None:
    with pytest.raises(Unrepresentable) as caught:
        _ = ToolResult(True, content=[block]).text
    assert str(caught.value) == f"a content block like {block!r} cannot be written as JSON"


def test_a_failure_shows_the_error_and_what_to_do() -> None:
    result = ToolResult.failed("denied", "'pay' may not be run.", hint="Ask.", path="a", data={"n": 1})
    assert result.failure == Failure(kind="denied", hint="Ask.", path="a", data={"n": 1})
    assert result.text == "'pay' may not be run.\nAsk."
    assert result.content == [text_block(result.text)]
    assert result.structured_content is None
    assert (result.success, result.data, result.blocks, dict(result.metadata)) == (False, None, (), {})


def test_a_failure_shows_what_the_tool_gave_before_it() -> None:
    result = ToolResult(False, error="no", content=[PICTURE])
    assert result.content == [PICTURE, text_block("no\nRead the error; change the arguments or try another tool.")]


def test_a_tool_that_fails_by_hand_has_a_failure_too() -> None:
    result = ToolResult(success=False, error="disk full")
    assert result.failure == Failure(
        kind="tool_error", hint="Read the error; change the arguments or try another tool."
    )
    assert ToolResult(success=False).error == "the tool failed without saying why"


def test_a_result_is_written_as_json() -> None:
    result = ToolResult(True, {DAY: (1,)}, metadata={"took": datetime.timedelta(seconds=1)})
    assert result.to_dict() == {
        "success": True,
        "data": {"2024-05-01": [1]},
        "error": None,
        "metadata": {"took": "PT1S"},
    }


def test_results_of_the_same_call_are_equal() -> None:
    call = ToolCall("add", {"a": 1})
    assert ToolResult(True, 1, call=call) == ToolResult(True, 1, call=ToolCall("add", params={"a": 1}))
    assert ToolResult(True, 1, call=call) != ToolResult(True, 2, call=call)


class Unkind(Exception):
    """An exception that neither copy nor pickle can make again."""

    def __init__(self, message: str, *, response: object) -> None:
        super().__init__(message)
        self.response = response


def raised() -> ToolResult:
    return ToolResult.failed(
        "tool_error",
        "Unkind: no",
        data={"exception": "Unkind"},
        exception=Unkind("no", response=object()),
        metadata={"tries": 2},
        call=ToolCall("fetch", {"id": 1}, id="r_1"),
    )


@pytest.mark.parametrize(
    "result", [ToolResult(True, {"a": [1]}), ToolResult(True, content=[TextBlock(type="text", text="x")]), raised()]
)
def test_a_result_can_be_copied_pickled_replaced_compared_and_made_a_dict(result: ToolResult) -> None:
    assert copy.copy(result) == copy.deepcopy(result) == pickle.loads(pickle.dumps(result)) == replace(result) == result
    assert replace(result, metadata={"more": 1}).blocks == result.blocks
    assert replace(result, metadata={"more": 1}) != result
    assert asdict(result)["success"] is result.success


def test_a_copied_failure_keeps_its_exception_and_a_pickled_one_has_none() -> None:
    result = raised()
    assert result.failure is not None
    for copied in (copy.copy(result), copy.deepcopy(result), replace(result, data=1)):
        assert copied.failure is not None
        assert copied.failure.exception is result.failure.exception
    assert pickle.loads(pickle.dumps(result)).failure.exception is None
    assert "exception" not in asdict(result)["failure"]


def test_unwrap_gives_the_data_or_raises_what_the_tool_raised() -> None:
    assert ToolResult(True, 5).unwrap() == 5
    with pytest.raises(Unkind):
        raised().unwrap()
    failed = ToolResult.failed("denied", "no")
    with pytest.raises(CallFailed) as caught:
        failed.unwrap()
    assert caught.value.result is failed
