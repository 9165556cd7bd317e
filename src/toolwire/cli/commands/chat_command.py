"""`toolwire chat`: a person, a model and tools at the terminal or in a pipe."""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import shutil
import sys
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import aclosing
from functools import partial
from queue import SimpleQueue
from typing import Annotated, Any, cast

import typer

import toolwire
from toolwire.cli.chat_models import model_of
from toolwire.cli.commands.approvals_command import request_table
from toolwire.cli.commands.policy_command import honour
from toolwire.cli.commands.tools_command import print_tools
from toolwire.cli.display import count_of, one_line
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.loading import registry_of
from toolwire.cli.options import ToolsOption
from toolwire.cli.output import Output
from toolwire.cli.reading import READ_LIMIT_BYTES
from toolwire.cli.stores import StoreOption, open_store
from toolwire.cli.waiting import Asking, asking, background_loop
from toolwire.models import Usage

EPILOG = f"""\b
Examples:
  toolwire chat --model openai:gpt-x-mini --tools tools.py
  toolwire chat --model anthropic:claude-x --tools tools.py
  toolwire chat --model gemini:gemini-x --tools tools.py
  echo "What is due?" | toolwire chat --model openai:gpt-x \\
    --tools tools.py
  toolwire chat --model openai:local --tools tools.py \\
    --base-url http://127.0.0.1:8000/v1

Write a prompt, or /tools, /usage or /quit. Ctrl-C interrupts the model and
its tools; twice, it leaves. In a pipe each line is a prompt, and the first
that gets no answer ends the chat.

The key is in OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY. The chat is
on record in the store: --conversation goes on with it.

{exit_codes("the model failed, or the turns are used up", *ExitCode)}"""

_CODES = {
    "answered": ExitCode.DONE,
    "declined": ExitCode.DECLINED,
    "suspended": ExitCode.SUSPENDED,
    "unreadable": ExitCode.REFUSED,
    "interrupted": ExitCode.INTERRUPTED,
}
"""The exit code of each end of a run. It is 1 for the others."""

_WORDS = {
    "declined": "the model declined",
    "stopped": "you ended the run",
    "interrupted": "interrupted",
    "unreadable": "the model's replies cannot be read",
    "turns": "the turns are used up: write a prompt to go on, or give more by --turns",
    "seconds": "the time is used up",
}

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("chat", epilog=EPILOG)
def chat(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Option(metavar="PROVIDER:NAME", help="The model: openai:NAME, anthropic:NAME or gemini:NAME."),
    ],
    tools: ToolsOption,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The address of a server with the provider's API.")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="NAME", help="Go on with this conversation, or give a new one this name.")
    ] = None,
    store: StoreOption = None,
    turns: Annotated[int, typer.Option(metavar="N", min=1, help="Requests to the model for one prompt, at most.")] = 20,
) -> None:
    """Chat with a model that uses the tools."""
    output: Output = context.obj
    output.keep_stdout()
    asked, name = model_of(model, base_url), conversation or f"chat-{secrets.token_hex(4)}"
    person, items = asking(None), SimpleQueue[Any]()
    registry = registry_of(tools, approver=None if person is None else _Approver(items))
    honour(None, registry, output)
    given = {"--base-url": base_url, "--store": store, "--conversation": name}
    again = ["toolwire", "chat", "--model", model, *(part for tool in tools for part in ("--tools", tool))]
    again += [part for option, value in given.items() if value is not None for part in (option, value)]
    # A person needs time to decide; without one, a silent server must not keep the process.
    budget = toolwire.Budget(turns=turns) if person is None else toolwire.Budget(turns=turns, seconds=None)
    with open_store(store, make=True) as opened, background_loop() as loop:
        agent = toolwire.Agent("assistant", asked, registry, store=opened, budget=budget)
        waits = bool(opened.runs(conversation=name, status="suspended", limit=1))
        talk = _Chat(partial(agent.stream, conversation=name), shlex.join(again), items, loop, person, output)
        raise typer.Exit(talk.talk(registry, waits=waits))


class _Approver:
    """Hands requests to the main thread, which has the terminal and gets Ctrl-C."""

    def __init__(self, items: SimpleQueue[Any]) -> None:
        self._items = items

    async def __call__(self, request: toolwire.ApprovalRequest) -> toolwire.Decision | None:
        """Returns the decision, or None if the call stays undecided."""
        answer: Future[toolwire.Decision | None] = Future()
        self._items.put((request, answer))
        return await asyncio.wrap_future(answer)


class _Chat:
    """One chat. The agent runs on the loop of another thread, and the main thread shows its events and asks."""

    def __init__(
        self,
        stream: Callable[[str | None], AsyncGenerator[toolwire.AgentEvent]],
        again: str,
        items: SimpleQueue[Any],
        loop: asyncio.AbstractEventLoop,
        person: Asking | None,
        output: Output,
    ) -> None:
        """`items` takes what the loop has for this thread: events, requests with their answers, and ended tasks."""
        self._stream, self._again, self._person, self._output = stream, again, person, output
        self._items, self._loop = items, loop
        self._task: asyncio.Task[Any] | None = None
        self._usage = Usage()
        self._calls: dict[str, str] = {}
        """The calls that run, as text, by id."""
        self._last = ""
        """The id of the call in the line before; empty if that line is no call."""
        self._is_inside_line = self._is_interrupted = self._has_text = False

    def talk(self, registry: toolwire.ToolRegistry, *, waits: bool) -> ExitCode:
        """Follows the person's prompts, and before them a run that `waits`. Returns the exit code."""
        if self._person is not None:
            self._output.say(f"{count_of(len(registry), 'tool')}. Write a prompt, or /tools, /usage or /quit.")
        stop = self._follow(None) if waits else ""
        while stop in ("", "answered") or (self._person is not None and stop != "suspended"):
            prompt = self._prompt()
            if prompt is None or prompt == "/quit":
                break
            if prompt == "/tools":
                print_tools(registry, self._output)
            elif prompt == "/usage":
                used = self._usage
                self._output.result(f"tokens: {used.input} in ({used.cached} cached), {used.output} out")
            elif prompt.startswith("/") and prompt[1:].isalpha():
                self._output.say(f"there is no command {prompt}: write /tools, /usage, /quit or a prompt")
            elif prompt:
                stop = self._follow(prompt)
        if stop != "suspended" and self._person is not None:
            self._output.say(f"Go on: {self._again}")
            return ExitCode.DONE
        return _CODES.get(stop, ExitCode.FAILED)

    def _prompt(self) -> str | None:
        """Returns the next line without spaces around it; None at the end of the input."""
        while True:
            try:
                if self._person is not None:
                    self._output.say("> ", end="")
                line = sys.stdin.buffer.readline(READ_LIMIT_BYTES + 1)
                break
            except KeyboardInterrupt:
                if self._is_interrupted or self._person is None:
                    raise
                self._is_interrupted = True
                self._output.say("\nCtrl-C again leaves, as /quit does")
        self._is_interrupted = False
        if len(line) > READ_LIMIT_BYTES:
            raise Stop(ExitCode.WRONG_USAGE, f"a prompt is longer than {READ_LIMIT_BYTES:,} bytes")
        try:
            return line.decode().strip() if line else None
        except UnicodeDecodeError as error:
            message = f"the prompt is not UTF-8: byte {error.start} is {line[error.start]:#04x}"
            raise Stop(ExitCode.WRONG_USAGE, message) from error

    def _follow(self, prompt: str | None) -> str:
        """Runs the agent, shows what it does, and returns why it stopped."""
        self._loop.call_soon_threadsafe(self._start, prompt)
        while True:
            try:
                item = self._items.get()
                if isinstance(item, toolwire.AgentEvent):
                    self._show(item)
                elif isinstance(item, asyncio.Task):
                    return self._end(cast("asyncio.Task[toolwire.AgentResult[Any]]", item))
                elif item[1].set_running_or_notify_cancel():
                    self._end_line()
                    item[1].set_result(None if self._person is None else self._person(item[0]))
            except KeyboardInterrupt:
                if self._is_interrupted:
                    raise
                self._is_interrupted = True
                self._loop.call_soon_threadsafe(self._cancel)

    def _start(self, prompt: str | None) -> None:
        async def follow() -> toolwire.AgentResult[Any] | None:
            result = None
            async with aclosing(self._stream(prompt)) as events:
                async for event in events:
                    result = event.result
                    self._items.put(event)
            return result

        self._task = self._loop.create_task(follow())
        self._task.add_done_callback(self._items.put)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[toolwire.AgentResult[Any]]) -> str:
        self._end_line()
        if task.cancelled() and self._person is None:
            raise KeyboardInterrupt
        if task.cancelled():
            self._output.say("interrupted")
            return "interrupted"
        result = task.result()
        self._usage += result.usage
        if result.text and not self._has_text:
            self._output.result(result.text)
        if result.stop == "suspended":
            table = request_table(result.pending, is_terminal=self._output.is_terminal)
            self._output.say(f"The chat waits for {count_of(len(result.pending), 'decision')}:\n\n{table}\n")
            self._output.say(f"Decide:  toolwire approvals show {result.pending[0].id[:10]}\nGo on:   {self._again}")
        elif result.error is not None:
            self._output.say(f"the model failed ({result.error.kind}): {cut(str(result.error), 300)}")
        elif result.stop != "answered":
            self._output.say(_WORDS.get(result.stop, f"the run ended: {result.stop}"))
        return result.stop

    def _show(self, event: toolwire.AgentEvent) -> None:
        call = event.tool
        if event.type == "reply":
            self._end_line()
            self._has_text = False
            if event.attempt > 1:
                self._output.say("the stream broke off: the reply begins again")
        elif event.type == "text" and len(event.agent) == 1:
            self._has_text, self._is_inside_line = True, not event.text.endswith("\n")
            if not self._output.write(event.text):
                raise typer.Exit(ExitCode.DONE)
        elif isinstance(call, toolwire.ToolStarted):
            fields = ", ".join(f"{name}={_json(value)}" for name, value in call.arguments.items())
            self._calls[call.call_id] = f"{call.tool}({fields})"
            self._say_call(call, self._calls[call.call_id])
        elif isinstance(call, toolwire.ToolCompleted):
            text = self._calls.pop(call.call_id, call.tool)
            is_next = self._last == call.call_id
            self._say_call(call, f"= {'' if is_next else f'{text}: '}{call.error or _json(call.result)}")

    def _say_call(self, call: toolwire.ToolEvent, text: str) -> None:
        """Writes a line about a call. A call of a program or of a sub-agent stands below it."""
        self._end_line()
        indent = "  " * max(call.call_id.count("/"), 1)
        self._last = call.call_id
        self._output.say(indent + cut(text, shutil.get_terminal_size((100, 24)).columns - len(indent) - 1))

    def _end_line(self) -> None:
        if self._is_inside_line:
            self._output.write("\n")
        self._is_inside_line, self._last = False, ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def cut(text: str, characters: int) -> str:
    """Returns the text on one line, cut to a number of characters."""
    line = one_line(text)
    return line if len(line) <= characters else f"{line[: max(characters - 3, 0)]}..."
