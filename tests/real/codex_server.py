"""Drives `codex app-server`, as an editor does, and is the person who answers its forms."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.real.calls import form_value

Json = dict[str, Any]

FORM = "mcpServer/elicitation/request"


class CodexServer:
    """A running app server, and the forms that it showed."""

    def __init__(self, command: list[str], cwd: Path, variables: dict[str, str]) -> None:
        self.forms: list[str] = []
        self.texts: list[str] = []
        """What the agent said."""

        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run_turn(self, prompt: str, limit_s: float) -> None:
        """Sends the prompt, and answers all forms until the agent's turn ends. The process is gone after that."""
        end = threading.Timer(limit_s, self._process.kill)
        end.start()
        try:
            self._request("initialize", {"clientInfo": {"name": "toolwire", "version": "1"}})
            self._send({"method": "initialized"})
            thread = self._request("thread/start", {})["thread"]["id"]
            self._request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": prompt}]})
            while self._read().get("method") != "turn/completed":
                pass
        finally:
            end.cancel()
            self._process.kill()
            self._process.communicate()

    def _request(self, method: str, params: Json) -> Json:
        self._send({"id": method, "method": method, "params": params})
        while "result" not in (said := self._read()):
            assert "error" not in said, said
        return said["result"]

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _read(self) -> Json:
        """Returns the next message, after an answer if it is a form."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "codex app-server ended"
        message = json.loads(line)
        params = message.get("params") or {}
        if message.get("method") == FORM:
            self.forms.append(params["message"])
            fields = params.get("requestedSchema", {}).get("properties", {})
            content = {name: form_value(field) for name, field in fields.items()}
            self._send({"id": message["id"], "result": {"action": "accept", "content": content}})
        elif message.get("method") == "item/completed" and params["item"]["type"] == "agentMessage":
            self.texts.append(params["item"]["text"])
        return message
