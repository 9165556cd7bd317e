"""A server of the handshake era over stdio, without the SDK: `python -m ... TOOLS REVISION`.

`TOOLS` is a JSON file of the tools' names and descriptions, read for each list. Each call of `poke` reports a change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def answer(request: dict[str, Any], tools: Path, revision: str) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "old", "version": "1"}
            return {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            named = json.loads(tools.read_text("utf-8"))
            if not named:
                return {"tools": "none"}
            schema = {"type": "object", "properties": {}}
            return {
                "tools": [{"name": name, "description": said, "inputSchema": schema} for name, said in named.items()]
            }
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{request['params']['name']} ran"}]}
        case _:
            raise LookupError(request["method"])


def write(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main(tools: Path, revision: str) -> None:
    write({"method": "notifications/tools/list_changed"})  # Before the first list, as server-everything does.
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        try:
            write({"id": request["id"], "result": answer(request, tools, revision)})
        except LookupError as error:
            write({"id": request["id"], "error": {"code": -32601, "message": f"no method {error}"}})
        if request["method"] == "tools/call" and request["params"]["name"] == "poke":
            write({"method": "notifications/message", "params": {"level": "warning", "data": "the tools changed"}})
            write({"method": "notifications/tools/list_changed"})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
