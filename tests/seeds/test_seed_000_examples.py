"""The templates, tool descriptions, modules and examples of the seed on ATTP, as they are written there.

`documents/` holds the seed's replies and its four tool descriptions.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from toolwire import Session, ToolCall, ToolRegistry, ToolResult, protocols
from toolwire.definition.from_function import from_function
from toolwire.definition.renderings.stub import stub

DOCUMENTS = Path(__file__).with_name("documents")
ATTP = protocols.get("attp")
MODULES = ("math", "json", "datetime", "re", "random", "statistics")

FILES = {"/home/user/docs/readme.md": "r", "/home/user/docs/api.md": "a", "/home/user/docs/logo.png": "l"}


def search_web(query: str, max_results: int = 5) -> list[dict]:
    """在网络上搜索信息，返回搜索结果的列表。

    Args:
        query: 搜索查询字符串
        max_results: 返回结果的最大数量，默认为5

    Returns:
        list[dict]: 搜索结果列表，每个结果包含以下字段：
            - title: str - 标题
            - url: str - 链接地址
            - snippet: str - 内容摘要

    Example:
        >>> results = search_web("Python异步编程", max_results=3)
        >>> print(results[0]["title"])
        '深入理解Python异步编程'
    """
    return [{"title": f"{query} {n}", "url": f"https://a.b/{n}", "snippet": query} for n in range(max_results)]


def read_file(path: str) -> str:
    """读取指定路径的文件内容。

    Args:
        path: 文件的绝对路径

    Returns:
        str: 文件的完整内容

    Raises:
        FileNotFoundError: 当文件不存在时
        PermissionError: 当无读取权限时

    Example:
        >>> content = read_file("/home/user/config.json")
        >>> print(content)
        '{"timeout": 30}'
    """
    if path not in FILES:
        raise FileNotFoundError(path)
    return FILES[path]


def write_file(path: str, content: str) -> bool:
    """将内容写入到指定路径的文件。

    Args:
        path: 文件的绝对路径
        content: 要写入的内容

    Returns:
        bool: 成功返回True，失败返回False

    Example:
        >>> success = write_file("/home/user/output.txt", "Hello World")
        >>> print(success)
        True
    """
    return bool(path and content)


def list_files(directory: str, pattern: str = "*") -> list[str]:
    """列出指定目录下的文件，支持通配符匹配。

    Args:
        directory: 目录的绝对路径
        pattern: 文件匹配模式，默认为"*"（所有文件）

    Returns:
        list[str]: 匹配的文件路径列表

    Example:
        >>> files = list_files("/home/user/docs", pattern="*.md")
        >>> print(files)
        ['readme.md', 'api.md', 'changelog.md']
    """
    names = [path.removeprefix(f"{directory}/") for path in FILES if path.startswith(directory)]
    return [name for name in names if fnmatch(name, pattern)]


TOOLS = [search_web, read_file, write_file, list_files]


def document(name: str) -> str:
    return (DOCUMENTS / name).read_text(encoding="utf-8")


def descriptions() -> list[str]:
    return document("tools.txt").rstrip("\n").split("\n\n\n")


@pytest.fixture
def registry() -> ToolRegistry:
    # Without a block of its own, it shares the zygote of the process. One starts in 0.4 processor seconds.
    registry = ToolRegistry()
    for tool in TOOLS:
        registry.register(tool)
    return registry


@pytest.mark.requirement("attp.protocol.by-name")
def test_the_protocol_is_found_by_its_name_and_does_its_four_jobs() -> None:
    (call,) = ATTP.parse(document("success.toml")).calls

    assert ATTP.name == "attp"
    assert [line for line in ATTP.describe(TOOLS).splitlines() if line.startswith("def ")] == [
        line for text in descriptions() for line in text.splitlines() if line.startswith("def ")
    ]
    assert ATTP.parse(ATTP.render([call])).calls[0].arguments == call.arguments
    assert ATTP.format([ToolResult(True, "three pages", call=call)]) == "three pages"


@pytest.mark.requirement(
    "attp.schema.strict",
    "attp.purpose.program",
    "attp.format.thought",
    "attp.format.tool-call-table",
    "attp.format.status-success",
    "attp.format.target",
    "attp.format.code",
)
def test_the_success_template_is_read_as_one_call_of_its_program() -> None:
    text = document("success_template.toml")
    written = tomllib.loads(text)

    reply = ATTP.parse(text)

    assert [(call.name, dict(call.arguments)) for call in reply.calls] == [
        ("code_execution", {"code": written["tool_call"]["code"]})
    ]
    assert (reply.thought, reply.target) == (written["thought"], "工具调用的目标描述")
    assert (reply.failure, reply.problems) == (None, ())


@pytest.mark.requirement("attp.fail.status", "attp.fail.message", "attp.fail.thought")
def test_the_fail_template_is_read_as_a_failure() -> None:
    text = document("fail_template.toml")

    reply = ATTP.parse(text)

    assert (reply.calls, reply.failure, reply.problems) == ((), "失败原因和替代方案", ())
    assert reply.thought == tomllib.loads(text)["thought"]


@pytest.mark.requirement("attp.feature.toml", "attp.purpose.multiline")
def test_a_program_that_we_render_is_toml_and_comes_back_unchanged() -> None:
    code = "text = '''a\\n\"\"\"b\"\"\"'''\r\n__result__ = text + 'c:\\\\d'\n"

    rendered = ATTP.render([ToolCall("code_execution", {"code": code})])

    assert tomllib.loads(rendered)["tool_call"]["code"] == code
    assert [dict(call.arguments) for call in ATTP.parse(rendered).calls] == [{"code": code}]


@pytest.mark.requirement(
    "attp.stub.form",
    "attp.stub.signature",
    "attp.stub.summary",
    "attp.stub.arguments",
    "attp.stub.returns",
    "attp.stub.returns-fields",
    "attp.stub.raises",
    "attp.stub.example",
    "attp.stub.search-web",
    "attp.stub.read-file",
    "attp.stub.write-file",
    "attp.stub.list-files",
)
@pytest.mark.parametrize(("position", "function"), list(enumerate(TOOLS)))
def test_each_tool_is_described_by_exactly_the_seeds_text(position: int, function: Any) -> None:
    assert stub(from_function(function)).rstrip("\n") == descriptions()[position]


@pytest.mark.requirement("attp.stub.list", "attp.prompt.tools")
def test_the_prompt_holds_the_descriptions_of_the_tools_in_order() -> None:
    assert "\n\n".join(descriptions()) in ATTP.describe(TOOLS)
    assert "write_file" not in ATTP.describe([search_web, read_file])


@pytest.mark.requirement("attp.format.injected-tools", "attp.allow.tools", "attp.format.result-variable")
def test_a_program_calls_its_tools_and_leaves_the_result(registry: ToolRegistry) -> None:
    result = registry.run_program("__result__ = list_files('/home/user/docs', pattern='*.md')")

    assert (result.status, result.value) == ("finished", ["readme.md", "api.md"])
    assert registry.run_program("__result__ = 1\n2").value == 1
    assert registry.run_program("print('said')\n2").for_model == "said\n2"


@pytest.mark.requirement("attp.feature.several-tools")
def test_the_prompts_template_of_several_calls_runs(registry: ToolRegistry) -> None:
    code = """
result1 = read_file('/home/user/docs/' + list_files('/home/user/docs')[0])
result2 = write_file('/home/user/copy.md', result1)
__result__ = {"result1": result1, "result2": result2}
"""

    assert registry.run_program(code).value == {"result1": "r", "result2": True}


@pytest.mark.requirement(
    "attp.allow.builtins",
    "attp.allow.math",
    "attp.allow.json",
    "attp.allow.datetime-now",
    "attp.allow.datetime-parse",
    "attp.allow.re",
    "attp.allow.random",
    "attp.allow.statistics",
    "attp.format.injected-modules",
)
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sorted({'b': 1} | {'a': 2}) + list({3}) + 'x y'.split()", ["a", "b", 3, "x", "y"]),
        ("math.sqrt(16)", 4.0),
        ("round(math.pi, 4)", 3.1416),
        ("json.loads('{\"timeout\": 30}')", {"timeout": 30}),
        ("json.dumps({'a': [1, None]})", '{"a": [1, null]}'),
        ("isinstance(datetime.now(), datetime)", True),
        ("isinstance(datetime.datetime.now(), datetime.datetime)", True),
        ("datetime.parse('2025-03-04T05:06:07')", datetime.datetime(2025, 3, 4, 5, 6, 7)),
        ("re.match(r'(\\d+)', '12ab').group(1)", "12"),
        ("re.sub('a', 'o', 'banana')", "bonono"),
        ("random.randint(3, 3)", 3),
        ("random.choice(['x'])", "x"),
        ("statistics.mean([1, 2, 3])", 2),
        ("statistics.stdev([1, 2, 3])", 1.0),
    ],
)
def test_allowed_modules_and_builtins_work_without_an_import(
    registry: ToolRegistry, expression: str, value: Any
) -> None:
    result = registry.run_program(f"__result__ = {expression}")

    assert (result.status, result.value) == ("finished", value)


@pytest.mark.requirement(
    "attp.ban.import",
    "attp.ban.files",
    "attp.ban.network",
    "attp.ban.system",
    "attp.ban.dynamic",
    "attp.ban.environment",
    "attp.format.no-import",
    "attp.format.no-io",
)
@pytest.mark.parametrize(
    "line",
    [
        "import ctypes",
        "from os import environ",
        "open('/etc/hostname')",
        "os.listdir('/')",
        "pathlib.Path('/').exists()",
        "requests.get('http://127.0.0.1:9')",
        "http.client.HTTPConnection('127.0.0.1')",
        "socket.socket()",
        "subprocess.run(['true'])",
        "os.system('true')",
        "eval('1')",
        "exec('x = 1')",
        "compile('1', 'x', 'eval')",
        "__import__('os')",
        "os.environ['HOME']",
    ],
)
def test_forbidden_operations_are_refused_at_their_line_before_anything_runs(registry: ToolRegistry, line: str) -> None:
    written: list[str] = []

    def note(text: str) -> None:
        """Notes that the program ran."""
        written.append(text)

    registry.register(note)

    result = registry.run_program(f"note('ran')\n{line}\n")

    assert result.error is not None
    assert (result.status, result.error.type, result.error.line, written) == ("failed", "SourceRefused", 2, [])


@pytest.mark.requirement("attp.safety.message", "attp.format.no-io")
def test_a_refused_program_is_told_the_line_the_reason_and_what_to_use_instead(registry: ToolRegistry) -> None:
    result = registry.run_program("path = 'a'\nopen(path)\n")

    assert result.for_model == (
        '  File "<program>", line 2\n    open(path)\n    ^^^^\nSourceRefused: `open`: a program has no files. '
        "Use the tools: `search_web`, `read_file`, `write_file`, `list_files`.\nHint: Nothing of the program has run."
    )


@pytest.mark.requirement("attp.ban.environment")
def test_a_program_finds_an_empty_environment_without_source_checks(
    registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWIRE_TEST_TOKEN", "s3cret")

    result = registry.run_program("import os\n__result__ = dict(os.environ)", source_checks=False)

    assert (result.status, result.value) == ("finished", {})


@pytest.mark.requirement("attp.ban.exact")
def test_a_forbidden_word_that_is_not_the_real_thing_is_fine(registry: ToolRegistry) -> None:
    code = "os = {'open': re.compile('eval')}\n__result__ = os['open'].pattern + ' exec'"

    assert registry.run_program(code).value == "eval exec"


@pytest.mark.requirement("attp.isolation.exceptions")
def test_an_exception_comes_back_with_its_type_message_and_line(registry: ToolRegistry) -> None:
    result = registry.run_program("path = '/nowhere'\nread_file(path)\n")

    assert result.error is not None
    assert (result.status, result.error.type, result.error.message, result.error.line) == (
        "failed",
        "FileNotFoundError",
        "/nowhere",
        2,
    )


@pytest.mark.requirement("attp.example.success")
async def test_the_seeds_successful_reply_runs_and_its_result_goes_back(registry: ToolRegistry) -> None:
    turn = await Session(registry, protocol="attp").turn(document("success.toml"))

    (result,) = turn.results
    assert result.success
    assert result.metadata["program"].value == search_web("Python异步编程", max_results=3)
    assert turn.reply.target == "搜索Python异步编程相关内容"
    assert "https://a.b/2" in turn.text


@pytest.mark.requirement("attp.example.fail")
async def test_the_seeds_failing_reply_runs_nothing_and_gives_its_message(registry: ToolRegistry) -> None:
    turn = await Session(registry, protocol="attp").turn(document("fail.toml"))

    assert (turn.reply.calls, turn.reply.problems, turn.results) == ((), (), ())
    assert turn.reply.failure == "当前可用的工具列表中没有文件删除功能。如需执行文件删除操作，请使用系统命令行工具。"


@pytest.mark.requirement("attp.prompt.modules")
def test_the_prompt_names_the_six_modules() -> None:
    (listed,) = re.findall(r"^## Modules\n.*: (.*)\.$", ATTP.describe([]), re.MULTILINE)

    assert listed.split()[: len(MODULES)] == list(MODULES)
