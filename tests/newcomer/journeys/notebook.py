# pip install toolwire nbclient ipykernel
"""A notebook, cell by cell: tools, a turn, a program, and a call that the person at the notebook may allow."""

# %%
from toolwire import Session, ToolRegistry
from toolwire.approvals import console_approver

registry = ToolRegistry(approver=console_approver)


@registry.register
def rows(table: str) -> list[dict[str, int]]:
    """Reads all rows of a table."""
    return [{"id": number, "size": number * len(table)} for number in range(3)]


@registry.register(permission="confirm")
def drop(table: str) -> str:
    """Drops a table."""
    return f"dropped {table}"


registry

# %%
registry.run_program("print('sizes'); [row['size'] for row in rows('sales')]")

# %%
session = Session(registry, protocol="xml")
ask = "<tool_call><name>rows</name><params><table>sales</table></params></tool_call>"
await session.turn(ask)

# %%
session.run_turn(ask).results[0].data

# %%
registry.invoke("drop", {"table": "sales"})
