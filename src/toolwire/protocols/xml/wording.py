"""The text of the XML protocol's system prompt, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.protocols.base import Language, Thought


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlWording:
    """Every text of the prompt. `{}` is replaced."""

    title: str
    introduction: str
    call_rule: str
    """The first rule. `{}` is replaced by the tag around a call."""
    rules: tuple[str, ...]
    ending_rule: str
    """The last rule: how to end without a call."""
    finish_rule: str
    """Stands in its place if a tool ends the work. `{}` is replaced by the tool's name."""
    thought_rule: dict[Thought, str]
    """A last rule; empty for no rule."""
    tools_heading: str
    no_tools: str
    optional: str
    """Follows an optional parameter's type."""
    default: str
    """Follows the type of an optional parameter with a default."""
    example_heading: str
    made_up: str
    """Marks an example whose tool is not offered."""
    request: str
    reply: str
    call_request: str
    """The request for a tool without a description."""
    twice: str
    """The request for two calls of one tool."""
    and_then: str
    """The text between two requests."""
    full_stop: str


_LIST = '<cities><![CDATA[["Oslo", "Lima"]]]></cities>'
"""A filled list: small models do not write one from the rule alone."""

_ENGLISH = XmlWording(
    title="# Tools in XML",
    introduction="Write calls in XML, then stop: you read their results next.",
    call_rule="Write one <{}> for each call, as in the examples; no code fence.",
    rules=(
        f"Values stand in CDATA as they are; lists and objects as JSON: {_LIST}; ]]> as ]]]]><![CDATA[>.",
        "Call only the tools below; omit optional parameters you do not need.",
        "If the tools cannot do it, write only <fail>why, and another way</fail>.",
    ),
    ending_rule="If no tool is needed, answer in plain text.",
    finish_rule="When the work is done, end with one call of `{}` in place of plain text.",
    thought_rule={
        "short": "",
        "full": "Before the calls, think in <think>...</think>: what is wanted, which tools, in which steps.",
    },
    tools_heading="## Tools",
    no_tools="There are none.",
    optional="{}, optional",
    default="{}, default {}",
    example_heading="## Examples",
    made_up="`{}` is not offered.",
    request="Request: {}",
    reply="Reply:",
    call_request="Use {}.",
    twice="Use {} twice.",
    and_then=" ",
    full_stop=".",
)

_CHINESE = XmlWording(
    title="# 工具：XML",
    introduction="在回复里用 XML 写出调用，然后停下，随后会读到结果。",
    call_rule="每次调用写一个 <{}>，如示例，不加代码围栏。",
    rules=(
        f"值原样放在 CDATA 里；列表和对象写成 JSON：{_LIST}；]]> 写成 ]]]]><![CDATA[>。",
        "只调用下面的工具；用不到的可选参数不写。",
        "做不到时，只写 <fail>原因和别的办法</fail>。",
    ),
    ending_rule="不需要工具时，直接用文字回答。",
    finish_rule="任务完成时，不用文字回答，最后调用一次 `{}` 结束。",
    thought_rule={
        "short": "",
        "full": "调用之前，在 <think>...</think> 里思考：要什么，用哪些工具，分几步做。",
    },
    tools_heading="## 工具",
    no_tools="没有任何工具。",
    optional="{}，可选",
    default="{}，默认 {}",
    example_heading="## 示例",
    made_up="`{}` 并不可用。",
    request="请求：{}",
    reply="回复：",
    call_request="使用 {}。",
    twice="使用 {} 两次。",
    and_then="",
    full_stop="。",
)

XML_WORDINGS: dict[Language, XmlWording] = {"en": _ENGLISH, "zh": _CHINESE}
