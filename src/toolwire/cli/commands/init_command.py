"""`toolwire init`: writes four small files to start from."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.output import Output

EPILOG = f"""\b
Examples:
  toolwire init
  toolwire init my_agent

\b
It writes:
  tools.py       two tools
  toolwire.toml  their rules: one runs, one asks
  mcp.json       the tools as a server of MCP
  agent.py       a loop with a model of OpenAI

If one of them is there already, it writes none, and says which are there.

{exit_codes("a file is there already, or cannot be written")}"""

TOOLS = '''"""Two tools. `toolwire tools --tools tools.py` lists them."""


def weather(city: str) -> dict[str, str | int]:
    """Looks up today's weather in a city.

    Args:
        city: Its name
    """
    return {"city": city, "sky": "clear", "celsius": 21}


def send_message(to: str, text: str) -> str:
    """Sends a message.

    Args:
        to: The name of the receiver
        text: What to say
    """
    return f"sent to {to}: {text}"
'''
POLICY = """# Which calls run: auto runs, confirm asks a person, deny never runs. The strictest rule counts.
# `toolwire policy check --tools tools.py` checks these rules. They are optional, because the commands of this folder
# read them with other tools too, such as those of mcp.json.

[[rule]]
effect = "auto"
tool = "weather"
optional = true

[[rule]]
effect = "confirm"
tool = "send_message"
optional = true
note = "a person reads each message first"
"""
AGENT = '''"""A model that uses the tools of tools.py. Needs: pip install openai, and a key in OPENAI_API_KEY.

Run: python agent.py "a question"
"""

import os
import sys
from pathlib import Path
from typing import Any

import tools
from openai import OpenAI
from toolwire import Session
from toolwire.approvals import console_approver

if "OPENAI_API_KEY" not in os.environ:
    sys.exit("Set OPENAI_API_KEY to your key first: export OPENAI_API_KEY=...")

client = OpenAI()
session = Session(
    [tools.weather, tools.send_message],
    protocol="openai",
    policy=Path(__file__).with_name("toolwire.toml"),
    approver=console_approver,
)
messages: list[Any] = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What is the weather in Oslo?"}]
while True:
    response = client.chat.completions.create(model="gpt-5.4-mini", messages=messages, tools=session.request_tools)
    turn = session.run_turn(response)
    if turn.is_final:
        break
    messages += [turn.reply.message, *turn.messages]
print(turn.answer)
'''

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("init", epilog=EPILOG)
def init(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder, which is made; else this one.", show_default=False)
    ] = Path(),
) -> None:
    """Write tools, rules, an MCP file and a loop to start from."""
    output: Output = context.obj
    files = {folder / name: text for name, text in _file_texts(folder).items()}
    there = [str(path) for path in files if path.exists() or path.is_symlink()]
    if there:
        raise Stop(
            ExitCode.FAILED,
            f"nothing was written, because there is already: {', '.join(there)}",
            hint="Name another folder: toolwire init DIR",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise Stop(ExitCode.FAILED, f"{error.filename or folder} cannot be written: {error.strerror}") from error
    output.result("\n".join(map(str, files)))
    output.say(_next(folder))


def _file_texts(folder: Path) -> dict[str, str]:
    server = {
        "command": sys.executable,
        "args": ["-m", "toolwire", "serve", "--tools", "tools.py"],
        "cwd": str(folder.absolute()),
    }
    config = json.dumps({"mcpServers": {"my_tools": server}}, indent=2, ensure_ascii=False) + "\n"
    return {"tools.py": TOOLS, "toolwire.toml": POLICY, "mcp.json": config, "agent.py": AGENT}


def _next(folder: Path) -> str:
    enter = [] if folder == Path() else [f"  cd {shlex.quote(str(folder))}"]
    return "\n".join(
        [
            "Try next:",
            *enter,
            "  toolwire tools --tools tools.py",
            "  toolwire call weather city=Oslo --tools tools.py",
            "  toolwire policy check --tools tools.py",
            "  toolwire mcp list --config mcp.json    needs: pip install 'toolwire[mcp]'",
            "  python agent.py                        needs: pip install openai, and OPENAI_API_KEY",
        ]
    )
