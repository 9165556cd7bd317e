"""The text of ATTP's system prompt, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.protocols.base import Language, Thought


@dataclass(frozen=True, slots=True, kw_only=True)
class AttpWording:
    """Every text of the prompt. `{}` is replaced by names."""

    title: str
    introduction: str
    plain_ending: str
    """How to end without a call."""
    finish_ending: str
    """Stands in its place if a tool ends the work. `{}` is replaced by the name that programs write."""
    rules_heading: str
    rules: tuple[str, str, str]
    """The rules for output, tools and code."""
    thought_rule: dict[Thought, str]
    tools_heading: str
    no_tools: str
    examples_note: str
    """Follows tools with examples of their own."""
    modules_heading: str
    modules: str
    kept_variables: str
    """Follows the modules if a program has the variables of earlier ones."""
    templates_heading: str
    success_template: str
    fail_template: str
    thought_template: dict[Thought, str]
    target_template: str
    code_template: str
    message_template: str
    constraints_heading: str
    constraints: tuple[str, ...]
    success_heading: str
    fail_heading: str
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
    full_thought: str
    """Four points: request, tools, check, plan."""
    success_thought: str
    success_check: str
    success_plan: str
    success_target: str
    no_tool_request: str
    no_tool_thought: str
    no_tool_target: str
    fail_check: str
    fail_plan: str
    nothing: str
    """Replaces the tools' names if no tools are given."""


_ENGLISH = AttpWording(
    title="# How to use tools: ATTP",
    introduction="You can use tools: reply with a TOML document, and you read what its program gives.",
    plain_ending="When no tool is needed any more, answer the user in plain text.",
    finish_ending="When the work is done, a program calls `{}` once, as its last line: nothing after it runs.",
    rules_heading="## Core rules",
    rules=(
        "Output: to use tools, reply with one valid TOML document alone: no text or code fence around it.",
        "Tools: check that a tool is listed below before you use it.",
        "Code: make all calls the task needs in one Python program; what you want to read goes to `__result__`.",
    ),
    thought_rule={
        "short": "Reasoning: say in `thought`, in one line, what you will do and why.",
        "full": "Reasoning: give the four points of the template in `thought`.",
    },
    tools_heading="## Tools",
    no_tools="There are no tools. A program can only work things out with the modules below.",
    examples_note="\nText under `Example:` only shows the form. It is not a request.",
    modules_heading="## Modules",
    modules="There without import: {}.",
    kept_variables="Plain variables and functions of your earlier programs are still there.",
    templates_heading="## Templates",
    success_template="If it can be done:",
    fail_template="If it cannot:",
    thought_template={
        "short": "[what you will do and why]",
        "full": (
            "1. Request: [what is wanted]\n2. Tools: [which, and why these]\n"
            "3. Check: [each one is listed]\n4. Plan: [in which steps]\n"
        ),
    },
    target_template="[what the calls are to bring]",
    code_template="# Python; it may call several tools\n__result__ = ...\n",
    message_template="[why not, and what could be done instead]",
    constraints_heading="## Constraints",
    constraints=(
        "Call no function that is not listed, and import nothing but the modules above.",
        "No files, network, processes, environment or eval/exec/compile, except through a tool.",
        "Triple quotes inside the code are \"\"\", never '''.",
        'Beyond the tools: status "fail"; message gives the reason and another way.',
    ),
    success_heading="## Example that succeeds",
    fail_heading="## Example that fails",
    made_up="`{}` is not offered.",
    request="Request: {}",
    reply="Reply:",
    call_request="Use {}.",
    twice="Use {} twice.",
    and_then=" ",
    full_stop=".",
    full_thought="1. Request: {}\n2. Tools: {}\n3. Check: {}\n4. Plan: {}\n",
    success_thought="{} can do this.",
    success_check="listed",
    success_plan="call, and return what comes",
    success_target="Get the answer",
    no_tool_request="What is the mean of 3, 5 and 10?",
    no_tool_thought="No tool is needed: statistics works it out.",
    no_tool_target="Work out the mean",
    fail_check="none of those listed does this",
    fail_plan="say why, and offer another way",
    nothing="none",
)

_CHINESE = AttpWording(
    title="# 工具使用方式：ATTP",
    introduction="你可以使用工具：回复一份 TOML 文档，其中的 Python 程序会被运行，随后你会读到它的结果。",
    plain_ending="不再需要工具时，直接用文字回答用户。",
    finish_ending="任务完成时，在程序的最后一行调用一次 `{}`，其后的代码不会运行。",
    rules_heading="## 核心规则",
    rules=(
        "输出：使用工具的回复只是一份合法的 TOML，前后没有别的文字和代码围栏。",
        "工具：使用之前，先看它是否列在下面。",
        "代码：在一个 Python 程序里完成任务所需的全部调用，把想读到的内容放进 `__result__`。",
    ),
    thought_rule={
        "short": "思考：用一行 `thought` 写明要做什么、为什么。",
        "full": "思考：按模板的四点写在 `thought` 里。",
    },
    tools_heading="## 工具",
    no_tools="没有任何工具。程序只能用下面的模块做计算。",
    examples_note="\n`Example:` 下的内容只演示格式，不是请求。",
    modules_heading="## 模块",
    modules="不用导入即可使用：{}。",
    kept_variables="之前程序里的普通变量和函数仍然可用。",
    templates_heading="## 模板",
    success_template="能完成时：",
    fail_template="不能完成时：",
    thought_template={
        "short": "[要做什么，为什么]",
        "full": "1. 请求：[用户要什么]\n2. 工具：[用哪些，理由]\n3. 核对：[每个都在列表里]\n4. 计划：[分几步做]\n",
    },
    target_template="[这些调用要得到什么]",
    code_template="# Python，可调用多个工具\n__result__ = ...\n",
    message_template="[为什么不行，还可以怎么办]",
    constraints_heading="## 约束",
    constraints=(
        "没有列出的函数不能调用；除上述模块外什么都不导入。",
        "除非通过工具，不碰文件、网络、进程和环境变量，不用 eval、exec、compile。",
        "代码里的三引号写 \"\"\"，不写 '''。",
        '超出工具能力时，status 写 "fail"，message 给出原因和别的办法。',
    ),
    success_heading="## 成功示例",
    fail_heading="## 失败示例",
    made_up="`{}` 并不可用。",
    request="请求：{}",
    reply="回复：",
    call_request="使用 {}。",
    twice="使用 {} 两次。",
    and_then="",
    full_stop="。",
    full_thought="1. 请求：{}\n2. 工具：{}\n3. 核对：{}\n4. 计划：{}\n",
    success_thought="{} 能做到。",
    success_check="都已列出",
    success_plan="调用并返回结果",
    success_target="得到结果",
    no_tool_request="3、5、10 的平均数是多少？",
    no_tool_thought="不需要工具，用 statistics 计算。",
    no_tool_target="计算平均数",
    fail_check="列出的工具都做不到",
    fail_plan="说明原因，给出别的办法",
    nothing="无",
)

WORDINGS: dict[Language, AttpWording] = {"en": _ENGLISH, "zh": _CHINESE}
