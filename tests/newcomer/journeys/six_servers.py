# pip install 'toolwire[mcp]'
"""Six MCP servers behind one in code mode: a client sees four tools, and a program of its model calls all servers."""

import asyncio
import sys

from mcp import Client
from toolwire import ToolRegistry, ToolServer

PROGRAM = """
books = ["Emma", "Dune"]
for book in books:
    print(book, shop_price(book=book)["result"], reviews_stars(book=book)["result"])
total = sum(shop_price(book=book)["result"] * stock_count(book=book)["result"] for book in books)
note = notes_add(text=f"worth {total} on {calendar_today()['result']}")["result"]
mail_send(to="ada", text=note)["result"]
"""


async def main(config: str) -> None:
    registry = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    for problem in registry.mcp.add(config):
        print(problem, file=sys.stderr)
    with registry:
        gateway = ToolServer(registry, "gateway", mode="code")
        async with Client(gateway.in_memory()) as client:
            print([tool.name for tool in (await client.list_tools()).tools])
            found = await client.call_tool("search_tools", {"query": "price of a book", "limit": 1})
            print(found.content[0].text)
            result = await client.call_tool("run_program", {"code": PROGRAM})
            print(result.content[0].text)


asyncio.run(main(sys.argv[1]))
