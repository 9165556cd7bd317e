"""The modules that a program may import: all of them by default, fewer where the host says so."""

from __future__ import annotations

import re
import statistics
import sys
import uuid
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.programs import TOOLS, Runner, answer, parameter
from toolwire import ConfigurationError, Session, ToolRegistry
from toolwire.sandbox.child.world import dates
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Program, ProgramTool, require_modules
from toolwire.sandbox.report import ProgramResult
from toolwire.vocabulary.calls import MORE_MODULES, PROGRAM_MODULES

NARROW = ("json", "math")


def narrowed(sandbox: Sandbox, source: str, *, source_checks: bool = True) -> ProgramResult:
    modules = require_modules(NARROW)
    return sandbox.run(Program(source=source, tools=TOOLS, modules=modules, source_checks=source_checks), answer)


@pytest.mark.requirement("ptc.limit.modules")
@pytest.mark.parametrize("name", PROGRAM_MODULES)
def test_a_module_is_there_with_an_import_and_without(run: Runner, name: str) -> None:
    assert run(f"{name}.__name__").value == name
    assert run(f"import {name} as it\nfrom {name} import *\nit.__name__").value == name


OTHERS = (
    *("os", "sys", "subprocess", "socket", "ctypes", "pathlib", "importlib", "builtins", "inspect", "pickle"),
    *("secrets", "threading", "os.path", "concurrent.futures", "collections.nothing", "gc", "signal", "shutil"),
)


@pytest.mark.requirement("ptc.limit.modules")
@pytest.mark.parametrize("name", OTHERS)
def test_another_module_cannot_be_imported(run: Runner, name: str) -> None:
    refused = run(f"import {name}").error
    assert refused is not None
    assert (refused.type, f"`import {name}`" in refused.message) == ("SourceRefused", True)
    # The program's own importer refuses what escapes the checks on the source.
    hidden = run(f"globals()['__builtins__']['__import__']({name!r}, fromlist=('x',))").error
    assert hidden is not None
    assert (hidden.type, f"cannot import {name!r}" in hidden.message) == ("ImportError", True)


def test_a_name_that_a_module_lacks_is_refused_without_the_path_of_the_library(run: Runner) -> None:
    missing = run("from statistics import nope").error
    assert missing is not None
    assert (missing.type, missing.message) == ("ImportError", "cannot import name 'nope' from 'statistics'")
    there = run("mode_of = max\nfrom statistics import mode_of").error
    assert there is not None
    assert there.message == "cannot import name 'mode_of' from 'statistics': 'mode_of' is there without an import"
    # The control: the module's own names, and the path that Python's error would show.
    assert run("from statistics import mean\nmean([1, 3])").value == 2
    with pytest.raises(ImportError, match=re.escape(str(statistics.__file__))):
        exec("from statistics import nope")


def test_a_tool_or_a_variable_of_its_name_hides_a_module(shared_sandbox: Sandbox) -> None:
    copy = ProgramTool(name="copy", program_name="copy", parameters=(parameter("value"),))
    result = shared_sandbox.run(Program(source="time = 5\n[copy('x'), time]", tools=(copy,)), answer)
    assert result.value == ["x", 5]


def test_the_programs_names_do_not_show_modules_that_it_did_not_import(run: Runner) -> None:
    assert sorted(set(run("import csv\ndir()").value) & set(MORE_MODULES)) == ["csv"]


def test_io_is_what_needs_no_file(run: Runner) -> None:
    assert run("[name for name in dir(io) if name[0] != '_']").value == ["BytesIO", "StringIO"]
    error = run("import io\nio.open('x')").error
    assert error is not None
    assert (error.type, error.hint) == ("AttributeError", "`io` has no `open`.")


def test_a_time_stamped_identity_does_not_hold_the_hardware_address(run: Runner) -> None:
    value = run("import uuid\n[uuid.getnode(), uuid.uuid1().node, uuid.getnode()]").value
    assert value[0] == value[1] == value[2] != uuid.getnode()
    # A node that was drawn at random has this bit set.
    assert value[0] >> 40 & 1


def test_two_programs_have_other_identities(run: Runner) -> None:
    first, second = (run("import uuid\n[str(uuid.uuid1()), str(uuid.uuid4())]").value for _ in range(2))
    assert set(first).isdisjoint(second)


# The guest has those of the tzdata package, of another day.
@pytest.mark.of_processes
def test_all_zones_of_the_machine_are_there_and_right(run: Runner) -> None:
    keys = sorted(zoneinfo.available_timezones())
    source = "[[str(datetime(2031, m, 5, tzinfo=zoneinfo.ZoneInfo(key)).utcoffset()) for m in (1, 7)] for key in KEYS]"
    result = run(f"KEYS = {keys!r}\n{source}\n{{'keys': sorted(zoneinfo.available_timezones()), 'offsets': {source}}}")
    names: dict[str, Any] = {"KEYS": keys, "zoneinfo": zoneinfo, "datetime": __import__("datetime").datetime}
    assert result.value == {"keys": keys, "offsets": eval(source, names)}


def test_a_zone_that_is_not_there_is_not_found_and_no_path_is_followed(run: Runner) -> None:
    for key, kind in (("Mars/Base", "ZoneInfoNotFoundError"), ("../etc/passwd", "ValueError")):
        error = run(f"import zoneinfo\nzoneinfo.ZoneInfo({key!r})").error
        assert error is not None
        assert error.type == kind


@pytest.fixture
def started() -> Any:
    """Starts a sandbox whose zygote reads the zones anew."""
    opened: list[Sandbox] = []

    def start() -> Sandbox:
        opened.append(Sandbox())
        return opened[-1]

    yield start
    for sandbox in opened:
        sandbox.close()


def test_zones_of_the_tzdata_package_count_where_the_machine_has_none(
    started: Callable[[], Sandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paris = next(Path(place, "Europe/Paris") for place in zoneinfo.TZPATH if Path(place, "Europe/Paris").exists())
    folder = tmp_path / "tzdata" / "zoneinfo" / "Test"
    folder.mkdir(parents=True)
    (tmp_path / "tzdata" / "__init__.py").touch()
    (folder / "Place").write_bytes(paris.read_bytes())
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    # Another package may have brought tzdata: an empty one stands before it.
    (tmp_path / "empty" / "tzdata").mkdir(parents=True)
    (tmp_path / "empty" / "tzdata" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "tzdata", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "empty")
    without = started()
    source = "import zoneinfo\n[list(zoneinfo.available_timezones()), str(zoneinfo.ZoneInfo('Test/Place'))]"
    missing = without.run(Program(source=source), answer)
    assert missing.isolation.report["warm_up"] == "without time zones (the tzdata package, or the system's database)"
    monkeypatch.syspath_prepend(tmp_path)
    assert started().run(Program(source=source), answer).value == [["Test/Place"], "Test/Place"]


def test_only_files_of_zones_are_read_and_the_first_folder_counts(tmp_path: Path) -> None:
    for place, content in {
        "one/A/B": b"TZif one", "one/C": b"text", "one/posixrules": b"TZif", "one/right/C": b"TZif",
        "two/A/B": b"TZif two", "two/D": b"TZif",
    }.items():  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(content)
    (tmp_path / "two" / "nowhere").symlink_to("/nowhere")
    assert dates.read_zones([f"{tmp_path}/one/", f"{tmp_path}/two", f"{tmp_path}/three"]) == {
        "A/B": b"TZif one",
        "D": b"TZif",
    }


AS_DATA = {
    "import uuid\nuuid.UUID(int=1)": "00000000-0000-0000-0000-000000000001",
    "from enum import Enum\nclass Color(Enum):\n    RED = ('r', 1)\n[Color.RED]": [("r", 1)],
    "from dataclasses import dataclass\n@dataclass(slots=True)\nclass P:\n    x: int\n    y: list\nP(1, [P(2, [])])": {
        "x": 1,
        "y": [{"x": 2, "y": []}],
    },
    "import itertools\nitertools.chain([1], itertools.islice(itertools.count(5), 2))": [1, 5, 6],
    "import itertools\nitertools.accumulate([1, 2, 3])": [1, 3, 6],
    "import collections\n[collections.Counter('aa'), collections.deque([1])]": [{"a": 2}, [1]],
}


@pytest.mark.parametrize(("source", "value"), AS_DATA.items())
def test_values_made_by_modules_leave_the_program_as_data(run: Runner, source: str, value: Any) -> None:
    lines = source.splitlines()
    assert run("\n".join([*lines[:-1], f"__result__ = {lines[-1]}"])).value == value
    assert run("\n".join([*lines[:-1], f"echo({lines[-1]})"])).value == value


@pytest.mark.parametrize("value", ["fractions.Fraction(1, 3)", "dataclasses.dataclass(type('P', (), {}))", "math"])
def test_a_value_that_is_not_data_is_refused_by_its_type(run: Runner, value: str) -> None:
    error = run(f"__result__ = {value}").error
    assert error is not None
    assert (error.type, error.message.split(" holds ")[0]) == ("TypeError", "__result__")


# -- fewer of them ---------------------------------------------------------------------------------------------------


def test_with_fewer_modules_the_others_are_refused_and_those_are_there(shared_sandbox: Sandbox) -> None:
    assert narrowed(shared_sandbox, "import json\nfrom math import floor\n[json.loads('1'), floor(2.5)]").value == [
        1,
        2,
    ]
    error = narrowed(shared_sandbox, "import collections").error
    assert error is not None
    assert "There without import: math, json, asyncio." in error.traceback
    for name in set(PROGRAM_MODULES) - {*NARROW, "asyncio"}:
        missing = narrowed(shared_sandbox, f"{name}.x").error
        assert missing is not None
        assert (missing.type, missing.hint) == (
            "NameError",
            f"This program may not use `{name}`. It may use math, json, asyncio.",
        )


def test_with_fewer_modules_the_importer_refuses_their_parts_too(shared_sandbox: Sandbox) -> None:
    for name in ("collections", "collections.abc", "datetime"):
        error = narrowed(shared_sandbox, f"globals()['__builtins__']['__import__']({name!r})").error
        assert error is not None
        assert error.message == f"a program cannot import {name!r}; it has math, json, asyncio without import"


def test_async_code_goes_on_whatever_the_modules(shared_sandbox: Sandbox) -> None:
    source = "import asyncio\nawait asyncio.gather(add(1, 2), add(3, 4))"
    assert narrowed(shared_sandbox, source).value == [3, 7]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["math", "os"], f"modules: a program cannot use 'os'; choose among {', '.join(PROGRAM_MODULES)}"),
        ("math", "modules='math': give a list of names, such as ['math', 'json']"),
    ],
)
def test_an_unknown_module_is_the_hosts_mistake(names: Any, message: str) -> None:
    registry = ToolRegistry()
    for use in (
        lambda: registry.run_program("1", modules=names),
        lambda: registry.enable_code_execution(modules=names),
        lambda: Session([], modules=names),
    ):
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert str(caught.value) == message


def test_modules_come_in_their_usual_order_once_and_none_means_all() -> None:
    assert require_modules(["re", "math", "re"]) == ("math", "re", "asyncio")
    assert require_modules([]) == ("asyncio",)
    assert require_modules(None) == PROGRAM_MODULES


def test_fewer_modules_can_be_given_for_a_program_a_registry_and_a_session() -> None:
    registry = ToolRegistry()
    source = "try:\n    found = collections.Counter('aa')\nexcept NameError:\n    found = 'none'\nfound"
    assert registry.run_program(source).value == {"a": 2}
    assert registry.run_program(source, modules=NARROW).value == "none"
    registry.enable_code_execution(modules=NARROW)
    assert registry.invoke("code_execution", {"code": source}).text == "none"
    code = registry.get_tool("code_execution")
    assert code is not None
    assert "Modules that it may import: math json asyncio." in code.description


def test_the_prompt_names_the_modules_that_programs_may_use() -> None:
    registry = ToolRegistry()
    whole = f"There without import: {' '.join(PROGRAM_MODULES)}."
    few = "There without import: math json asyncio."
    assert whole in str(Session(registry).instructions)
    assert few in str(Session(registry, modules=NARROW).instructions)
    registry.enable_code_execution(modules=NARROW)
    # A session that gives no modules keeps those that the registry gave.
    for session in (Session(registry), Session(registry, min_isolation="kernel")):
        assert few in str(session.instructions)
    assert whole in str(Session(registry, modules=PROGRAM_MODULES).instructions)
    (told,) = Session(registry, protocol="openai").instructions
    assert "Modules that it may import: math json asyncio." in str(told)
