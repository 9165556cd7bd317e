"""Replies made by chance from a seed: programs with every kind of quote, backslash, script and layout."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass

THOUGHTS = (
    "Search, then read what was found.",
    "用户想搜索“Python异步编程”，只需要一次调用。",
    "1. Request: find it\n2. Tools: search\n3. Check: listed\n4. Plan: one call\n",
    "It's a 'quoted' thought; 100% sure # not a comment",
)
TARGETS = ("Find the page", "搜索Python异步编程相关内容", "it's one call", "a = b, [c]")
MESSAGES = ("No tool deletes files. Use the shell instead.", "没有这样的工具，请手动完成。", "it's not possible # here")

PIECES = (
    'rows = search("Python异步编程", limit=3)\n',
    "# a comment with 'quotes', \"quotes\" and [tool_call]\n",
    "names = {'a': 1, \"b\": [1, 2, {'c': None}]}\n",
    "for row in [1, 2, 3]:\n    if row > 1:\n        print(f\"row {row!r}: {'x' * row}\")\n",
    "path = r'C:\\Users\\new' + \"\\n\" + '\\\\'\n",
    "digits = re.findall(r'\\d+\\s', text)\n",
    'def first(items):\n    """The first item.\n\n    \'Nothing\' else.\n    """\n    return items[0]\n',
    'quote = "it\'s"\n',
    "empty = '' + \"\"\n",
    "引号 = '“你好”，‘世界’'\n",
    "\n\n",
    "try:\n    read('/tmp/x')\nexcept FileNotFoundError as error:\n    print(error)\n",
    "table = [\n    [1, 2],\n\n    [3, 4],\n]\n",
    "tab = '\t' + '\\t'\n",
    "long = 1 + \\\n    2\n",
    'status = "ready"\ntarget = status\n',
    'note = """two\nlines"""\n',
    "emoji = '🙂' * 3  # ```\n",
)
TRIPLES = (
    "page = '''one\ntwo'''\n",
    "def last(items):\n    '''The last item.'''\n    return items[-1]\n",
    "text = ('''\nline = 1\n''')\n",
    "query = f'''select {1}\nfrom \"t\" '''\nprint(query)\n",
    "empty = ''''''\n",
    "'''\nA remark in quotes of its own.\n'''\n",
)
RESULTS = (
    "__result__ = rows\n",
    '__result__ = {"rows": len(rows), "first": rows[0]}\n',
    "__result__ = [row['title'] for row in search('中文')]\n",
    '__result__ = search("it\'s")\n',
)
RESULTS_BY_PARTS = (
    "__result__ = []\nfor row in rows:\n    __result__.append(row)\n",
    "__result__ = {}\n__result__['n'] = len(rows)\n",
    "print(rows)\n",
    "rows\n",
)


@dataclass(frozen=True, kw_only=True)
class Written:
    """The meaning of a reply."""

    thought: str
    target: str = ""
    code: str | None = None
    message: str | None = None


def program(chance: random.Random, *, triple: bool = False, whole: bool = True) -> str:
    """A program that compiles; `triple`: with ''' in it; `whole`: it ends by assigning its result, once."""
    while True:
        pieces = chance.sample(PIECES, chance.randint(0, 4))
        if triple:
            pieces += chance.sample(TRIPLES, chance.randint(1, 2))
        chance.shuffle(pieces)
        code = "".join(pieces) + chance.choice(RESULTS if whole else RESULTS_BY_PARTS)
        try:
            ast.parse(code)
        except SyntaxError:
            continue
        return code


def written(chance: random.Random, *, triple: bool = False, whole: bool = True, fails: bool | None = None) -> Written:
    thought = chance.choice(THOUGHTS)
    if chance.random() < 0.2 if fails is None else fails:
        return Written(thought=thought, message=chance.choice(MESSAGES))
    return Written(thought=thought, target=chance.choice(TARGETS), code=program(chance, triple=triple, whole=whole))


def basic(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def thought_of(reply: Written) -> str:
    return f'"""\n{reply.thought}"""' if "\n" in reply.thought else basic(reply.thought)


def block(code: str) -> str:
    """The code as TOML holds it."""
    if "'''" not in code and not code.endswith("'"):
        return f"'''\n{code}'''"
    escaped = code.replace("\\", "\\\\").replace('"""', '""\\"')
    return f'"""\n{escaped}"""'


def lines_of(reply: Written) -> dict[str, str]:
    """The reply's keys, in their order, each with its line or lines."""
    lines = {"thought": f"thought = {thought_of(reply)}\n\n", "header": "[tool_call]\n"}
    if reply.message is not None:
        return lines | {"status": 'status = "fail"\n', "message": f"message = {basic(reply.message)}\n"}
    assert reply.code is not None
    return lines | {
        "status": 'status = "success"\n',
        "target": f"target = {basic(reply.target)}\n",
        "code": f"code = {block(reply.code)}\n",
    }


def text_of(reply: Written) -> str:
    """The reply, undamaged."""
    return "".join(lines_of(reply).values())
