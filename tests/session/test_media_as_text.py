"""No way leads base64 from a block to a model as text, in any format."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolwire.protocols
import toolwire.vocabulary.model_text
from toolwire import Session, ToolCall, ToolRegistry, ToolResponse, ToolResult

FORMATS = ("openai", "openai-responses", "anthropic", "gemini", "xml", "json", "attp")
DATA = "iVBORw0KGgoAAAANSUhEUgAA" * 4
SOURCE: dict[str, Any] = {"type": "base64", "media_type": "image/png", "data": DATA}
IMAGE: dict[str, Any] = {"type": "image", "source": SOURCE}
SOUND: dict[str, Any] = {"type": "audio", "source": {**SOURCE, "media_type": "audio/wav"}}
ZIP: dict[str, Any] = {"type": "resource", "resource": {"uri": "f:///z", "blob": DATA, "mimeType": "application/zip"}}
PICTURE: dict[str, Any] = {"type": "resource", "resource": {"uri": "f:///p", "blob": DATA, "mimeType": "image/png"}}
MARKED = {**IMAGE, "cache_control": {"type": "ephemeral"}}
OF_MCP: dict[str, Any] = {"type": "image", "data": DATA, "mimeType": "image/png"}
AT_URL: dict[str, Any] = {"type": "image", "source": {"type": "url", "url": f"data:image/png;base64,{DATA}"}}
ANNOTATED = {**IMAGE, "annotations": {"priority": 1}}
LINK: dict[str, Any] = {"type": "resource_link", "uri": f"data:image/png;base64,{DATA}", "name": "link"}
BLOCKS = {
    "image": IMAGE,
    "annotated": ANNOTATED,
    "sound": SOUND,
    "zip": ZIP,
    "picture": PICTURE,
    "marked": MARKED,
    "of MCP": OF_MCP,
    "at URL": AT_URL,
    "link": LINK,
}


@dataclasses.dataclass
class Page:
    """A tool's own class with a block in it."""

    number: int
    picture: Any


MADE: dict[str, Callable[[Any], Any]] = {
    "a member": lambda block: {"rows": 2, "picture": block},
    "a nested list": lambda block: [1, [[block]], "end"],
    "a tuple": lambda block: (1, block),
    "a dataclass": lambda block: Page(1, block),
    "a mixed list": lambda block: [block, 5],
    "a result with data": lambda block: ToolResult(True, {"picture": block}),
}
CODE = {
    "the value": "look()",
    "the value's member": "look()['picture']",
    "a list in the value": "[1, [look()]]",
    "a tuple as key": "{(1, 2): look()}",
    "the text of the value": "str(look())",
    "the JSON of the value": "json.dumps(look())",
    "a print": "print(look())",
    "a print of the block": "print('one', look()['picture'], [look()['picture']])",
    "a print as JSON": "print(json.dumps(look(), indent=2))",
    "a print as JSON in JSON": "print(json.dumps(json.dumps(look())))",
    "a pretty print": "import pprint\npprint.pprint(look())",
    "a formatted print": "print(f'<{look()}>')",
    "an error": "raise ValueError(look())",
}


def texts(message: Any) -> Iterator[str]:
    """The texts of a message, without the parts in which providers take media."""
    if isinstance(message, str):
        yield message
    elif isinstance(message, dict):
        is_media = message.get("type") in ("image", "image_url", "input_image", "input_audio")
        for name, item in message.items():
            if name == "response":
                # Gemini's data of a function: the model reads all of it.
                yield json.dumps(item)
            elif name != "inline_data" and not is_media:
                yield from texts(item)
    elif isinstance(message, list | tuple):
        for item in message:
            yield from texts(item)


def sent(protocol: str, result: ToolResult) -> str:
    """All texts that the format sends of the result. Media in their own fields are no text."""
    call = ToolCall("look", {}, id="call_1")
    named = ToolResult(
        result.success,
        result.data,
        result.error,
        content=result.blocks,
        failure=result.failure,
        call=call,
    )
    return "\n".join(texts(toolwire.protocols.get(protocol).format([named])))


def looking(value: Any, **options: Any) -> ToolRegistry:
    def look() -> Any:
        return value

    registry = ToolRegistry(**options)
    registry.register(look)
    registry.enable_code_execution()
    return registry


def assert_described(text: str) -> None:
    assert DATA[:16] not in text
    assert "72 bytes" in text


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_in_a_tools_data_is_told_by_its_kind_type_and_size(made: str, block: str) -> None:
    result = looking(MADE[made](BLOCKS[block])).invoke("look", {})
    assert DATA in json.dumps(result.to_dict())
    assert_described(result.text)
    for protocol in FORMATS:
        assert_described(sent(protocol, result))


@pytest.mark.parametrize("block", [name for name in BLOCKS if name not in ("marked", "of MCP")])
def test_a_block_as_content_is_never_sent_as_text(block: str) -> None:
    value = ToolResponse([BLOCKS[block]])
    for protocol in FORMATS:
        assert DATA not in sent(protocol, looking(value).invoke("look", {}))


@pytest.mark.parametrize("code", CODE)
@pytest.mark.parametrize("block", BLOCKS)
def test_a_program_sends_no_base64_of_a_block_as_text(code: str, block: str) -> None:
    registry = looking({"picture": BLOCKS[block], "rows": 2})
    result = registry.invoke("code_execution", {"code": CODE[code]})
    assert result.success is (code != "an error")
    for protocol in FORMATS:
        assert DATA[:16] not in sent(protocol, result)
    assert DATA[:16] not in registry.run_program(CODE[code]).for_model


def test_output_that_is_cut_inside_of_base64_has_none_of_it() -> None:
    registry = looking({**IMAGE, "source": {**SOURCE, "data": DATA * 4_000}})
    result = registry.invoke("code_execution", {"code": "print(look())"})
    assert DATA not in result.text
    assert result.text.splitlines()[-1].startswith("[output cut: the first ")


@pytest.mark.parametrize("at", range(6))
def test_each_page_of_a_long_result_has_the_description(at: int) -> None:
    registry = looking([{"row": "x" * 400, "picture": IMAGE} for _ in range(8)], result_limit_bytes=1_000)
    registry.configure(result_pages=True)
    first = registry.invoke("look", {})
    page = registry.invoke("read_result", {"id": first.metadata["result_id"], "offset": at * 700})
    assert DATA not in first.text
    assert page.success
    assert_described(page.text)


PROGRAM = """target = "x"
[tool_call]
status = "success"
target = "x"
code = '''
print(look())
print(pay())
'''
"""
REPLIES: dict[str, Any] = {
    "xml": "<tool_call><name>look</name></tool_call><tool_call><name>pay</name></tool_call>",
    "attp": PROGRAM,
}


@pytest.mark.parametrize("protocol", REPLIES)
def test_a_resumed_run_sends_no_base64_as_text(protocol: str, tmp_path: Path) -> None:
    def pay() -> Any:
        return {"receipt": IMAGE}

    def session() -> Session:
        registry = looking({"picture": IMAGE, "rows": 2})
        registry.register(toolwire.ToolSpec.from_function(pay, permission="confirm"))
        return Session(registry, protocol=protocol, store=f"sqlite:///{tmp_path / 'runs.db'}")

    turn = session().run_turn(REPLIES[protocol])
    assert turn.suspended is not None
    (request,) = turn.suspended.pending
    done = session().run_resume(turn.suspended.run_id, [{"request_id": request.id, "verdict": "approve"}])
    assert_described(json.dumps(done.messages))
    assert_described(done.text)
    again = session().run_resume(turn.suspended.run_id)
    assert again.text == done.text


def test_without_the_descriptions_the_base64_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(toolwire.vocabulary.model_text, "_base64_line", lambda members: None)
    result = looking({"picture": IMAGE}).invoke("look", {})
    assert all(DATA in sent(protocol, result) for protocol in FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "{'data': 'c2hvcnQ=', 'rows': 2}",
        '{"data": "' + "a" * 128 + '"}',
        "the data: plain words, a blob of them",
        '{"blob": "README"}',
    ],
)
def test_a_program_may_print_other_data_as_they_are(text: str) -> None:
    result = looking(1).invoke("code_execution", {"code": f"print({text!r})"})
    assert result.text == f"{text}\n"


def test_a_url_in_data_stays_as_it_is() -> None:
    block = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    assert json.loads(looking({"picture": block}).invoke("look", {}).text) == {"picture": block}


def test_the_description_has_kind_type_and_size() -> None:
    data = [IMAGE, {"zip": ZIP}, MARKED, OF_MCP, 5]
    assert json.loads(looking(data).invoke("look", {}).text) == [
        "[image: image/png, 72 bytes]",
        {"zip": "[resource] f:///z, application/zip, 72 bytes"},
        {**MARKED, "source": "[image/png, 72 bytes]"},
        "[image: image/png, 72 bytes]",
        5,
    ]
