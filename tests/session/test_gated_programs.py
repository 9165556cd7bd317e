"""Whatever way a program takes to a tool, each of its calls is judged."""

from __future__ import annotations

import pytest

from tests.session.till import Till, program
from toolwire import Rule, Session, ToolRegistry, ToolSpec
from toolwire.definition.tool import Permission

CALLS = 40
CAUGHT = "\ndef tried(call, *given):\n    try:\n        call(*given)\n    except ToolError:\n        pass\n"
WAYS = {
    "a loop": "for n in range({calls}):\n    tried(pay, n)",
    "while": "n = 0\nwhile n < {calls}:\n    tried(pay, n)\n    n += 1",
    "a comprehension": "[tried(pay, n) for n in range({calls})]",
    "map": "list(map(lambda n: tried(pay, n), range({calls})))",
    "another name": "harmless = price = pay\nfor n in range({calls}):\n    tried(harmless, n)",
    "in a list": "tools = [pay]\nfor n in range({calls}):\n    tried(tools[0], n)",
    "in a dict": "tools = {{'p': pay}}\nfor n in range({calls}):\n    tried(tools['p'], n)",
    "a default": "def go(n, call=pay):\n    call(n)\nfor n in range({calls}):\n    tried(go, n)",
    "a class": "class P:\n    call = staticmethod(pay)\nfor n in range({calls}):\n    tried(P.call, n)",
    "a generator": "def go():\n    for n in range({calls}):\n        yield tried(pay, n)\nfor _ in go():\n    pass",
    "by keywords": "for n in range({calls}):\n    tried(lambda n: pay(**{{'amount': n, 'to': 'thief'}}), n)",
    "an error": "for n in range({calls}):\n    try:\n        1 / 0\n    except Exception:\n        tried(pay, n)",
    "gather": "import asyncio\nawait asyncio.gather(*(pay(n) for n in range({calls})), return_exceptions=True)",
    "getattr": "for n in range({calls}):\n    tried(getattr(pay, '__call__'), n)",
    "sorted": "sorted(range({calls}), key=lambda n: tried(pay, n) or n)",
    "an object": "class P:\n    def __getattr__(self, _):\n        return pay\nfor n in range({calls}):\n"
    "    tried(P().x, n)",
}
KINDS = {"confirm": "approval_required", "deny what it is given": "denied"}
RULES: dict[str, tuple[Permission, list[Rule]]] = {
    "confirm": ("confirm", []),
    "deny what it is given": (
        "auto",
        [Rule(effect="deny", tool="pay", when=[{"path": "/arguments/amount", "op": ">=", "value": 0}])],
    ),
}


async def gated(way: str, permission: Permission, rules: list[Rule]) -> tuple[Till, list[str]]:
    """The till after the program, and how each of its calls ended."""
    till, registry = Till(), ToolRegistry(rules=rules)
    log = registry.enable_logging()
    registry.register(ToolSpec.from_function(till.pay, permission=permission))
    await Session(registry, protocol="attp").turn(program(CAUGHT + WAYS[way].format(calls=CALLS)))
    return till, [entry.status for entry in log.get_entries() if entry.tool_name == "pay"]


@pytest.mark.threat(15)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", WAYS)
async def test_every_call_of_a_program_is_judged_whatever_way_it_takes(way: str, rule: str) -> None:
    permission, rules = RULES[rule]
    till, ended = await gated(way, permission, rules)
    assert (till.paid, len(ended), set(ended)) == ([], CALLS, {KINDS[rule]})


@pytest.mark.threat(15)
@pytest.mark.parametrize("way", WAYS)
async def test_where_nothing_asks_each_of_these_ways_reaches_the_tool(way: str) -> None:
    """The control."""
    till, _ = await gated(way, "auto", [])
    assert sorted(till.paid) == list(range(CALLS))


def test_they_are_a_thousand_calls_and_more() -> None:
    assert len(WAYS) * len(RULES) * CALLS >= 1_000
