"""Mends answers that the SDK would refuse, so that what can be read of them is read.

They are an answer that is not quite a message, a page with one broken entry, and the result of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from mcp_types import PROTOCOL_VERSION_META_KEY, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, RequestId
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolwire.mcp.client_limits import BLOCKS
from toolwire.mcp.convert import block_of, items_of
from toolwire.mcp.server_log import ServerLog
from toolwire.mcp.values.call_results import mcp_block
from toolwire.mcp.values.unread_messages import meant_message
from toolwire.vocabulary.blocks import ContentBlock, block_for_model
from toolwire.vocabulary.machine.work_clock import WorkClock
from toolwire.vocabulary.texts.counting import count_of

_CALL = "tools/call"
_LISTS = {
    "tools/list": ("tools", "tool"),
    "resources/list": ("resources", "resource"),
    "resources/templates/list": ("resourceTemplates", "template"),
    "prompts/list": ("prompts", "prompt"),
}
"""The field of a page that has its entries, and the word for one of them, by method."""


class AnswerMender:
    """The answers of one connection. It sees each request and each answer."""

    def __init__(self, log: ServerLog) -> None:
        self._log = log
        self._version = ""
        self._asked: dict[RequestId, str] = {}
        """The method of each request whose answer is of interest."""

    def note_request(self, request: JSONRPCRequest) -> None:
        """Notes a request."""
        if request.method in ("initialize", _CALL, *_LISTS):
            self._asked[request.id] = request.method
            meta = (request.params or {}).get("_meta", {})
            self._version = meta.get(PROTOCOL_VERSION_META_KEY, self._version)

    def meant(self, refused: ValidationError) -> JSONRPCMessage | None:
        """Returns the message that the SDK refused to read, mended; None if it is not a message. A warning says so."""
        message = meant_message(refused)
        fault = refused.errors(include_url=False, include_context=False)[0]
        what = "which is not a message" if message is None else "which is not a whole message"
        self._log.warning(f"it sent {fault['input']!r:.200}, {what}: {fault['msg']}")
        return message

    def mend_answer(self, answer: JSONRPCResponse) -> None:
        """Mends an answer. A warning names each broken entry of a page, which is left out, and a mended result.

        A result of 2026-07-28 without a type is complete, as those of older servers are.
        """
        if self._version in MODERN_PROTOCOL_VERSIONS:
            answer.result.setdefault("resultType", "complete")
        method = self._asked.pop(answer.id, "")
        if method == "initialize":
            self._version = str(answer.result.get("protocolVersion", ""))
        elif method == _CALL:
            self._mend_call(answer)
        elif method and self._fault(method, answer.result) is not None:
            field, _ = _LISTS[method]
            entries: Any = answer.result.get(field)
            # A page that is broken in another way is left to the SDK.
            if isinstance(entries, list) and self._fault(method, {**answer.result, field: []}) is None:
                answer.result[field] = self._usable(method, cast("list[Any]", entries), answer.result)

    def _cut(self, answer: JSONRPCResponse) -> None:
        """Leaves out the blocks of a result after the first `BLOCKS`. A text in their place, and a warning, say so."""
        content: Any = answer.result.get("content")
        left = len(cast("list[Any]", content)) - BLOCKS if isinstance(content, list) else 0
        if left > 0:
            answer.result["content"] = [
                *content[:BLOCKS],
                {"type": "text", "text": f"[cut: {count_of(left, 'more block')}]"},
            ]
            self._log.warning(f"a result was cut after {BLOCKS:,} blocks: {count_of(left, 'block')} left out")

    def _mend_call(self, answer: JSONRPCResponse) -> None:
        self._cut(answer)
        # The SDK's two readers of a result differ in which members may be null.
        nulls = [name for name, value in answer.result.items() if value is None]
        fault = f"{nulls[0]}: null" if nulls else self._fault(_CALL, answer.result)
        if fault is None or answer.result.get("resultType", "complete") != "complete":
            return
        whole = {name: answer.result[name] for name in answer.result.keys() & {"resultType"}}
        mended = readable_answer(answer.result, lambda part: self._fault(_CALL, {**whole, **part}) is None)
        if mended != answer.result:
            self._log.warning(f"the result of a call was mended: {fault}")
            answer.result = mended

    def _usable(self, method: str, entries: list[Any], page: Mapping[str, Any]) -> list[Any]:
        """Returns the entries that the SDK reads, as far as there is time to look at each."""
        clock, found = WorkClock(), list[Any]()
        for number, entry in enumerate(entries):
            if clock.is_over:
                _, word = _LISTS[method]
                left = count_of(len(entries) - number, word)
                self._log.warning(f"the last {left} of a list are off, because so many of it are broken")
                break
            if self._is_usable(method, entry, page):
                found.append(entry)
        return found

    def _is_usable(self, method: str, entry: Any, page: Mapping[str, Any]) -> bool:
        field, word = _LISTS[method]
        fault = self._fault(method, {**page, field: [entry]})
        if fault is None:
            return True
        name = cast("Mapping[str, Any]", entry).get("name") if isinstance(entry, Mapping) else entry
        self._log.warning(f"its {word} {name!r:.80} is off, because its definition is broken: {fault}")
        return False

    def _fault(self, method: str, page: Mapping[str, Any]) -> str | None:
        """Returns the first fault of the page; None if the SDK takes it."""
        try:
            validate_server_result(method, self._version, page)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except (KeyError, ValueError):
            # The SDK does not know the version either.
            return None
        return None


def readable_answer(answer: Mapping[str, Any], fits: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
    """Returns the answer without the parts that the SDK refuses. `fits` returns True if it reads an answer.

    A block that it does not know becomes its type as text, and missing content no blocks. If the time is over, that is
    done with all further blocks. A value of structured content that must be an object is put under `result`. What is no
    answer to a call stays as it is.
    """
    if answer.keys().isdisjoint({"content", "structuredContent", "isError"}):
        return dict(answer)
    found = {name: value for name, value in answer.items() if value is not None}
    clock = WorkClock()
    found["content"] = [
        _type_as_text(block_of(item)) if clock.is_over else _readable_block(item, fits)
        for item in items_of(answer.get("content"))
    ]
    for name, mended in (("structuredContent", {"result": found.get("structuredContent")}), ("_meta", {})):
        if name in found and not fits({"content": [], name: found[name]}):
            found[name] = mended
    return found


def _readable_block(item: Any, fits: Callable[[Mapping[str, Any]], bool]) -> Any:
    if fits({"content": [item]}):
        return item
    block = block_of(item)
    for candidate in (block, {name: value for name, value in block.items() if name != "annotations"}):
        # The block's own values may be wrong, such as a priority of 7.
        with suppress(ValidationError):
            known = mcp_block(cast("ContentBlock", candidate)).model_dump(by_alias=True, mode="json", exclude_none=True)
            if fits({"content": [known]}):
                return known
    # This revision of the protocol does not know the block.
    return _type_as_text(block)


def _type_as_text(block: ContentBlock) -> dict[str, str]:
    told = block_for_model(block)
    return {"type": "text", "text": told["text"] if told["type"] == "text" else f"[{told['type']}]"}
