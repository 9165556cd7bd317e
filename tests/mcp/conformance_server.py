"""The server that the conformance suites ask for: `python -m tests.mcp.conformance_server`. It prints its port.

The tools are those of a `ToolServer`; the resources, prompts and completions are those of SDK servers behind it,
and so are the tools that answer with a request for the client's model or roots.
Sampling in the middle of a call and log messages are no part of a `ToolServer`: their tools speak to the client
through the SDK's own server.
"""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.shared.exceptions import MCPError

from tests.mcp.conformance_resources import PNG, resource_server, text_field
from tests.mcp.conformance_wants import wanting_server
from toolwire import CallContext, InputRequired, MCPClient, Question, ToolRegistry, ToolResult, ToolServer, ToolSpec
from toolwire.gateway.http.app import Access, http_app
from toolwire.gateway.server_limits import ServerLimits
from toolwire.mcp.values.task_values import TASKS_EXTENSION, has_tasks

WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
IMAGE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
HARD: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
}
REQUEST: ContextVar[Any] = ContextVar("request")
"""The SDK's context of the request that is being answered."""

registry = ToolRegistry()


@registry.register
def test_simple_text() -> str:
    """Gives a text."""
    return "This is a simple text response for testing."


@registry.register
def test_image_content() -> Any:
    """Gives a picture."""
    return [IMAGE]


@registry.register
def test_audio_content() -> Any:
    """Gives a sound."""
    return [{"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": WAV}}]


def embedded(uri: str, text: str, kind: str) -> Any:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


@registry.register
def test_embedded_resource() -> Any:
    """Gives a resource."""
    return [embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")]


@registry.register
def test_multiple_content_types() -> Any:
    """Gives a text, a picture and a resource."""
    data = json.dumps({"test": "data", "value": 123})
    text = {"type": "text", "text": "Multiple content types test:"}
    return [text, IMAGE, embedded("test://mixed-content-resource", data, "application/json")]


@registry.register
def test_error_handling() -> str:
    """Fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@registry.register
async def test_tool_with_progress(context: CallContext) -> str:
    """Reports progress."""
    for done in (0, 50, 100):
        await context.progress(done, 100)
        await asyncio.sleep(0.05)
    return "done"


@registry.register
async def test_tool_with_logging() -> str:
    """Logs."""
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        params = types.LoggingMessageNotificationParams(level="info", data=said)
        await REQUEST.get().session.send_notification(types.LoggingMessageNotification(params=params))
        await asyncio.sleep(0.05)
    return "logged"


@registry.register
def test_logging_tool() -> str:
    """Logs nothing: the client has not asked for it."""
    return "quiet"


@registry.register
async def test_sampling(prompt: str) -> str:
    """Asks the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    said = await REQUEST.get().session.create_message(messages=[message], max_tokens=100)
    return f"LLM response: {said.content.text}"


PERSON = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
TITLED = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
PLAIN = ["option1", "option2", "option3"]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": PLAIN},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": PLAIN}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


@registry.register
async def test_elicitation(message: str, context: CallContext) -> str:
    """Asks the person."""
    return f"User response: {await context.ask(message, PERSON)}"


@registry.register
async def test_streaming_elicitation(context: CallContext) -> str:
    """Asks the person."""
    return str(await context.ask("Who are you?", PERSON))


@registry.register
async def test_elicitation_sep1034_defaults(context: CallContext) -> str:
    """Asks with defaults."""
    return f"Elicitation completed: {await context.ask('Please fill in', DEFAULTS)}"


@registry.register
async def test_elicitation_sep1330_enums(context: CallContext) -> str:
    """Asks with choices."""
    return f"Elicitation completed: {await context.ask('Please choose', ENUMS)}"


@registry.register
async def test_reconnection() -> str:
    """Works for a moment."""
    await asyncio.sleep(0.1)
    return "done"


@registry.register
def test_trigger_tool_change() -> str:
    """Changes the list of tools."""
    if next(CHANGES) % 2:
        registry.enable("test_logging_tool")
    else:
        registry.disable("test_logging_tool", "it comes back")
    return "changed"


CHANGES = count()

TASK_S = 0.3
"""Seconds after which a call of the suite is a task. Its shortest ones that must be tasks take a second."""


@registry.register
def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}!"


@registry.register
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return f"computed {label}"


@registry.register
async def failing_job() -> str:
    """Fails after a second."""
    await asyncio.sleep(1)
    raise RuntimeError("the job failed")


@registry.register
async def protocol_error_job() -> Any:
    """Is gone before its result is read, which is an error of the protocol."""
    await asyncio.sleep(1)
    registry.unregister("protocol_error_job")
    return ToolResult.failed("unknown_tool", "it is gone")


@registry.register
async def confirm_delete(filename: str, context: CallContext) -> str:
    """Asks once it is a task."""
    await asyncio.sleep(2 * TASK_S)
    question = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
    return f"{filename}: {await context.ask('Delete it?', question)}"


@registry.register
async def multi_input(context: CallContext) -> Any:
    """Asks two questions at once, once it is a task."""
    if context.answers:
        return str(dict(context.answers))
    await asyncio.sleep(2 * TASK_S)
    return InputRequired({name: Question("Who?", text_field("name")) for name in ("one", "two")})


@registry.register
async def test_tool_with_task(context: CallContext) -> Any:
    """Asks at once, and takes its time then."""
    if "user_name" not in context.answers:
        return InputRequired({"user_name": Question("What is your name?", text_field("name"))})
    await asyncio.sleep(2 * TASK_S)
    return f"Hello, {context.answers['user_name']['name']}!"


def asking(name: str, key: str, question: Question, answer: str) -> None:
    """Registers a tool that asks one question under a key of its own."""

    def tool(context: CallContext) -> Any:
        if key not in context.answers:
            return InputRequired({key: question})
        return answer.format(**context.answers[key])

    registry.register(ToolSpec.from_function(tool, name=name, description="Asks first."))


asking(
    "test_input_required_result_elicitation",
    "user_name",
    Question("What is your name?", text_field("name")),
    "Hello, {name}!",
)
OK = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
for tool_name in ("request_state", "tampered_state"):
    asking(f"test_input_required_result_{tool_name}", "confirm", Question("Please confirm", OK), "state-ok {ok}")


@registry.register
def test_input_required_result_multi_round(context: CallContext) -> Any:
    """Asks twice."""
    if "step1" in context.answers:
        step2 = Question("Step 2: What is your favorite color?", text_field("color"))
        return InputRequired({"step2": step2}, state=context.answers["step1"])
    if "step2" in context.answers:
        return f"{context.state['name']} likes {context.answers['step2']['color']}"
    return InputRequired({"step1": Question("Step 1: What is your name?", text_field("name"))})


for tool_name, schema in (("json_schema_2020_12_tool", HARD), ("test_custom_headers", HEADERS)):
    registry.register(
        ToolSpec.from_jsonschema(
            name=tool_name, description="Takes it all.", input_schema=schema, function=lambda **given: json.dumps(given)
        )
    )


@registry.register
async def test_trigger_prompt_change(context: CallContext) -> str:
    """Changes the list of prompts."""
    await context.call("up/change")
    return "changed"


async def with_request(context: Any, call_next: Any) -> Any:
    """Keeps the SDK's context for the tools that speak to the client through it."""
    if context.method == "tools/call" and (context.params or {}).get("name") == "test_missing_capability":
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client offers no sampling", data=data)
    is_job = context.method == "tools/call" and (context.params or {}).get("name") == "failing_job"
    # No tool of a ToolServer needs tasks. This one of the suite does.
    if is_job and not has_tasks(context.session.client_capabilities):
        data = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client takes no tasks", data=data)
    token = REQUEST.set(context)
    try:
        return await call_next(context)
    finally:
        REQUEST.reset(token)


async def set_level(context: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def main() -> None:
    registry.register(ToolSpec.from_function(lambda: "", name="test_missing_capability", description="Needs a model."))
    registry.register_mcp_client(MCPClient.in_memory("up", resource_server()), permission="auto")
    wanting = MCPClient.in_memory("test", wanting_server())
    wanting.offers.allow(["sampling", "roots"])
    registry.register_mcp_client(wanting, permission="auto")
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'runs.db'}"
        sdk: Any = ToolServer(registry, "conformance", version="1.0.0", store=store, task_s=TASK_S).in_memory()
        sdk.middleware.append(with_request)
        sdk.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
        app = http_app(sdk, Access(None, None, None, (), (), (), False), ServerLimits())
        with socket.create_server(("127.0.0.1", 0)) as listening:
            print(listening.getsockname()[1], flush=True)
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
