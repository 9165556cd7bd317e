"""The result of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.vocabulary.blocks import ContentBlock, TextBlock, text_of
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall, setters_of
from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.failures import FAILURE_RULES, Failure, FailureKind
from toolwire.vocabulary.model_text import show
from toolwire.vocabulary.texts.lone_surrogates import encodable_text
from toolwire.vocabulary.values import plain_value

_UNEXPLAINED = "the tool failed without saying why"


def _default_failure() -> Failure:
    return Failure(kind="tool_error", hint=FAILURE_RULES["tool_error"].hint)


@dataclass(frozen=True, slots=True, init=False)
class ToolResult:
    """The result of a call: its data, or the failure.

    A `BaseTool` creates one with `ToolResult(success=True, data=...)` or `ToolResult(success=False, error=...)`.

    Attributes:
        success: True if the call succeeded.
        data: The Python object that the tool returned.
        error: The error message, safe to show to a model; None on success.
        metadata: Data that the tool or the invocation path adds; not shown to a model. A program's call has its
            `ProgramResult` as `program`.
        failure: The failure as data; None on success.
        blocks: The tool's own content blocks; empty if `content` is made from `data`. After a failure, the output
            before it.
        call: The call; None for a result that a tool made and the invocation path has not seen yet.
    """

    success: bool
    data: Any = None
    error: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Failure | None = None
    blocks: tuple[ContentBlock, ...] = ()
    call: ToolCall | None = None

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
        """`blocks` is another name for `content`, because `dataclasses.replace` passes fields by name."""
        content = content or blocks
        if not success and failure is None:
            failure = _default_failure()
            error = error or _UNEXPLAINED
        _set_success(self, success)
        _set_data(self, data)
        _set_error(self, error)
        _set_metadata(self, {} if metadata is None else metadata)
        _set_failure(self, failure)
        _set_blocks(self, content if type(content) is tuple else _as_blocks(content))
        _set_call(self, call)

    def __post_init__(self) -> None:
        """Completes a failed result of a subclass that is a dataclass itself; its own `__init__` sets the fields."""
        if not self.success and self.failure is None:
            _set_failure(self, _default_failure())
            _set_error(self, self.error or _UNEXPLAINED)

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
        """Creates a failed result. Without `hint` it has the hint of its kind."""
        failure = Failure(
            kind=kind, hint=hint or FAILURE_RULES[kind].hint, path=path, data=data or {}, exception=exception
        )
        return cls(False, None, message, metadata, failure=failure, call=call)

    def with_metadata(self, **entries: Any) -> ToolResult:
        """Returns a copy of the result with more metadata."""
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
        """Returns the data of a successful call.

        Raises:
            CallFailed: The call failed without an exception of the tool.
            Exception: The tool's own exception, if it raised one in this process.
        """
        if self.failure is None:
            return self.data
        raise self.failure.exception or CallFailed(self)

    @property
    def text(self) -> str:
        """The result as one text for a model: the data, or earlier output, the error and its hint.

        The text can always be encoded: U+FFFD replaces each lone surrogate, which `data` keeps.
        """
        if self.blocks:
            said = text_of(self.blocks)
            return encodable_text(said if self.failure is None else f"{said}\n{self._failure_text}")
        return encodable_text(show(self.data) if self.failure is None else self._failure_text)

    @property
    def content(self) -> list[ContentBlock]:
        """The result as content blocks for a model: the tool's own blocks, or one text block.

        An error is the last block.
        """
        if self.blocks:
            told = () if self.failure is None else (TextBlock(type="text", text=self._failure_text),)
            return [*self.blocks, *told]
        return [{"type": "text", "text": self.text}]

    @property
    def program_value(self) -> Any:
        """The value of the program that the call ran, as Python objects: `__result__`, or its last line's value.

        `data` is then the text that the model reads. None if the program had no value or did not finish, and for a
        call of another tool. Read from a store, the value is in JSON types.
        """
        if self.call is None or self.call.name != CODE_EXECUTION:
            return None
        program = self.metadata.get("program")
        if isinstance(program, Mapping):
            # A result that a store kept has all of its metadata in JSON types.
            return cast("Mapping[str, Any]", program).get("value")
        return getattr(program, "value", None)

    @property
    def _failure_text(self) -> str:
        if self.failure is None:
            return ""
        return f"{self.error}\n{self.failure.hint}" if self.failure.hint else f"{self.error}"

    @property
    def structured_content(self) -> dict[str, Any] | None:
        """The data as a JSON object; a value that is not an object is put under `result`. None for a failure.

        Raises:
            Unrepresentable: The data have no JSON form.
        """
        if self.failure is not None:
            return None
        value = plain_value(self.data)
        return cast("dict[str, Any]", value) if type(value) is dict else {"result": value}

    def _repr_html_(self) -> str:
        """Returns the result as an HTML table and its images, which notebooks show. All texts are escaped."""
        return result_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns success, data, error and metadata in JSON types.

        Raises:
            Unrepresentable: The data or metadata have no JSON form.
        """
        return {
            "success": self.success,
            "data": plain_value(self.data),
            "error": self.error,
            "metadata": plain_value(dict(self.metadata)),
        }


_set_success, _set_data, _set_error, _set_metadata, _set_failure, _set_blocks, _set_call = setters_of(ToolResult)


def _as_blocks(content: Any) -> tuple[Any, ...]:
    """Returns the blocks. A text or one block alone is one of them."""
    is_one = isinstance(content, str | Mapping)
    return (cast("Any", content),) if is_one else tuple(cast("Iterable[Any]", content))


def result_html(result: ToolResult) -> str:
    """Returns the result as a table of its tool, its status and its text, and its images."""
    from toolwire.vocabulary.html_display import html_images, html_table

    tool = "" if result.call is None else result.call.name
    status = "success" if result.failure is None else result.failure.kind
    return html_table([("tool", tool), ("status", status), ("text", result.text)]) + html_images(result.blocks)


class CallFailed(ToolwireError):
    """A call failed without an exception of the tool. `result` has the details."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.error)
        self.result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A call that has not run yet because a person must decide. It is neither success nor failure."""

    call: ToolCall
    """The call; for a program, the call that runs the program."""
    request_ids: tuple[str, ...]
    """The ids of the requests that wait. A program has one for each of its waiting calls, any other call has one.

    Empty for a call that has not begun because it waits for the call before it.
    """


Outcome = ToolResult | Pending
"""The outcome of a call."""
