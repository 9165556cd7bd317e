"""A model on this machine that makes planned calls, then says a text.

It speaks the APIs of three providers: OpenAI's responses, OpenAI's chat completions and Gemini's.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

LAST_WORDS = "The stand-in model is done."


@dataclass(frozen=True, kw_only=True)
class Step:
    """One call that the model makes."""

    tool: str
    """The end of the tool's name: agents put a prefix of their own before it."""

    arguments: Json
    before: Callable[[str], None] | None = None
    """Receives the result of the call before this one, and runs before this one is made."""


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool of a request."""

    name: str
    namespace: str | None = None


@dataclass(kw_only=True)
class Talk:
    """The planned calls, and what the agent sent."""

    steps: list[Step]
    offered: set[str] = field(default_factory=set[str])
    results: list[str] = field(default_factory=list[str])
    """The results of the calls, as the agent shows them to its model."""

    problems: list[str] = field(default_factory=list[str])
    _begun: set[int] = field(default_factory=set[int])

    def next_call(self, tools: Iterable[OfferedTool], results: list[str]) -> tuple[OfferedTool, Json] | None:
        """Returns the next call, or None if all are made or the request offers no such tool."""
        found = list(tools)
        self.offered |= {tool.name for tool in found}
        if len(results) >= len(self.results):
            self.results = results
        if len(results) >= len(self.steps) or not found:
            return None
        step = self.steps[len(results)]
        if step.before is not None and len(results) not in self._begun:
            self._begun.add(len(results))
            step.before(results[-1])
        for tool in found:
            if tool.name.endswith(step.tool):
                return tool, step.arguments
        self.problems.append(f"no tool {step.tool} was offered")
        return None


def event(kind: str, **fields: Any) -> Json:
    return {"type": kind, **fields}


def text_of(output: Any) -> str:
    """Returns the text of a tool's result, in whatever form the agent sent it."""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return "".join(text_of(part) for part in output)
    if isinstance(output, dict) and "text" in output:
        return str(output["text"])
    return json.dumps(output)


def response_events(talk: Talk, asked: Json) -> list[Json]:
    """Answers a request of OpenAI's responses API."""
    outputs = [item for item in asked.get("input", ()) if str(item.get("type", "")).endswith("_call_output")]
    call = talk.next_call(response_tools(asked), [text_of(item["output"]) for item in outputs])
    if call is None:
        content = [{"type": "output_text", "text": LAST_WORDS, "annotations": []}]
        item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        tool, arguments = call
        item = {"type": "function_call", "id": f"fc_{len(outputs)}", "call_id": f"call_{len(outputs)}"}
        item |= {"name": tool.name, "arguments": json.dumps(arguments), "status": "completed"}
        if tool.namespace is not None:
            item["namespace"] = tool.namespace
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        event("response.created", response={**response, "status": "in_progress", "output": []}),
        event("response.output_item.added", output_index=0, item=item),
        event("response.output_item.done", output_index=0, item=item),
        event("response.completed", response=response),
    ]


def response_tools(asked: Json) -> Generator[OfferedTool]:
    for tool in asked.get("tools", ()):
        if tool["type"] == "namespace":
            for inner in tool["tools"]:
                yield OfferedTool(name=inner["name"], namespace=tool["name"])
        elif tool["type"] == "function":
            yield OfferedTool(name=tool["name"])


def chat_chunks(talk: Talk, asked: Json) -> list[Json]:
    """Answers a request of OpenAI's chat completions."""
    results = [text_of(message["content"]) for message in asked["messages"] if message["role"] == "tool"]
    tools = (OfferedTool(name=tool["function"]["name"]) for tool in asked.get("tools", ()))
    call = talk.next_call(tools, results)
    if call is None:
        delta: Json = {"role": "assistant", "content": LAST_WORDS}
    else:
        function = {"name": call[0].name, "arguments": json.dumps(call[1])}
        calls = [{"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}]
        delta = {"role": "assistant", "content": None, "tool_calls": calls}
    head = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"]}
    end = {"index": 0, "delta": {}, "finish_reason": "stop" if call is None else "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [end], "usage": usage},
    ]


def gemini_chunk(talk: Talk, asked: Json) -> Json:
    """Answers a request of Gemini."""
    parts = [part for content in asked["contents"] for part in content.get("parts", ())]
    results = [text_of(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
    declared = (one for tool in asked.get("tools", ()) for one in tool.get("functionDeclarations", ()))
    call = talk.next_call((OfferedTool(name=one["name"]) for one in declared), results)
    part: Json = {"text": LAST_WORDS}
    if call is not None:
        part = {"functionCall": {"name": call[0].name, "args": call[1]}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in"}


class ModelHandler(BaseHTTPRequestHandler):
    """Answers by the path of the request."""

    talk: Talk

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        try:
            if path.endswith("/responses"):
                self._send_events((each["type"], each) for each in response_events(self.talk, asked))
            elif path.endswith("/chat/completions"):
                self._send_events([*((None, each) for each in chat_chunks(self.talk, asked)), (None, "[DONE]")])
            elif path.endswith(":streamGenerateContent"):
                self._send_events([(None, gemini_chunk(self.talk, asked))])
            elif path.endswith(":generateContent"):
                self._send_json(gemini_chunk(self.talk, asked))
            elif path.endswith(":countTokens"):
                self._send_json({"totalTokens": 1})
            else:
                self.talk.problems.append(f"the path {path} is unknown to the stand-in model")
                self.send_error(404)
        except (KeyError, TypeError) as failure:
            self.talk.problems.append(f"{path} has a form that is unknown to the stand-in model: {failure!r}")
            self.send_error(400)

    def do_GET(self) -> None:
        self._send_json({"object": "list", "data": [], "models": []})

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the program prints what was seen."""

    def _send_json(self, value: Json) -> None:
        self._send("application/json", json.dumps(value).encode())

    def _send_events(self, events: Iterable[tuple[str | None, Json | str]]) -> None:
        lines: list[str] = []
        for kind, value in events:
            data = value if isinstance(value, str) else json.dumps(value)
            lines.append(f"event: {kind}\ndata: {data}\n\n" if kind else f"data: {data}\n\n")
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def stand_in_model(talk: Talk) -> Generator[str]:
    """Serves the model, and yields its URL without a path."""
    handler = type("TalkHandler", (ModelHandler,), {"talk": talk})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
