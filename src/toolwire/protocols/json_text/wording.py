"""The text of the JSON protocol's system prompt, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.protocols.attp.wording import WORDINGS as ATTP_WORDINGS
from toolwire.protocols.base import Language, Thought


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonWording:
    """Every text of the prompt."""

    heading: str
    introduction: str
    rules: tuple[str, ...]
    ending_rule: str
    """The last rule: how to end without a call."""
    finish_rule: str
    """Stands in its place if a tool ends the work. `{}` is replaced by the tool's name."""
    thought_rule: dict[Thought, str]
    """Empty if the model is not asked for a thought."""
    tools_heading: str
    no_tools: str
    program: str
    """Used if programs are offered. `{}` is replaced by the example's code."""
    kept_variables: str
    example: str
    made_up: str
    """Marks an example whose tool is not offered."""
    request: str
    """The request for a tool without a description. `{}` is replaced by the tool's name."""
    twice: str
    """The request for two calls of one tool."""
    and_then: str


_ENGLISH = JsonWording(
    heading="# Tools",
    introduction=(
        "To use tools, write a JSON list with a call for each thing that is asked, between <tool_call> tags, and stop: "
        "you read the results next."
    ),
    rules=(
        "Strict JSON: double quotes, line breaks in strings as \\n, no comments, characters as they are.",
        "`arguments` holds values by parameter name; leave out those marked ? unless needed.",
    ),
    ending_rule="Call only the tools listed. If none fits or is needed, answer in plain text.",
    finish_rule="Call only the tools listed. When the work is done, or none of them fits, end with one call of `{}`.",
    thought_rule={"short": "", "full": "Before the calls say in a few lines what is wanted and which tools you take."},
    tools_heading="## Your tools",
    no_tools="There are none: answer in plain text.",
    program=(
        "Where a task needs many calls, reply instead with nothing but one Python program that makes them. In it every "
        "tool is a function, called by keyword; assign what you want to read to `__result__`:\n"
        "```python\n{}```"
    ),
    kept_variables=ATTP_WORDINGS["en"].kept_variables,
    example="## Examples",
    made_up="`{}` is not offered.",
    request="Use {}.",
    twice="Use {} twice.",
    and_then=" ",
)

_CHINESE = JsonWording(
    heading="# 工具",
    introduction="要使用工具，为每件事写一个调用，合成一个 JSON 列表，放在 <tool_call> 标签之间，然后停下，等待结果。",
    rules=(
        "严格的 JSON：用双引号，字符串里的换行写成 \\n，不写注释；汉字照写。",
        "`arguments` 按参数名给出值；带 ? 的参数不需要就不写。",
    ),
    ending_rule="只调用列出的工具。没有合适的，或不需要时，直接用文字回答。",
    finish_rule="只调用列出的工具。任务完成，或没有合适的工具时，最后调用一次 `{}` 结束。",
    thought_rule={"short": "", "full": "在调用之前用几行写明用户要什么、用哪些工具。"},
    tools_heading="## 可用的工具",
    no_tools="没有任何工具：直接用文字回答。",
    program=(
        "任务需要多次调用时，可以改为只回复一个完成全部调用的 Python 程序。程序里每个工具都是函数，按参数名调用；"
        "把想读到的内容赋给 `__result__`：\n```python\n{}```"
    ),
    kept_variables=ATTP_WORDINGS["zh"].kept_variables,
    example="## 示例",
    made_up="`{}` 并不可用。",
    request="使用 {}。",
    twice="使用 {} 两次。",
    and_then="",
)

WORDINGS: dict[Language, JsonWording] = {"en": _ENGLISH, "zh": _CHINESE}
