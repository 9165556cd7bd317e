"""The fourteen ways in which replies go wrong, each as a function from a reply's meaning to its damaged text."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.protocols.replies import Written, lines_of, program, text_of, written

PROSE = (
    "Sure! Here is what I'll do.\n",
    "好的，我来处理：\n",
    "# Plan\n\n- search\n- read\n\n",
    'It\'s "easy" & done: x = 1, [see below]\n\n',
    "```python\nprint('not this')\n```\n",
)


def fenced(reply: Written, chance: random.Random) -> str:
    mark = chance.choice(["```", "```", "````", "~~~"])
    before = chance.choice(["", "", *PROSE])
    after = chance.choice(["", "\n", "\nThat is all; don't worry.\n"])
    return f"{before}{mark}{chance.choice(['toml', 'TOML', '', 'attp'])}\n{text_of(reply)}{mark}{after}"


def prose_around(reply: Written, chance: random.Random) -> str:
    before, after = chance.choice(["", *PROSE]), chance.choice(PROSE)
    return f"{before}{text_of(reply)}{chance.choice(['', chr(10)])}{after}"


def thinking(reply: Written, chance: random.Random) -> str:
    draft = chance.choice(["Let me see... it's easy.", text_of(written(chance)), "```toml\nx = 1\n```"])
    opening = "<think>" if "[tool_call]" in draft or chance.random() < 0.8 else ""
    return f"{opening}\n{draft}\n</think>{chance.choice(['', chr(10), chr(10) * 2])}{text_of(reply)}"


def byte_order_mark(reply: Written, chance: random.Random) -> str:
    return f"\ufeff{text_of(reply)}"


def crlf(reply: Written, chance: random.Random) -> str:
    return text_of(reply).replace("\n", "\r\n")


def triple_quotes_inside(reply: Written, chance: random.Random) -> str:
    if reply.message is not None:
        return (
            text_of(replace(reply, thought='Say """no""" to it.'))
            .replace('\\"', '"')
            .replace('= "Say', '= """Say')
            .replace('it."', 'it."""')
        )
    return "".join((lines_of(reply) | {"code": f"code = '''\n{reply.code}'''\n"}).values())


def unclosed_end(reply: Written, chance: random.Random) -> str:
    text = text_of(reply)
    cut = text[: max(text.rindex(quote) for quote in ("'''", '"""', '"') if quote in text)]
    return f"```toml\n{cut}```\n" if cut.endswith("\n") and chance.random() < 0.3 else cut


def wrong_escapes(reply: Written, chance: random.Random) -> str:
    lines = lines_of(reply)
    if reply.code is not None and '"""' not in reply.code:
        text = "".join((lines | {"code": f'code = """\n{reply.code}"""\n'}).values())
        if not is_toml(text):
            return text
    return "".join((lines | {"thought": 'thought = "in C:\\Users\\data, by \\d+"\n'}).values())


def curly_quotes(reply: Written, chance: random.Random) -> str:
    lines = lines_of(reply) | {
        "thought": f"thought = “{reply.thought}”\n",
        "status": lines_of(reply)["status"].replace('"', "”"),
    }
    if reply.code is not None and "\\" not in reply.code:
        lines["code"] = chance.choice(["code = ‘’’\n{}’’’\n", "code = “““\n{}”””\n", "code = '''\n{}'''\n"]).format(
            reply.code
        )
    return "".join(lines.values())


def keys_swapped_or_missing(reply: Written, chance: random.Random) -> str:
    lines = lines_of(reply)
    match chance.randrange(5):
        case 0:
            keys = [key for key in lines if key != "header"]
            chance.shuffle(keys)
            return lines["header"] + "".join(lines[key] for key in keys)
        case 1:
            del lines[chance.choice([key for key in lines if key not in ("code", "message")])]
        case 2:
            return "".join(lines[key] for key in lines if key != "header").replace("\nstatus", "\ntool_call.status", 1)
        case 3:
            return "".join(lines[key] for key in sorted(lines, key=lambda key: key == "header"))
        case _:
            lines["header"] = chance.choice(
                ["[Tool_Call]\n", "[[tool_call]]\n", "[tool call]\n", "[toolcall]\n", "<tool_call>\n"]
            )
            lines["status"] = lines["status"].replace("status", chance.choice(["Status", "STATUS", "status"]))
    return "".join(lines.values())


def two_documents(reply: Written, chance: random.Random) -> str:
    """The first counts alone: the second is cut off, or an example that the model made up goes before it."""
    second = text_of(written(chance))
    half = second[: len(second) // 2]
    between = chance.choice(["\n", "\nRequest: Another one.\nReply:\n", "\n请求：再来一次。\n回复：\n"])
    return text_of(reply) + between + (half if between == "\n" else chance.choice([half, second]))


def odd_status(reply: Written, chance: random.Random) -> str:
    words = ["ok", "Success", "SUCCEEDED", "成功"] if reply.message is None else ["failed", "Fail", "error", "失败"]
    if chance.random() < 0.1:
        words = ["pending"]
    lines = lines_of(reply)
    return "".join((lines | {"status": f'status = "{chance.choice(words)}"\n'}).values())


def success_without_code(reply: Written, chance: random.Random) -> str:
    lines = lines_of(reply) | {"status": 'status = "success"\n'}
    lines.pop("code", None)
    return "".join(lines.values()) + chance.choice(["", "code = ''\n", "code = '''\n\n'''\n"])


def fail_with_code(reply: Written, chance: random.Random) -> str:
    lines = lines_of(reply)
    code = f"code = '''\n{program(chance)}'''\n"
    return (
        "".join(lines.values()) + code
        if reply.message is not None
        else text_of(replace(reply, code=None, message="no")) + code
    )


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class Damage:
    """A damage, and of 50 replies how many at least are recovered rather than refused."""

    make: Callable[[Written, random.Random], str]
    recovered: int
    triple: bool = False
    """Whether its programs hold '''."""
    fails: bool | None = None
    """Whether its replies are failures; None: some are."""


DAMAGES = (
    Damage(make=fenced, recovered=50),
    Damage(make=prose_around, recovered=50),
    Damage(make=thinking, recovered=50),
    Damage(make=byte_order_mark, recovered=50),
    Damage(make=crlf, recovered=50),
    Damage(make=triple_quotes_inside, recovered=50, triple=True),
    Damage(make=unclosed_end, recovered=50, fails=False),
    Damage(make=wrong_escapes, recovered=45),
    Damage(make=curly_quotes, recovered=50),
    Damage(make=keys_swapped_or_missing, recovered=50),
    Damage(make=two_documents, recovered=50),
    Damage(make=odd_status, recovered=40),
    Damage(make=success_without_code, recovered=0),
    Damage(make=fail_with_code, recovered=0),
)
