# pip install toolwire openai starlette uvicorn
"""A web server: a model with tools answers a question. A payment waits in the store until its owner decides."""

import sys
from typing import Any

import uvicorn
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolwire import Caller, DecisionRefused, Session, Store, ToolSpec, Turn


def pay(euros: int) -> str:
    """Pays."""
    return f"paid {euros} euros"


client, store = AsyncOpenAI(), Store.open("sqlite:///runs.db")
tools = [ToolSpec.from_function(pay, permission="confirm")]


async def answer(session: Session, messages: list[Any], turn: Turn | None = None) -> JSONResponse:
    while turn is None or not turn.is_final:
        messages += [turn.reply.message, *turn.messages] if turn else []
        response = await client.chat.completions.create(model="gpt", messages=messages, tools=session.request_tools)
        turn = await session.turn(response, deadline_s=60)
        if turn.suspended:
            name, (request,) = session.conversation, turn.suspended.pending
            await store.asave_document(name, messages, version=(await store.adocument(name)).version)
            return JSONResponse({"conversation": name, "run": turn.suspended.run_id, "request": request.id}, 202)
    return JSONResponse({"answer": turn.answer})


async def ask(request: Request) -> JSONResponse:
    given, caller = await request.json(), Caller(principal=request.headers["x-user"])  # your login says who it is
    session = Session(tools, protocol="openai", store=store, caller=caller, conversation=given.get("conversation"))
    if "question" in given:
        return await answer(session, [{"role": "user", "content": given["question"]}])
    messages = (await store.adocument(given["conversation"], caller=caller)).value
    decision = {"request_id": given["request"], "verdict": given["verdict"]}
    return await answer(session, messages, await session.resume(given["run"], [decision]))


refused = {DecisionRefused: lambda request, error: JSONResponse({"error": str(error)}, 403)}
app = Starlette(routes=[Route("/", ask, methods=["POST"])], exception_handlers=refused)
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
