"""toolwire's objects as a developer sees them: `repr`, notebooks, `len`, `in` and iteration."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire import BindingError, BoundValueError, Session, Store, Toolkit, ToolRegistry, ToolResult, ToolSpec
from toolwire.vocabulary.html_display import CELL_LIMIT, html_table

SECRET = "s-3cr3t " * 100
SCRIPT = "<script>alert(1)</script>"


def pay(amount: int, note: str = "") -> int:
    """Pays."""
    return amount


def look(thing: str) -> str:
    """Looks."""
    return thing


def test_a_registry_and_a_toolkit_are_containers_of_names() -> None:
    registry = ToolRegistry()
    assert (len(registry), bool(registry), list(registry)) == (0, True, [])
    registry.register(pay)
    registry.register(look)
    toolkit = Toolkit("helper")
    assert bool(toolkit)
    toolkit.add_tool(pay)
    assert (len(registry), list(registry)) == (2, ["pay", "look"])
    assert "pay" in registry
    assert "send" not in registry
    assert (len(toolkit), list(toolkit), "pay" in toolkit, "look" in toolkit) == (1, ["pay"], True, False)
    assert list(toolkit) == list(toolkit.tools)


def test_a_registry_may_change_while_its_names_are_read() -> None:
    registry = ToolRegistry()
    registry.register(pay)
    for _ in registry:
        registry.register(look, replace=True)
    assert len(registry) == 2


async def test_objects_show_themselves_in_one_line_without_arguments(tmp_path: Path) -> None:
    reply = {
        "role": "assistant",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "pay", "arguments": '{"amount": 5, "note": "' + SECRET + '"}'},
            }
        ],
    }
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        registry = ToolRegistry()
        registry.register(pay)
        session = Session(registry, protocol="openai", permissions={"pay": "confirm"}, store=store)
        turn = await session.turn(reply)
        assert turn.suspended is not None
        done = await Session([pay], protocol="openai").turn(reply)
        final = await session.turn({"role": "assistant", "content": SECRET})
        shown = [repr(each) for each in (registry, session, store, turn, turn.suspended, done, final, Toolkit("a"))]
    assert shown[:2] == ["<ToolRegistry: 1 tool>", "<Session 'openai': 1 tool, with a store>"]
    assert f"<Suspended {turn.suspended.run_id!r}: 1 pending, pay>" in shown
    assert "<Turn: 1 result, 0 failed>" in shown
    assert all("\n" not in line and len(line) < 200 for line in shown)
    assert not any("note" in line for line in shown)
    assert repr(store).endswith(" closed>")


async def test_a_turn_that_was_refused_says_so() -> None:
    turn = await Session([pay]).turn("[tool_call]\nstatus = success")
    assert turn.reply.is_refused
    assert repr(turn) == "<Turn refused: see reply.problems>"


def test_a_notebook_shows_texts_escaped() -> None:
    registry = ToolRegistry()
    registry.register(look)
    log = registry.enable_logging()
    result = registry.invoke("look", {"thing": SCRIPT})
    for shown in (result._repr_html_(), log._repr_html_(), log.get_entries()[0]._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown
    assert SCRIPT not in ToolResult(success=False, error=SCRIPT)._repr_html_()


def test_a_notebook_shows_rows_of_the_durable_log_escaped(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/log.db") as store:
        registry = ToolRegistry()
        registry.enable_logging(store=store)
        registry.register(look)
        registry.invoke("look", {"thing": SCRIPT})
        shown = store.log()[0]._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_long_cell_is_cut_and_says_so() -> None:
    assert "more characters" not in html_table([("text", "x" * CELL_LIMIT)])
    assert "1 more character" in html_table([("text", "x" * (CELL_LIMIT + 1))])


def test_a_wrong_bound_value_can_be_caught_by_its_class() -> None:
    spec = ToolSpec.from_function(pay).bind("note")
    assert issubclass(BoundValueError, BindingError)
    with pytest.raises(BoundValueError):
        Session([spec], protocol="xml", state={"note": 5}).run_turn(
            "<tool_call><name>pay</name><params><amount>1</amount></params></tool_call>"
        )
