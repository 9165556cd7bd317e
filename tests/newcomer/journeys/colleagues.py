# pip install 'toolwire[mcp]'
"""Functions for colleagues: their MCP clients start this file. Orders wait until the person there agrees."""

from typing import Literal

from toolwire import ToolServer, tool


@tool
def stock(title: str) -> int:
    """Counts the copies of a book in the warehouse.

    Args:
        title: The title, as on its cover
    """
    return {"Emma": 4, "Dune": 0}[title]


@tool(permission="confirm")
def order(title: str, copies: int = 1, speed: Literal["slow", "fast"] = "slow") -> str:
    """Orders copies of a book.

    Args:
        title: The title, as on its cover
        copies: How many
        speed: How fast it comes
    """
    return f"ordered {copies} x {title}, {speed}"


if __name__ == "__main__":
    ToolServer([stock, order], "warehouse", store="sqlite:///orders.db").run_stdio()
