"""The values that `--tools` accepts, and its errors for others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.conftest import Write


def names(*arguments: str) -> list[str]:
    """The names of the tools that these arguments give."""
    ended = run_here("tools", *arguments, "--json")
    assert (ended.code, ended.stderr) == (0, "")
    return [tool["name"] for tool in json.loads(ended.stdout)]


def refusal(source: str) -> Ended:
    ended = run_here("tools", "--tools", source)
    assert (ended.code, ended.stdout) == (3, "")
    return ended


EVERY_KIND = '''
from pathlib import Path
from textwrap import dedent
from toolwire import BaseTool, ToolParameter, ToolResult, ToolSpec, tool

def last_by_name_first_in_the_file(a: int) -> int:
    """Defined first."""
    return a

class Weather(BaseTool):
    """A tool class."""

    def __init__(self, name="weather"):
        super().__init__(name, "Tells the weather.")

    def get_parameters(self):
        return [ToolParameter(name="city", type="string", description="Where", required=True)]

    async def execute(self, **params):
        return ToolResult(success=True, data="sunny")

class Other(Weather):
    """Represented by its instance."""

@tool(permission="confirm")
def decorated(a: int) -> int:
    """A ToolSpec."""
    return a

def plain(a: int) -> int:
    """Made into a spec of the same name below."""
    return a

plain_spec = ToolSpec.from_function(plain)
other = Other("other")
again = other

async def waits(a: int) -> int:
    """A coroutine function."""
    return a

def _private(a: int) -> int:
    """Not public."""
    return a

def undocumented(a: int) -> int:
    return a

class NoTool:
    """A class of another kind."""

    def method(self):
        """Not asked for."""

no_tool = NoTool()
number = 3
'''


def test_public_functions_are_tools_in_the_order_of_definition(write: Write) -> None:
    source = write("every_kind.py", EVERY_KIND)
    assert names("--tools", source) == [
        "last_by_name_first_in_the_file",
        "weather",
        "decorated",
        "plain",
        "other",
        "waits",
    ]


def test_all_names_what_is_offered_imported_or_not(write: Write) -> None:
    write("elsewhere_all.py", 'def borrowed(a: int) -> int:\n    """Defined elsewhere."""\n    return a\n')
    source = write(
        "with_all.py",
        '''
        from elsewhere_all import borrowed

        __all__ = ["second", "borrowed"]

        def first(a: int) -> int:
            """Left out."""
            return a

        def second(a: int) -> int:
            """Offered."""
            return a
        ''',
    )
    assert names("--tools", source) == ["second", "borrowed"]


def test_a_registry_is_used_alone_with_its_rules(write: Write, program) -> None:
    source = write(
        "with_registry.py",
        '''
        from toolwire import Rule, ToolRegistry

        registry = ToolRegistry(rules=[Rule(effect="deny", tool="pay")])

        @registry.register
        def pay(amount: int) -> str:
            """Pays."""
            return "paid"

        @registry.register(name="look_up")
        def look(word: str) -> str:
            """Looks a word up."""
            return word

        def not_registered(a: int) -> int:
            """Left out."""
            return a
        ''',
    )
    assert names("--tools", source) == ["pay", "look_up"]
    ended = run_here("call", "pay", "amount=3", "--tools", source)
    assert (ended.code, ended.stdout.splitlines()[0].startswith("'pay' may not be run: ")) == (1, True)


def test_several_sources_are_put_together(write: Write, tools: str) -> None:
    other = write("other.py", 'def more(a: int) -> int:\n    """One more."""\n    return a\n')
    assert names("--tools", tools, "--tools", other, "--tools", tools) == ["add", "greet", "more"]


def test_files_of_one_name_in_two_folders_do_not_get_in_each_others_way(write: Write) -> None:
    for folder in ("one", "two"):
        write(f"{folder}/tools.py", f'def {folder}(a: int) -> int:\n    """Tool {folder}."""\n    return a\n')
    first = write("one/tools.py", 'def one(a: int) -> int:\n    """Tool one."""\n    return a\n')
    second = write("two/tools.py", 'def two(a: int) -> int:\n    """Tool two."""\n    return a\n')
    assert names("--tools", first, "--tools", second) == ["one", "two"]


def test_a_file_may_bear_the_name_of_a_standard_module(write: Write) -> None:
    source = write("random.py", 'def dice(sides: int) -> int:\n    """Throws a die."""\n    return sides\n')
    assert names("--tools", source) == ["dice"]


def test_a_file_imports_from_its_own_folder(write: Write) -> None:
    write("beside_it.py", "WORD = 'beside'\n")
    source = write(
        "uses_beside.py", 'from beside_it import WORD\n\ndef say() -> str:\n    """Says it."""\n    return WORD\n'
    )
    assert run_here("call", "say", "--tools", source) == Ended(code=0, stdout="beside\n", stderr="")


def test_a_module_is_found_from_the_current_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("package_here/__init__.py", "")
    write("package_here/tools.py", 'def here(a: int) -> int:\n    """Is here."""\n    return a\n')
    monkeypatch.chdir(tmp_path)
    assert names("--tools", "package_here.tools") == ["here"]


def test_dataclasses_and_late_annotations_of_a_file_are_understood(write: Write) -> None:
    source = write(
        "annotated.py",
        '''
        from __future__ import annotations
        from dataclasses import dataclass

        @dataclass
        class Point:
            x: int
            y: int = 0

        def far(point: Point) -> int:
            """Tells how far."""
            return point.x + point.y
        ''',
    )
    assert run_here("call", "far", 'point={"x": 3}', "--tools", source) == Ended(code=0, stdout="3\n", stderr="")


def test_output_of_an_imported_file_is_not_a_result(write: Write) -> None:
    source = write("talks.py", 'print("loading")\n\ndef quiet() -> int:\n    """Gives 1."""\n    return 1\n')
    assert run_here("call", "quiet", "--tools", source) == Ended(code=0, stdout="1\n", stderr="loading\n")


WHAT_COUNTS = (
    "These count as tools: public functions with a docstring that the module defines itself, ToolSpecs, instances of "
    "BaseTool and its own classes of that kind, or one ToolRegistry. With __all__, only the names in it."
)

ALONE = "Give one of them alone, or name it in __all__."
WHERE_MODULES_ARE = "A file is given with its .py. Modules are looked for in this folder and where Python finds them."
IN_MAIN = 'It ends the process when it is imported: put that under `if __name__ == "__main__":`.'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nothing.py", "import os\n", f"{{}} has no tools\n{WHAT_COUNTS}"),
        (
            "no_docstring.py",
            "def one(a): ...\n\ndef two(a): ...\n",
            f"{{}} has no tools\nWithout a docstring: one, two. {WHAT_COUNTS}",
        ),
        ("syntax.py", "a = 1\ndef f(:\n", "{}, line 2: SyntaxError: invalid syntax"),
        ("raises.py", "\n\nvalue = {}['key']\n", "{}, line 3: KeyError: 'key'"),
        (
            "imports.py",
            "import absent_module_x\n",
            "{}, line 1: ModuleNotFoundError: No module named 'absent_module_x'",
        ),
        (
            "leaves.py",
            "import sys\nsys.exit(7)\n",
            f"{{}}, line 2: SystemExit: 7\n{IN_MAIN}",
        ),
        ("bad_all.py", "__all__ = ['ghost']\n", "bad_all.__all__ names 'ghost', which is not there"),
        (
            "empty_registry.py",
            "from toolwire import ToolRegistry\nregistry = ToolRegistry()\n",
            "the ToolRegistry of {} is empty\nRegister tools in it.",
        ),
        (
            "two_registries.py",
            "from toolwire import ToolRegistry\none = ToolRegistry()\ntwo = ToolRegistry()\n",
            f"there are 2 registries, and each brings rules of its own: {{}}\n{ALONE}",
        ),
        ("notes.txt", "no Python\n", "{} is not a Python file\nGive a file that ends in .py, or the name of a module."),
    ],
)
def test_a_source_that_cannot_be_used_is_said_in_one_message(write: Write, name: str, text: str, message: str) -> None:
    source = write(name, text)
    ended = refusal(source)
    assert ended.stderr == f"toolwire: the tools cannot be loaded: {message.format(source)}\n"


def test_null_bytes_and_other_junk_are_not_python(tmp_path: Path) -> None:
    source = tmp_path / "junk.py"
    source.write_bytes(b"\x00\xff\xfe")
    assert refusal(str(source)).stderr.splitlines()[0].startswith(f"toolwire: the tools cannot be loaded: {source}")


def test_the_file_that_is_wrong_is_named_even_if_another_imports_it(write: Write) -> None:
    broken = write("broken_beside.py", "a = 1\ndef f(:\n")
    source = write("imports_broken.py", "import broken_beside\n")
    assert (
        refusal(source).stderr
        == f"toolwire: the tools cannot be loaded: {broken}, line 2: SyntaxError: invalid syntax\n"
    )


def test_an_error_further_down_is_told_with_both_places(write: Write) -> None:
    beside = write("fails_beside.py", "def work():\n    raise ValueError('too late')\n")
    source = write("calls_beside.py", "import fails_beside\nfails_beside.work()\n")
    assert refusal(source).stderr == (
        f"toolwire: the tools cannot be loaded: {source}, line 2: ValueError: too late (raised in {beside}, line 2)\n"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("absent_file.py", "there is no file absent_file.py"),
        ("some/absent", "there is no file some/absent"),
        (
            "absent_module_y",
            f"there is no module absent_module_y\n{WHERE_MODULES_ARE}",
        ),
        ("json.absent_y", "there is no module json.absent_y"),
        ("no-name", "there is no file no-name, and no module has that name"),
    ],
)
def test_a_source_that_is_not_there_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(source).stderr.startswith(f"toolwire: the tools cannot be loaded: {message}\n")


def test_a_folder_is_not_a_source(tmp_path: Path) -> None:
    assert refusal(str(tmp_path)).stderr == (
        f"toolwire: the tools cannot be loaded: {tmp_path} is a folder\nGive a .py file, or the name of a module.\n"
    )


def test_a_registry_takes_no_other_sources(write: Write, tools: str) -> None:
    registry = write(
        "one_registry.py",
        "from toolwire import ToolRegistry\nregistry = ToolRegistry()\n",
    )
    ended = run_here("tools", "--tools", tools, "--tools", registry)
    assert ended == Ended(
        code=3,
        stdout="",
        stderr=f"toolwire: the tools cannot be loaded: {registry} has a ToolRegistry, which is used alone, with its "
        "rules\nGive it without other --tools, or register the other tools in it.\n",
    )


def test_two_tools_of_one_name_are_an_error(write: Write, tools: str) -> None:
    other = write("same_name.py", 'def add(a: int) -> int:\n    """Another."""\n    return a\n')
    ended = run_here("tools", "--tools", tools, "--tools", other)
    assert (ended.code, ended.stdout) == (3, "")
    assert ended.stderr.startswith(f"toolwire: the tools cannot be loaded: {other}: ")


def test_a_parameter_that_no_model_can_give_is_found_at_once(write: Write) -> None:
    source = write(
        "wants_a_lock.py",
        """
        import threading

        def g(lock: threading.Lock) -> int:
            \"\"\"Wants a lock.\"\"\"
            return 1
        """,
    )
    assert refusal(source).stderr.startswith(
        f"toolwire: the tools cannot be loaded: {source}: tool 'g': parameter 'lock' "
    )


def test_a_tool_class_that_fails_when_it_is_made_is_named_with_its_error(write: Write) -> None:
    source = write(
        "needs_more.py",
        """
        from toolwire import BaseTool

        class Broken(BaseTool):
            def __init__(self):
                raise OSError("no network")

            def get_parameters(self):
                return []

            async def execute(self, **params):
                return None
        """,
    )
    assert refusal(source).stderr == f"toolwire: the tools cannot be loaded: {source}: OSError: no network\n"


def test_a_raw_file_tool_that_is_only_imported_is_refused_and_one_in_all_is_taken(write: Write) -> None:
    source = "from toolwire import view_text_file\n"
    assert "imports a raw file tool" in refusal(write("imported.py", source)).stderr
    assert names("--tools", write("named.py", f"{source}__all__ = ['view_text_file']\n")) == ["view_text_file"]


def test_a_file_that_only_imports_says_how_to_name_its_tools(write: Write) -> None:
    write("hr.py", 'def hire(name: str) -> str:\n    """Hires."""\n    return name\n')
    source = write("front.py", "from pathlib import Path\nfrom typing import cast\n\nfrom hr import *\n")
    ended = run_here("tools", "--tools", source)
    assert (ended.code, 'A tool that it imports counts if __all__ names it: __all__ = ["hire"]. ' in ended.stderr) == (
        3,
        True,
    )
    Path(source).write_text('from hr import *\n\n__all__ = ["hire"]\n')
    assert "hire" in run_here("tools", "--tools", source).stdout


def test_many_imported_functions_are_named_in_part(write: Write) -> None:
    write("many.py", "\n".join(f'def f{n}() -> int:\n    """F."""\n    return {n}\n' for n in range(7)))
    ended = run_here("tools", "--tools", write("front.py", "from many import *\n"))
    assert '__all__ = ["f0", "f1", "f2", "f3", "f4", ...]. ' in ended.stderr


def test_what_python_and_toolwire_bring_is_not_proposed_as_a_tool(write: Write) -> None:
    ended = run_here("tools", "--tools", write("front.py", "from textwrap import dedent\nfrom toolwire import tool\n"))
    assert (ended.code, "__all__ = [" in ended.stderr) == (3, False)
