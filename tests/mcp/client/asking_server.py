"""A server of the handshake era over stdio, without the SDK, that asks while a call waits: `python -m ... RECORD`.

The call `ask` has the number of questions in `times`, and `book` waits for a `go` of another call before it asks. The
record gets a line for each call that arrives and each answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FORM = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}, "required": ["size"]}
SCHEMA = {"type": "object", "properties": {"times": {"type": "integer"}, "form": {"type": "object"}}}


def write(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


class Asking:
    def __init__(self, record: Path) -> None:
        self._record, self._number = record, 0

    def note(self, text: str) -> None:
        with self._record.open("a") as file:
            file.write(f"{text}\n")

    def ask(self, form: dict[str, Any]) -> str:
        self._number += 1
        write(
            {
                "id": f"q{self._number}",
                "method": "elicitation/create",
                "params": {"message": "How much?", "requestedSchema": form},
            }
        )
        while True:
            message = read()
            if message.get("id") == f"q{self._number}":
                found = message.get("result", message.get("error", {}))
                text = json.dumps({key: found[key] for key in ("action", "content") if key in found})
                self.note(f"answer {text}")
                return text
            if message.get("method") == "tools/call":
                self.note(f"call {message['params']['name']}")

    def call(self, request: dict[str, Any]) -> None:
        name, arguments = request["params"]["name"], request["params"]["arguments"]
        self.note(f"call {name}")
        if name == "pair":
            other = read()
            self.note(f"call {other['params']['name']}")
            said = self.ask(FORM)
            write({"id": other["id"], "result": {"content": []}})
        else:
            said = " ".join(self.ask(arguments.get("form", FORM)) for _ in range(arguments.get("times", 1)))
        write({"id": request["id"], "result": {"content": [{"type": "text", "text": said}]}})

    def answer(self, request: dict[str, Any]) -> None:
        match request["method"]:
            case "initialize":
                self.note(f"capabilities {','.join(sorted(request['params']['capabilities']))}")
                info = {"name": "asking", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
                write({"id": request["id"], "result": result})
            case "tools/list":
                tools = [{"name": name, "inputSchema": SCHEMA} for name in ("ask", "pair")]
                write({"id": request["id"], "result": {"tools": tools}})
            case "tools/call":
                self.call(request)
            case _ if "id" in request:
                write({"id": request["id"], "error": {"code": -32601, "message": "no such method"}})
            case _:
                pass


if __name__ == "__main__":
    asking = Asking(Path(sys.argv[1]))
    while True:
        asking.answer(read())
