"""Six small MCP servers; the name of one is this program's argument."""

import sys
from typing import Any

from mcp.server import MCPServer

STOCK = {"Emma": 4, "Dune": 2}


def price(book: str) -> int:
    """Looks up the price of a book."""
    return {"Emma": 7, "Dune": 9}[book]


def count(book: str) -> int:
    """Counts the copies of a book in the warehouse."""
    return STOCK[book]


def stars(book: str) -> int:
    """Averages what readers say about a book."""
    return len(book)


def send(to: str, text: str) -> str:
    """Sends a mail."""
    return f"to {to}: {text}"


def add(text: str) -> str:
    """Keeps a note."""
    return f"note 1: {text}"


def today() -> str:
    """Gives the date of today."""
    return "2026-03-01"


TOOLS: dict[str, Any] = {
    "shop": price,
    "stock": count,
    "reviews": stars,
    "mail": send,
    "notes": add,
    "calendar": today,
}

if __name__ == "__main__":
    server = MCPServer(sys.argv[1])
    server.add_tool(TOOLS[sys.argv[1]])
    server.run("stdio")
