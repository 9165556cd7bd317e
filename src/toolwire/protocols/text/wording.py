"""The texts of the prompts of the text formats, in English and in Chinese. Names in braces are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from toolwire.protocols.base import Language, Thought, check_option


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A request that hardly any tool can meet."""

    request: str
    thought: str
    reason: str
    """The reason for the failure, and an alternative for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """The texts that several formats have in one language."""

    made_up: str
    """Marks an example whose tool is not offered."""
    example: str
    """A request, and the reply to it."""
    use: str
    """The request for a tool without a description."""
    use_twice: str
    """The request for two calls of one tool."""
    and_then: str
    """The text between two requests."""
    full_stop: str
    kept_variables: str
    """Said if a program has the variables of earlier ones."""
    unfit: tuple[Unfit, ...]
    """One for each item of `UNFIT_WORDS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The texts of one format in one language."""

    prompt: str
    """The whole prompt, or all of it before the tools."""
    ending: str
    """How to end without a call."""
    finish_ending: str
    """Stands in its place if a tool ends the work. `{}` is replaced by the tool's name."""
    thought_rule: Mapping[Thought, str]
    """Another rule, or an empty text."""
    no_tools: str
    phrases: Phrases


@dataclass(frozen=True, slots=True, kw_only=True)
class AttpWording(Wording):
    """The texts of ATTP."""

    examples_note: str
    """Follows tools with examples of their own."""
    thought_template: Mapping[Thought, str]
    success_thought: Mapping[Thought, str]
    success_target: str
    fail_thought: Mapping[Thought, str]
    no_tool_request: str
    no_tool_thought: Mapping[Thought, str]
    no_tool_target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlWording(Wording):
    """The texts of XML."""

    optional: str
    """Follows an optional parameter's type."""
    default: str
    """Follows the type of an optional parameter with a default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonWording(Wording):
    """The texts of JSON."""

    heading: str
    tools_heading: str
    program: str
    """Used if programs are offered. `{}` is replaced by the example's code."""
    examples_heading: str


_Words = TypeVar("_Words", bound=Wording)


def words_in(wordings: Mapping[Language, _Words], language: Language, thought: Thought = "short") -> _Words:
    """Returns the texts of a format in a language.

    Raises:
        ConfigurationError: The language or the thought style is unknown.
    """
    check_option("language", language, wordings)
    check_option("thought", thought, wordings[language].thought_rule)
    return wordings[language]


UNFIT_WORDS = (
    ("book", "reserv", "restaurant", "预订", "餐厅"),
    ("light", "lamp", "switch", "home", "灯"),
    ("plant", "water", "garden", "浇", "花"),
    (),
)
"""If one of these words is in a tool's name or description, the unfit request at the next place is used."""

_EN = Phrases(
    made_up="`{}` is not offered.\n",
    example="Request: {}\nReply:\n{}",
    use="Use {}.",
    use_twice="Use {} twice.",
    and_then=" ",
    full_stop=".",
    kept_variables="\nPlain variables and functions of your earlier programs are still there.",
    unfit=(
        Unfit(
            request="Book a table for two tonight.",
            thought="No listed tool can book a table.",
            reason="I have no tool that books tables. Please call the restaurant.",
        ),
        Unfit(
            request="Turn off the light in the kitchen.",
            thought="No listed tool can reach a light.",
            reason="I have no tool that switches lights. Please use the switch or its app.",
        ),
        Unfit(
            request="Water the plants on the balcony.",
            thought="No listed tool can water plants.",
            reason="I have no tool that waters plants. Please ask someone at home.",
        ),
        Unfit(
            request="Which number am I thinking of?",
            thought="No listed tool can read thoughts.",
            reason="I have no tool that reads thoughts. Please tell me the number.",
        ),
    ),
)
_ZH = Phrases(
    made_up="`{}` 并不可用。\n",
    example="请求：{}\n回复：\n{}",
    use="使用 {}。",
    use_twice="使用 {} 两次。",
    and_then="",
    full_stop="。",
    kept_variables="\n之前程序里的普通变量和函数仍然可用。",
    unfit=(
        Unfit(
            request="今晚订一张两人的餐桌。",
            thought="列出的工具都不能订餐桌。",
            reason="我没有订餐桌的工具，请直接致电餐厅。",
        ),
        Unfit(
            request="把厨房的灯关掉。",
            thought="列出的工具都控制不了灯。",
            reason="我没有控制灯的工具，请用开关或它的应用。",
        ),
        Unfit(
            request="给阳台上的花浇水。",
            thought="列出的工具都不能浇花。",
            reason="我没有浇花的工具，请让家里人帮忙。",
        ),
        Unfit(
            request="我心里想的是哪个数？",
            thought="列出的工具都读不到想法。",
            reason="我没有读取想法的工具，请直接告诉我这个数。",
        ),
    ),
)

_ATTP_EN = AttpWording(
    phrases=_EN,
    prompt="""\
# How to use tools: ATTP

You can use tools: reply with a TOML document, and you read what its program gives.
{ending}

## Core rules
1. Output: to use tools, reply with one valid TOML document alone: no text or code fence around it.
2. Tools: check that a tool is listed below before you use it.
3. Code: make all calls the task needs in one Python program; what you want to read goes to `__result__`.
4. {thought_rule}

## Tools
{tools}

## Modules
There without import: {modules}.{kept_variables}

## Templates
If it can be done:
thought = {thought_template}

[tool_call]
status = "success"
target = "[what the calls are to bring]"
code = '''
# Python; it may call several tools
__result__ = ...
'''

If it cannot:
thought = {thought_template}

[tool_call]
status = "fail"
message = "[why not, and what could be done instead]"

## Constraints
- Call no function that is not listed, and import nothing but the modules above.
- No files, network, processes, environment or eval/exec/compile, except through a tool.
- Triple quotes inside the code are \"\"\", never '''.
- Beyond the tools: status "fail"; message gives the reason and another way.

## Example that fails
{fail_example}

## Example that succeeds
{success_examples}
""",
    ending="When no tool is needed any more, answer the user in plain text.",
    finish_ending="When the work is done, a program calls `{}` once, as its last line: nothing after it runs.",
    thought_rule={
        "short": "Reasoning: say in `thought`, in one line, what you will do and why.",
        "full": "Reasoning: give the four points of the template in `thought`.",
    },
    no_tools="There are no tools. A program can only work things out with the modules below.",
    examples_note="\nText under `Example:` only shows the form. It is not a request.",
    thought_template={
        "short": '"[what you will do and why]"',
        "full": (
            '"""\n1. Request: [what is wanted]\n2. Tools: [which, and why these]\n'
            '3. Check: [each one is listed]\n4. Plan: [in which steps]\n"""'
        ),
    },
    success_thought={
        "short": "{names} can do this.",
        "full": ("1. Request: {request}\n2. Tools: {names}\n3. Check: listed\n4. Plan: call, and return what comes\n"),
    },
    success_target="Get the answer",
    fail_thought={
        "short": "{thought}",
        "full": (
            "1. Request: {request}\n2. Tools: none\n"
            "3. Check: none of those listed does this\n4. Plan: say why, and offer another way\n"
        ),
    },
    no_tool_request="What is the mean of 3, 5 and 10?",
    no_tool_thought={
        "short": "No tool is needed: statistics works it out.",
        "full": (
            "1. Request: Work out the mean\n2. Tools: none\n3. Check: none\n"
            "4. Plan: No tool is needed: statistics works it out.\n"
        ),
    },
    no_tool_target="Work out the mean",
)
_ATTP_ZH = AttpWording(
    phrases=_ZH,
    prompt="""\
# 工具使用方式：ATTP

你可以使用工具：回复一份 TOML 文档，其中的 Python 程序会被运行，随后你会读到它的结果。
{ending}

## 核心规则
1. 输出：使用工具的回复只是一份合法的 TOML，前后没有别的文字和代码围栏。
2. 工具：使用之前，先看它是否列在下面。
3. 代码：在一个 Python 程序里完成任务所需的全部调用，把想读到的内容放进 `__result__`。
4. {thought_rule}

## 工具
{tools}

## 模块
不用导入即可使用：{modules}。{kept_variables}

## 模板
能完成时：
thought = {thought_template}

[tool_call]
status = "success"
target = "[这些调用要得到什么]"
code = '''
# Python，可调用多个工具
__result__ = ...
'''

不能完成时：
thought = {thought_template}

[tool_call]
status = "fail"
message = "[为什么不行，还可以怎么办]"

## 约束
- 没有列出的函数不能调用；除上述模块外什么都不导入。
- 除非通过工具，不碰文件、网络、进程和环境变量，不用 eval、exec、compile。
- 代码里的三引号写 \"\"\"，不写 '''。
- 超出工具能力时，status 写 "fail"，message 给出原因和别的办法。

## 失败示例
{fail_example}

## 成功示例
{success_examples}
""",
    ending="不再需要工具时，直接用文字回答用户。",
    finish_ending="任务完成时，在程序的最后一行调用一次 `{}`，其后的代码不会运行。",
    thought_rule={
        "short": "思考：用一行 `thought` 写明要做什么、为什么。",
        "full": "思考：按模板的四点写在 `thought` 里。",
    },
    no_tools="没有任何工具。程序只能用下面的模块做计算。",
    examples_note="\n`Example:` 下的内容只演示格式，不是请求。",
    thought_template={
        "short": '"[要做什么，为什么]"',
        "full": (
            '"""\n1. 请求：[用户要什么]\n2. 工具：[用哪些，理由]\n3. 核对：[每个都在列表里]\n4. 计划：[分几步做]\n"""'
        ),
    },
    success_thought={
        "short": "{names} 能做到。",
        "full": "1. 请求：{request}\n2. 工具：{names}\n3. 核对：都已列出\n4. 计划：调用并返回结果\n",
    },
    success_target="得到结果",
    fail_thought={
        "short": "{thought}",
        "full": "1. 请求：{request}\n2. 工具：无\n3. 核对：列出的工具都做不到\n4. 计划：说明原因，给出别的办法\n",
    },
    no_tool_request="3、5、10 的平均数是多少？",
    no_tool_thought={
        "short": "不需要工具，用 statistics 计算。",
        "full": "1. 请求：计算平均数\n2. 工具：无\n3. 核对：无\n4. 计划：不需要工具，用 statistics 计算。\n",
    },
    no_tool_target="计算平均数",
)
ATTP_WORDINGS: dict[Language, AttpWording] = {"en": _ATTP_EN, "zh": _ATTP_ZH}

# The list in the second rule is filled: small models do not write one from the rule alone.
_XML_EN = XmlWording(
    phrases=_EN,
    prompt="""\
# Tools in XML

Write calls in XML, then stop: you read their results next.

1. Write one <{tag}> for each call, as in the examples; no code fence.
2. Values stand in CDATA as they are; lists and objects as JSON: \
<cities><![CDATA[["Oslo", "Lima"]]]></cities>; ]]> as ]]]]><![CDATA[>.
3. Call only the tools below; omit optional parameters you do not need.
4. If the tools cannot do it, write only <fail>why, and another way</fail>.
5. {ending}{thought_rule}

## Tools
{tools}

## Examples
{examples}
""",
    ending="If no tool is needed, answer in plain text.",
    finish_ending="When the work is done, end with one call of `{}` in place of plain text.",
    thought_rule={
        "short": "",
        "full": "\n6. Before the calls, think in <think>...</think>: what is wanted, which tools, in which steps.",
    },
    no_tools="There are none.",
    optional="{}, optional",
    default="{}, default {}",
)
_XML_ZH = XmlWording(
    phrases=_ZH,
    prompt="""\
# 工具：XML

在回复里用 XML 写出调用，然后停下，随后会读到结果。

1. 每次调用写一个 <{tag}>，如示例，不加代码围栏。
2. 值原样放在 CDATA 里；列表和对象写成 JSON：\
<cities><![CDATA[["Oslo", "Lima"]]]></cities>；]]> 写成 ]]]]><![CDATA[>。
3. 只调用下面的工具；用不到的可选参数不写。
4. 做不到时，只写 <fail>原因和别的办法</fail>。
5. {ending}{thought_rule}

## 工具
{tools}

## 示例
{examples}
""",
    ending="不需要工具时，直接用文字回答。",
    finish_ending="任务完成时，不用文字回答，最后调用一次 `{}` 结束。",
    thought_rule={
        "short": "",
        "full": "\n6. 调用之前，在 <think>...</think> 里思考：要什么，用哪些工具，分几步做。",
    },
    no_tools="没有任何工具。",
    optional="{}，可选",
    default="{}，默认 {}",
)
XML_WORDINGS: dict[Language, XmlWording] = {"en": _XML_EN, "zh": _XML_ZH}

_JSON_EN = JsonWording(
    phrases=replace(_EN, example="> {}\n{}", full_stop=""),
    prompt="""\
To use tools, write a JSON list with a call for each thing that is asked, between <tool_call> tags, and stop: \
you read the results next.
{form}- Strict JSON: double quotes, line breaks in strings as \\n, no comments, characters as they are.
- `arguments` holds values by parameter name; leave out those marked ? unless needed.
- {ending}{thought_rule}""",
    ending="Call only the tools listed. If none fits or is needed, answer in plain text.",
    finish_ending="Call only the tools listed. When the work is done, or none of them fits, end with one call of `{}`.",
    thought_rule={
        "short": "",
        "full": "\n- Before the calls say in a few lines what is wanted and which tools you take.",
    },
    no_tools="There are none: answer in plain text.",
    heading="# Tools",
    tools_heading="## Your tools",
    program=(
        "Where a task needs many calls, reply instead with nothing but one Python program that makes them. In it every "
        "tool is a function, called by keyword; assign what you want to read to `__result__`:\n"
        "```python\n{}```"
    ),
    examples_heading="## Examples",
)
_JSON_ZH = JsonWording(
    phrases=replace(_ZH, example="> {}\n{}", full_stop=""),
    prompt="""\
要使用工具，为每件事写一个调用，合成一个 JSON 列表，放在 <tool_call> 标签之间，然后停下，等待结果。
{form}- 严格的 JSON：用双引号，字符串里的换行写成 \\n，不写注释；汉字照写。
- `arguments` 按参数名给出值；带 ? 的参数不需要就不写。
- {ending}{thought_rule}""",
    ending="只调用列出的工具。没有合适的，或不需要时，直接用文字回答。",
    finish_ending="只调用列出的工具。任务完成，或没有合适的工具时，最后调用一次 `{}` 结束。",
    thought_rule={"short": "", "full": "\n- 在调用之前用几行写明用户要什么、用哪些工具。"},
    no_tools="没有任何工具：直接用文字回答。",
    heading="# 工具",
    tools_heading="## 可用的工具",
    program=(
        "任务需要多次调用时，可以改为只回复一个完成全部调用的 Python 程序。程序里每个工具都是函数，按参数名调用；"
        "把想读到的内容赋给 `__result__`：\n```python\n{}```"
    ),
    examples_heading="## 示例",
)
JSON_WORDINGS: dict[Language, JsonWording] = {"en": _JSON_EN, "zh": _JSON_ZH}
