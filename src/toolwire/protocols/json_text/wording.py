"""The text of the JSON protocol's system prompt, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.protocols.base import Language, Thought


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonWording:
    """Every text of the prompt."""

    heading: str
    introduction: str
    rules: tuple[str, ...]
    thought_rule: dict[Thought, str]
    """Empty if the model is not asked for a thought."""
    tools_heading: str
    no_tools: str
    program: str
    """Used if programs are offered. `{}` is replaced by the example's code."""
    example: str
    request: str
    """The request for a tool without a description. `{}` is replaced by the tool's name."""
    and_then: str


_ENGLISH = JsonWording(
    heading="# Tools",
    introduction="To use a tool, write its call as JSON between the tags, then stop: you will read the result.",
    rules=(
        "The reply may hold several calls, each between tags of its own.",
        "Strict JSON: double quotes, a line break in a string as \\n, no comments. Write characters as they are.",
        "`arguments` holds the values by their parameters' names; leave out what is marked ? unless you need it.",
        "Call only the tools listed. If none fits, or none is needed, answer in plain text.",
    ),
    thought_rule={"short": "", "full": "Before the calls say in a few lines what is wanted and which tools you take."},
    tools_heading="## Tools you have",
    no_tools="There are none: answer in plain text.",
    program=(
        "Where a task needs many calls, reply instead with nothing but one Python program that makes them. In it every "
        "tool is a function, called by keyword; assign what you want to read to `__result__`:\n"
        "```python\n{}```"
    ),
    example="## Example",
    request="Use {}.",
    and_then=" ",
)

_CHINESE = JsonWording(
    heading="# 工具",
    introduction="要使用工具，把调用写成 JSON 放在标签之间，然后停下：随后你会读到结果。",
    rules=(
        "一条回复可以有多个调用，各放在自己的标签里。",
        "严格的 JSON：用双引号，字符串里的换行写成 \\n，不写注释；汉字照写，不用 \\u 转义。",
        "`arguments` 按参数名给出值；带 ? 的参数不需要就不写。",
        "只调用列出的工具。没有合适的工具，或不需要工具时，直接用文字回答。",
    ),
    thought_rule={"short": "", "full": "在调用之前用几行写明用户要什么、用哪些工具。"},
    tools_heading="## 可用的工具",
    no_tools="没有任何工具：直接用文字回答。",
    program=(
        "任务需要多次调用时，可以改为只回复一个完成全部调用的 Python 程序。程序里每个工具都是函数，按参数名调用；"
        "把想读到的内容赋给 `__result__`：\n```python\n{}```"
    ),
    example="## 示例",
    request="使用 {}。",
    and_then="",
)

WORDINGS: dict[Language, JsonWording] = {"en": _ENGLISH, "zh": _CHINESE}
