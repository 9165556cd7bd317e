"""How a call ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.content import ContentBlock, TextBlock
from toolwire.vocabulary.errors import ToolwireError, Unrepresentable
from toolwire.vocabulary.failures import FAILURE_RULES, Failure, FailureKind
from toolwire.vocabulary.frozen import setters_of
from toolwire.vocabulary.text import encodable_text
from toolwire.vocabulary.values import plain, show


@dataclass(frozen=True, slots=True, init=False)
class ToolResult:
    """How a call ended: its data, or why there is none.

    A `BaseTool` makes one by `ToolResult(success=True, data=...)` or `ToolResult(success=False, error=...)`.
    """

    success: bool
    """Whether the tool did what it was asked."""
    data: Any
    """What the tool returned, as the Python object it returned."""
    error: str | None
    """What went wrong, in words that may be shown to a model; None on success."""
    metadata: Mapping[str, Any]
    """Whatever the tool or the path wants to add; not shown to a model."""
    failure: Failure | None
    """Why it failed, as data; None on success."""
    blocks: tuple[ContentBlock, ...]
    """Content blocks the tool made itself; empty when `content` is to be made from `data`. Of a failed call: what it
    had given before."""
    call: ToolCall | None
    """The call that ended so; None for a result that a tool made and the path has not seen yet."""

    def __init__(
        self,
        success: bool,
        data: Any = None,
        error: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        content: Sequence[ContentBlock] = (),
        blocks: Sequence[ContentBlock] = (),
        failure: Failure | None = None,
        call: ToolCall | None = None,
    ) -> None:
        """`blocks` is another name for `content`: `dataclasses.replace` gives the fields by their names."""
        content = content or blocks
        if not success and failure is None:
            failure = Failure(kind="tool_error", hint=FAILURE_RULES["tool_error"].hint)
            error = error or "the tool failed without saying why"
        _set_success(self, success)
        _set_data(self, data)
        _set_error(self, error)
        _set_metadata(self, {} if metadata is None else metadata)
        _set_failure(self, failure)
        _set_blocks(self, content if type(content) is tuple else tuple(content))
        _set_call(self, call)

    @classmethod
    def failed(
        cls,
        kind: FailureKind,
        message: str,
        *,
        hint: str = "",
        path: str = "",
        data: dict[str, Any] | None = None,
        exception: BaseException | None = None,
        metadata: Mapping[str, Any] | None = None,
        call: ToolCall | None = None,
    ) -> ToolResult:
        """A failed result; without `hint`, the kind's own."""
        failure = Failure(
            kind=kind, hint=hint or FAILURE_RULES[kind].hint, path=path, data=data or {}, exception=exception
        )
        return cls(False, None, message, metadata, failure=failure, call=call)

    def with_metadata(self, **entries: Any) -> ToolResult:
        """The same result with more metadata."""
        return ToolResult(
            self.success,
            self.data,
            self.error,
            {**self.metadata, **entries},
            content=self.blocks,
            failure=self.failure,
            call=self.call,
        )

    def unwrap(self) -> Any:
        """The data of a call that succeeded.

        Raises:
            CallFailed: The call failed, and the tool raised nothing.
            Exception: The tool's own exception, where it raised one in this process.
        """
        if self.failure is None:
            return self.data
        raise self.failure.exception or CallFailed(self)

    @property
    def text(self) -> str:
        """As one text for a model: the data, or the error with what to do, after what came before.

        It can be encoded: U+FFFD stands in place of each lone surrogate, which `data` keeps.
        """
        if self.blocks:
            said = "\n".join(_block_text(block) for block in self.blocks)
            return encodable_text(said if self.failure is None else f"{said}\n{self._failure_text}")
        return encodable_text(show(self.data) if self.failure is None else self._failure_text)

    @property
    def content(self) -> list[ContentBlock]:
        """Content blocks for a model: the tool's own, or one block of text; of a failed call its error is the last."""
        if self.blocks:
            told = () if self.failure is None else (TextBlock(type="text", text=self._failure_text),)
            return [*self.blocks, *told]
        return [{"type": "text", "text": self.text}]

    @property
    def _failure_text(self) -> str:
        return "" if self.failure is None else f"{self.error}\n{self.failure.hint}"

    @property
    def structured_content(self) -> dict[str, Any] | None:
        """The data as a JSON object; anything that is no object stands under `result`. None for a failure."""
        if self.failure is not None:
            return None
        value = plain(self.data)
        return cast("dict[str, Any]", value) if type(value) is dict else {"result": value}

    def to_dict(self) -> dict[str, Any]:
        """Success, data, error and metadata as JSON-able values."""
        return {
            "success": self.success,
            "data": plain(self.data),
            "error": self.error,
            "metadata": plain(dict(self.metadata)),
        }


_set_success, _set_data, _set_error, _set_metadata, _set_failure, _set_blocks, _set_call = setters_of(ToolResult)


class CallFailed(ToolwireError):
    """A call that failed without an exception of the tool's own. `result` says how."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error)
        self.result = result


def _block_text(block: ContentBlock) -> str:
    # A tool's own blocks are whatever its author made of them.
    try:
        return str(block["text"]) if block["type"] == "text" else f"[{block['type']}]"
    except (KeyError, TypeError) as error:
        raise Unrepresentable(f"a content block like {block!r:.80}", path="") from error
