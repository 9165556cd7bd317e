"""Reading a reply takes time in proportion to its length, whatever it holds. Measured in processor time."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest

from tests.processor import LINEAR, growth, milliseconds, ratio, thread_s
from toolwire.protocols import get

ATTP = get("attp")
HEAD = 'thought = "t"\n[tool_call]\nstatus = "success"\ntarget = "g"\n'
SIZE = 65_536
LIMIT_MS = 100

PUMPS: dict[str, Callable[[int], str]] = {
    "prose": lambda size: "it's one word. " * (size // 15),
    "spaces": lambda size: " " * size + "x",
    "nesting": lambda size: HEAD + "x = " + "[" * size,
    "dotted keys": lambda size: (".".join(["a"] * 60) + " = 1\n") * (size // 123),
    "digits": lambda size: HEAD + "x = [" + "1 " * (size // 2),
    "comments": lambda size: "#\n" * (size // 2),
    "fences": lambda size: f"```toml\n{HEAD}code = '''\nx\n" + "```\n" * (size // 4),
    "thinking": lambda size: "<think></think>" * (size // 15) + HEAD,
    "triple quotes": lambda size: HEAD + "code = '''\n" + "'''\n" * (size // 4),
    "escapes": lambda size: HEAD + 'code = """\n' + "\\n" * (size // 2) + '\\d"""\n',
    "keys": lambda size: HEAD + "status = \n" * (size // 10),
    "unclosed programs": lambda size: HEAD + "code = '''\n" + "x\n" * (size // 8) + "__result__ = x\n",
}


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_four_times_the_text_takes_about_four_times_the_time(pump: Callable[[int], str]) -> None:
    assert growth(ATTP.parse, pump(SIZE // 4), pump(SIZE)) <= LINEAR


@pytest.mark.threat(46)
@pytest.mark.parametrize("pump", PUMPS.values(), ids=PUMPS)
def test_the_worst_text_is_read_in_time(pump: Callable[[int], str]) -> None:
    text = pump(SIZE)
    assert milliseconds(lambda: ATTP.parse(text), enough=LIMIT_MS) <= LIMIT_MS


def test_a_clean_reply_takes_little_more_than_its_toml() -> None:
    # 2.0 to 2.1 at rest; 1.5 times that is the least limit that holds beside other work.
    reply = HEAD + "code = '''\n" + "row = search('x')\n" * 50 + "'''\n"

    def read() -> float:
        return thread_s(lambda: [ATTP.parse(reply) for _ in range(50)])

    def read_as_toml() -> float:
        return thread_s(lambda: [tomllib.loads(reply) for _ in range(50)])

    assert ratio(read, read_as_toml, enough=3.1) <= 3.1
