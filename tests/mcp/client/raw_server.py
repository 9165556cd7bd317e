"""A server that writes its lines by hand, and wrong ones on demand: `python -m ... FAULT`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 and __name__ == "__main__" else ""
BROKEN = [{"name": "none"}, "text", {"name": "odd", "inputSchema": {"type": "array"}}, {"name": 7, "inputSchema": {}}]
TOOL = {"name": "say", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()


def answer(request: dict[str, Any], **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


def said(request: dict[str, Any], text: str, **more: Any) -> bytes:
    return answer(request, content=[{"type": "text", "text": text}], **more)


def call(request: dict[str, Any]) -> None:
    text = request["params"]["arguments"].get("text", "")
    match FAULT:
        case "noise":
            write(b"listening on port 80")
            write(b"{broken json")
            write(b'{"jsonrpc": "2.0", "result": {}}')
        case "wrong id":
            write(said({"id": 999_999}, "not yours"))
            write(said({"id": "unknown"}, "not yours"))
        case "bytes":
            return write(said(request, "caf@").replace(b"@", b"\xe9"))
        case "long":
            text = "x" * int(text)
        case "error":
            error = {"code": -32000, "message": "the shop is closed"}
            return write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode())
        case "answer":
            # The text is the answer, without its end.
            return write(f'{{"jsonrpc": "2.0", "id": {json.dumps(request["id"])}, {text}}}'.encode())
        case "result":
            return write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {text}}}'.encode())
        case "late progress":
            write(said(request, text))
            progress = {"progressToken": request["id"], "progress": 1}
            return write(
                json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}).encode()
            )
        case "flood":
            for number in range(1_000):
                print(f"line {number}", file=sys.stderr)
        case _:
            pass
    return write(said(request, text))


def main() -> None:
    if FAULT == "dies":
        sys.exit("no licence")
    if FAULT == "silent":
        time.sleep(1_000)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                if FAULT == "early change":
                    write(b'{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}')
                info = {"name": "raw", "version": "1"}
                write(answer(request, protocolVersion="2025-06-18", capabilities={"tools": {}}, serverInfo=info))
            case "tools/list":
                broken = BROKEN if FAULT == "broken tools" else []
                write(answer(request, tools=[*broken, TOOL, *broken]))
            case "tools/call":
                call(request)
            case _ if "id" in request:
                error = {"code": -32601, "message": "Method not found"}
                write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode())
            case _:
                pass


if __name__ == "__main__":
    main()
