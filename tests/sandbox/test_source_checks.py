"""Programs that are refused before they run, and programs that only look like these."""

from __future__ import annotations

import ast
import warnings

import pytest

from tests.sandbox.programs import ADD, TOOLS, FakeTools, Runner, parameter
from toolwire.sandbox.program import Program, ProgramTool
from toolwire.sandbox.source_checks import SourceRefusal, check_source

OPEN = ProgramTool(name="open", program_name="open", parameters=(parameter("path"),))

REFUSED: list[tuple[str, str, str]] = [
    ("import os", "import os", "files"),
    ("import os.path as path", "import os.path", "files"),
    ("from pathlib import Path", "from pathlib import ...", "files"),
    ("import math, socket", "import socket", "network"),
    ("import requests", "import requests", "network"),
    ("import http.client", "import http.client", "network"),
    ("import subprocess", "import subprocess", "system"),
    ("import numpy as np", "import numpy", "import"),
    ("from . import x", "from . import ...", "import"),
    ("import secrets", "import secrets", "import"),
    ("io.open('a')", "io.open", "files"),
    ("import sys", "import sys", "environment"),
    ("import importlib", "import importlib", "dynamic code"),
    ("def f():\n    import os", "import os", "files"),
    ("open('a')", "open", "files"),
    ("with open('a') as file: pass", "open", "files"),
    ("f = open", "open", "files"),
    ("os.listdir('.')", "os.listdir", "files"),
    ("pathlib.Path('.')", "pathlib.Path", "files"),
    ("requests.get('x')", "requests.get", "network"),
    ("socket.socket()", "socket.socket", "network"),
    ("os.system('ls')", "os.system", "system"),
    ("subprocess.run(['ls'])", "subprocess.run", "system"),
    ("eval('1')", "eval", "system"),
    ("exec('x = 1')", "exec", "system"),
    ("[eval(x) for x in ['1']]", "eval", "system"),
    ("f = lambda code: exec(code)", "exec", "system"),
    ("compile('1', '', 'eval')", "compile", "dynamic code"),
    ("__import__('os')", "__import__", "dynamic code"),
    ("__builtins__['eval']", "__builtins__", "dynamic code"),
    ("os.environ['HOME']", "os.environ", "environment"),
    ("os.getenv('HOME')", "os.getenv", "environment"),
    ("sys.argv", "sys.argv", "environment"),
    ("class A:\n    open = 1\n    def f(self):\n        return open('x')", "open", "files"),
    ("def f(open):\n    pass\nopen('x')", "open", "files"),
    ("[open for open in [1]]\nopen('x')", "open", "files"),
]


@pytest.mark.parametrize(("source", "what", "family"), REFUSED, ids=[source for source, _, _ in REFUSED])
def test_source_that_cannot_work_is_refused(source: str, what: str, family: str) -> None:
    found = check_source(Program(source=source))
    assert [(refusal.what, refusal.family) for refusal in found] == [(what, family)]


def test_a_tree_that_another_thread_has_disturbed_is_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real, disturbed = ast.parse, iter([SystemError("AST constructor recursion depth mismatch (before=33, after=28)")])

    def parse(source: str, filename: str) -> ast.Module:
        if (error := next(disturbed, None)) is not None:
            raise error
        return real(source, filename)

    monkeypatch.setattr(ast, "parse", parse)
    assert [refusal.what for refusal in check_source(Program(source="eval('1')"))] == ["eval"]


ACCEPTED = [
    "import math, json, datetime, re, random, statistics, asyncio",
    "from datetime import datetime as dt, timedelta",
    "from json.decoder import JSONDecodeError",
    "from __future__ import annotations",
    "re.compile('a').match('a')",
    "x.open('a'), x.eval, x.system('ls'), x.environ",
    "'open os eval exec import os subprocess'",
    "{'os': 1, 'open': 2}['os']",
    "dict(open=1, eval=2)",
    "open = 1\nopen",
    "def open(path): return path\nopen('x')",
    "class os: name = 'x'\nos.name",
    "def f(os): return os.name\nf(1)",
    "def f(*open, **exec): return open, exec",
    "f = lambda eval: eval(1)",
    "for os in ['linux', 'mac']: print(os)",
    "[os for os in 'ab'], {os for os in 'ab'}, {os: os for os in 'ab'}, list(os for os in 'ab')",
    "try: pass\nexcept ValueError as exec: print(exec)",
    "with x as open: open(1)",
    "match x:\n    case [open, *os]: print(open, os)\n    case {**eval}: eval\n    case 1 as exec: exec",
    "if (os := 1): print(os)",
    "print([os for x in [1] if (os := x)], os)",
    "def f():\n    global os\n    os = 1\nos",
    "def f():\n    open = 1\n    def g():\n        nonlocal open\n        open = 2\n        return open\n    return g",
    "class A:\n    open = 1\n    other = open",
    "async def f():\n    async with x as socket:\n        socket.send()\n",
    "open: int = 1\nopen",
    "# open('a'); import os",
]


@pytest.mark.parametrize("source", ACCEPTED)
def test_names_count_only_as_the_real_thing(source: str) -> None:
    assert check_source(Program(source=source)) == ()


def test_a_tool_of_that_name_is_not_refused() -> None:
    assert check_source(Program(source="open('a')", tools=(OPEN,))) == ()


def test_a_refusal_says_where_why_and_what_instead() -> None:
    (refusal,) = check_source(Program(source="x = 1\n    \nö = open('a')", tools=(ADD,)))
    assert refusal == SourceRefusal(
        line=3,
        column=4,
        width=4,
        what="open",
        family="files",
        reason="`open`: a program has no files",
        instead="Use the tools: `add(a: int, b: int)`.",
    )


def test_all_refusals_come_at_once_in_the_order_of_lines(run: Runner) -> None:
    tools = FakeTools()
    result = run("print('ran')\nimport os\nif True:\n    x = ('ö', eval('1'))\nadd(1, 2)", tools)
    assert result.for_model == (
        '  File "<program>", line 2\n'
        "    import os\n"
        "    ^^^^^^^^^\n"
        "SourceRefused: `import os`: a program has no files. Use the tools: `add(a: int, b: int)`, "
        "`search(query: str, limit: int = 10)`, `echo(value)`, `fail`, `many_kinds`. "
        "Leave the line out.\n"
        '  File "<program>", line 4\n'
        "    x = ('ö', eval('1'))\n"
        "              ^^^^\n"
        "SourceRefused: `eval`: a program cannot run text as code. "
        "Write the expression itself, or read data with `json.loads(text)`.\n"
        "Hint: Nothing of the program has run."
    )
    assert (result.status, result.stdout, tools.calls) == ("failed", "", [])


def test_an_import_has_its_own_advice() -> None:
    (refusal,) = check_source(Program(source="from secrets import token_hex"))
    assert refusal.text("from secrets import token_hex").splitlines()[-1] == (
        "SourceRefused: `from secrets import ...`: a program cannot import it. "
        "Use `random.SystemRandom()` or `uuid.uuid4()`. Leave the line out."
    )


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("import json, os, math as m", "Write the line as `import json, math as m`."),
        ("import os, requests", "Leave the line out."),
        ("from os import path, getcwd", "Leave the line out."),
    ],
)
def test_a_refused_import_is_told_its_line_without_it(source: str, advice: str) -> None:
    assert all(refusal.instead.endswith(f". {advice}") for refusal in check_source(Program(source=source)))
    assert check_source(Program(source="import json, math as m")) == ()


def test_without_tools_the_way_out_is_the_reply() -> None:
    (refusal,) = check_source(Program(source="open('a')"))
    assert refusal.instead == "There are no tools either: say in the reply that it cannot be done."


@pytest.mark.parametrize("source", ["x = (", "\0", "-" * 30_000 + "1", "x" + ".a" * 30_000, "\ud800", "[" * 60_000])
def test_a_text_that_is_not_python_is_left_to_python(source: str) -> None:
    assert check_source(Program(source=source)) == ()


@pytest.mark.parametrize("source", ["\0", "\ud800", "x = '\ud800'\nlen(x)", "\ufeffadd(1, 2)", "\x0cadd(1, 2)"])
def test_odd_texts_are_programs_or_fail_as_such(run: Runner, source: str) -> None:
    assert run(source).status in ("finished", "failed")


def test_an_odd_escape_warns_nobody(run: Runner) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run("re.findall('\\d+', 'a1b22')")
    assert (result.value, result.stdout) == (["1", "22"], "")


def test_without_the_checks_the_real_import_runs(run: Runner) -> None:
    result = run("import os\nlen(os.environ)", source_checks=False)
    assert (result.status, result.value) == ("finished", 0)


def test_every_tool_can_be_named_in_a_program() -> None:
    assert len({tool.program_name for tool in TOOLS}) == len(TOOLS)
