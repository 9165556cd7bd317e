"""`toolwire chat`: a person, a model and tools, at a terminal or in a pipe."""

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
import toolwire.types
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
from toolwire.cli.waiting import background_loop, terminal_asker
from toolwire.models import Usage

EPILOG = f"""\b
Examples:
  toolwire chat --model openai:gpt-x-mini --tools tools.py
  echo "What is due?" |
    toolwire chat --model gemini:gemini-x --tools tools.py
  toolwire chat --model openai:local --tools tools.py \\
    --base-url http://127.0.0.1:8000/v1

Write a prompt, or /tools, /usage or /quit. Ctrl-C interrupts the model and its tools; twice, it leaves. In a pipe each
line is a prompt, and the first without an answer ends the chat.

The key is read from OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY. The chat is on record in the store, and
--conversation goes on with it.

{exit_codes("the model failed, or the turns are used up", *ExitCode)}"""

_ENDS: dict[str, tuple[ExitCode, str]] = {
    "answered": (ExitCode.DONE, ""),
    "declined": (ExitCode.DECLINED, "the model declined"),
    "suspended": (ExitCode.SUSPENDED, "the chat waits for a person"),
    "unreadable": (ExitCode.REFUSED, "the model's replies cannot be read"),
    "stopped": (ExitCode.FAILED, "you ended the run"),
    "interrupted": (ExitCode.INTERRUPTED, "interrupted"),
    "turns": (ExitCode.FAILED, "the turns are used up: write a prompt to go on, or give more by --turns"),
    "seconds": (ExitCode.FAILED, "the time is used up"),
    "model": (ExitCode.FAILED, "the model failed"),
}
"""The exit code and the words for each reason why a run stops."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("chat", epilog=EPILOG)
def chat(
    context: typer.Context,
    model: Annotated[str, typer.Option(metavar="PROVIDER:NAME", help="The provider is openai, anthropic or gemini.")],
    tools: ToolsOption,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="A server with the provider's API.")] = None,
    conversation: Annotated[str | None, typer.Option(metavar="NAME", help="Go on with this chat, or name it.")] = None,
    store: StoreOption = None,
    turns: Annotated[int, typer.Option(metavar="N", min=1, help="Requests to the model for a prompt, at most.")] = 20,
) -> None:
    """Chat with a model that uses the tools."""
    output: Output = context.obj
    output.keep_stdout()
    asked, name = model_of(model, base_url), conversation or f"chat-{secrets.token_hex(4)}"
    options = [("--model", model), *(("--tools", tool) for tool in tools), ("--base-url", base_url)]
    options += [("--store", store), ("--conversation", name)]
    again = shlex.join(part for option in options if option[1] is not None for part in option if part)
    talk = _Chat(output, f"toolwire chat {again}")
    registry = registry_of(tools, approver=talk.ask if talk.person else None)
    honour(None, registry, output)
    # A person takes time to decide. Without one, a silent server must not keep the process.
    budget = toolwire.Budget(turns=turns, seconds=None if talk.person else toolwire.Budget().seconds)
    with open_store(store, make=True) as opened, background_loop() as talk.loop:
        agent = toolwire.Agent("assistant", asked, registry, store=opened, budget=budget)
        talk.stream = partial(agent.stream, conversation=name)
        waits = bool(opened.runs(conversation=name, status="suspended", limit=1))
        raise typer.Exit(talk.follow_prompts(registry, waits=waits))


class _Chat:
    """One chat. The agent runs on a loop in another thread. The main thread has the terminal, and gets Ctrl-C."""

    loop: asyncio.AbstractEventLoop
    stream: Callable[[str | None], AsyncGenerator[toolwire.types.AgentEvent]]

    def __init__(self, output: Output, again: str) -> None:
        self.person = terminal_asker(None)
        """Asks the person at the terminal; None without one."""
        self._output, self._again = output, again
        self._items = SimpleQueue[Any]()
        """Events, requests with their answers, and ended tasks, from the loop to the main thread."""
        self._task: asyncio.Task[Any] | None = None
        self._usage = Usage()
        self._calls: dict[str, str] = {}
        """The calls that run, as text, by id."""
        self._last = ""
        """The id of the call that the last line is about; else empty."""
        self._is_inside_line = self._has_text = self._is_interrupted = False
        self._held = ""
        """The text of the present reply, which a pipe gets when the reply has ended."""

    async def ask(self, request: toolwire.ApprovalRequest) -> toolwire.Decision | None:
        """Returns the decision of the person, or None if the call stays undecided."""
        answer: Future[toolwire.Decision | None] = Future()
        self._items.put((request, answer))
        return await asyncio.wrap_future(answer)

    def follow_prompts(self, registry: toolwire.ToolRegistry, *, waits: bool) -> ExitCode:
        """Follows the prompts until the end, and before them a run that `waits`. Returns the exit code."""
        if self.person:
            self._output.say(f"{count_of(len(registry), 'tool')}. Write a prompt, or /tools, /usage or /quit.")
        stop, prompt = self._run(None) if waits else "answered", None
        while stop == "answered" or (self.person and stop != "suspended"):
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
                stop = self._run(prompt)
        if stop == "suspended" or not self.person:
            return _ENDS[stop][0]
        # After the end of the input, the line of the last prompt is still open.
        self._output.say(("" if prompt else "\n") + f"Go on: {self._again}")
        return ExitCode.DONE

    def _prompt(self) -> str | None:
        """Returns the next line without spaces around it; None at the end of the input."""
        try:
            if self.person:
                self._output.say("> ", end="")
            line = sys.stdin.buffer.readline(READ_LIMIT_BYTES + 1)
        except KeyboardInterrupt:
            if self._is_interrupted or not self.person:
                raise
            self._is_interrupted = True
            self._output.say("\nCtrl-C again leaves, as /quit does")
            return ""
        self._is_interrupted = False
        if len(line) > READ_LIMIT_BYTES:
            raise Stop(ExitCode.WRONG_USAGE, f"a prompt is longer than {READ_LIMIT_BYTES:,} bytes")
        try:
            return line.decode().strip() if line else None
        except UnicodeDecodeError as error:
            raise Stop(ExitCode.WRONG_USAGE, f"a prompt is not UTF-8: byte {error.start}") from error

    def _run(self, prompt: str | None) -> str:
        """Runs the agent, shows its work, and returns the reason of its end."""
        self.loop.call_soon_threadsafe(self._start, prompt)
        while True:
            try:
                item = self._items.get()
                if isinstance(item, asyncio.Task):
                    break
                if isinstance(item, toolwire.types.AgentEvent):
                    self._show(item)
                elif item[1].set_running_or_notify_cancel():
                    self._end_line()
                    item[1].set_result(self.person and self.person(item[0]))
            except KeyboardInterrupt:
                if self._is_interrupted:
                    raise
                self._is_interrupted = True
                self._output.say("\ninterrupting; Ctrl-C again leaves at once")
                self.loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
        return self._end(cast("asyncio.Task[toolwire.types.AgentResult[Any] | None]", item))

    def _start(self, prompt: str | None) -> None:
        async def follow() -> toolwire.types.AgentResult[Any] | None:
            last = None
            async with aclosing(self.stream(prompt)) as events:
                async for last in events:
                    self._items.put(last)
            return last and last.result

        self._task = self.loop.create_task(follow())
        self._task.add_done_callback(self._items.put)

    def _end(self, task: asyncio.Task[toolwire.types.AgentResult[Any] | None]) -> str:
        """Says how the run ended, and returns why it stopped."""
        self._end_line()
        result = None if task.cancelled() else task.result()
        stop = "interrupted" if result is None else result.stop
        if stop != "model":
            self._say_held()
        words = _ENDS[stop][1]
        if result is not None:
            self._usage += result.usage
            if result.text and not self._has_text:
                self._output.result(result.text)
            if result.error is not None:
                words += f" ({result.error.kind}): {_shorten_line(str(result.error), 300)}"
            if result.pending:
                words += f":\n{request_table(result.pending, is_terminal=self._output.is_terminal)}\n"
                words += f"Decide:  toolwire approvals show {result.pending[0].id[:10]}\nGo on:   {self._again}"
        if words:
            self._output.say(words)
        return stop

    def _show(self, event: toolwire.types.AgentEvent) -> None:
        call = event.tool
        if event.type == "reply":
            if event.attempt == 1:
                self._say_held()
            self._end_line()
            self._has_text, self._held = False, ""
            if event.attempt > 1:
                self._output.say("the stream broke off: its reply is void, and another begins")
        elif event.type == "text" and len(event.agent) == 1 and not self.person:
            # A pipe gets no text of a stream that breaks off.
            self._held += event.text
        elif event.type == "text" and len(event.agent) == 1:
            self._has_text, self._is_inside_line = True, not event.text.endswith("\n")
            if not self._output.write(event.text):
                raise typer.Exit(ExitCode.DONE)
        elif isinstance(call, toolwire.types.ToolStarted):
            fields = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()]
            self._calls[call.call_id] = f"{call.tool}({', '.join(fields)})"
            self._say_call(call, self._calls[call.call_id])
        elif isinstance(call, toolwire.types.ToolCompleted):
            text = self._calls.pop(call.call_id, call.tool)
            of_call = "" if self._last == call.call_id else f"{text}: "
            self._say_call(call, f"= {of_call}{call.error or json.dumps(call.result, ensure_ascii=False)}")

    def _say_held(self) -> None:
        if self._held and not self._output.write(self._held if self._held.endswith("\n") else f"{self._held}\n"):
            raise typer.Exit(ExitCode.DONE)
        self._has_text, self._held = bool(self._held) or self._has_text, ""

    def _say_call(self, call: toolwire.ToolEvent, text: str) -> None:
        """Writes a line about a call. The calls of a program or a sub-agent are set in below it."""
        self._end_line()
        self._last, indent = call.call_id, "  " * max(call.call_id.count("/"), 1)
        self._output.say(indent + _shorten_line(text, shutil.get_terminal_size((100, 24)).columns - len(indent) - 1))

    def _end_line(self) -> None:
        if self._is_inside_line:
            self._output.write("\n")
        self._is_inside_line, self._last = False, ""


def _shorten_line(text: str, characters: int) -> str:
    """Returns the text on one line, cut to a number of characters."""
    line = one_line(text)
    return line if len(line) <= characters else f"{line[: max(characters - 3, 0)]}..."
