"""The text of the XML protocol's system prompt, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.protocols.base import Language, Thought


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlWording:
    """Every text of the prompt. `{}` is replaced."""

    title: str
    introduction: str
    rules: tuple[str, ...]
    thought_rule: dict[Thought, str]
    """A last rule; empty for no rule."""
    tools_heading: str
    no_tools: str
    optional: str
    """Follows an optional parameter's type."""
    default: str
    """Follows the type of an optional parameter with a default."""
    example_heading: str
    request: str
    reply: str
    call_request: str
    """The request for a tool without a description."""
    and_then: str
    """The text between two requests."""
    full_stop: str


_ENGLISH = XmlWording(
    title="# How to use tools: XML",
    introduction="You can use tools: write calls in XML in your reply, and read their results next.",
    rules=(
        "One <tool_call> for each call, as in the example; not in a code fence. Several calls may follow each other.",
        "Every value stands in CDATA, as it is. Write lists and objects as JSON, ]]> in a value as ]]]]><![CDATA[>.",
        "Call only the tools below. Leave out optional parameters that you do not need.",
        "After your calls stop: never write a <tool_result> yourself.",
        "If the tools cannot do what is asked, write <fail>why, and what could be done instead</fail> and no call.",
        "If no tool is needed, answer in plain text.",
    ),
    thought_rule={
        "short": "",
        "full": "Before the calls, think in <think>...</think>: what is wanted, which tools, in which steps.",
    },
    tools_heading="## Tools",
    no_tools="There are none.",
    optional="{}, optional",
    default="{}, default {}",
    example_heading="## Examples",
    request="Request: {}",
    reply="Reply:",
    call_request="Use {}.",
    and_then=" ",
    full_stop=".",
)

_CHINESE = XmlWording(
    title="# 工具使用方式：XML",
    introduction="你可以使用工具：在回复里用 XML 写出调用，随后会读到结果。",
    rules=(
        "每次调用写一个 <tool_call>，格式见示例，不加代码围栏；多个调用可以依次写出。",
        "每个值都放在 CDATA 里，原样书写，不转义。列表和对象写成 JSON；值里的 ]]> 写成 ]]]]><![CDATA[>。",
        "只调用下面列出的工具；用不到的可选参数不写。",
        "写完调用就停下，不要自己写 <tool_result>。",
        "工具做不到所要求的事时，不写调用，只写 <fail>原因和别的办法</fail>。",
        "不需要工具时，直接用文字回答。",
    ),
    thought_rule={
        "short": "",
        "full": "调用之前，在 <think>...</think> 里思考：要什么，用哪些工具，分几步做。",
    },
    tools_heading="## 工具",
    no_tools="没有任何工具。",
    optional="{}，可选",
    default="{}，默认 {}",
    example_heading="## 示例",
    request="请求：{}",
    reply="回复：",
    call_request="使用 {}。",
    and_then="",
    full_stop="。",
)

XML_WORDINGS: dict[Language, XmlWording] = {"en": _ENGLISH, "zh": _CHINESE}
