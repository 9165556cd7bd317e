"""Wrong command lines: each is refused with its exit code and a message that names the mistake."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.command_line import run_here
from tests.cli.conftest import Write

WRONG = [
    ("fly", 2, "No such command 'fly'."),
    ("tool", 2, "No such command 'tool'. Did you mean 'tools'?"),
    ("--colour", 2, "No such option: --colour"),
    ("tools", 2, "give your tools by --tools, --config or --openapi, or --builtin for the tools of toolwire"),
    ("tools --tools", 2, "Option '--tools' requires an argument."),
    ("tools --tools missing.py", 3, "there is no file missing.py"),
    ("tools --tools no_such_module", 3, "there is no module no_such_module"),
    ("tools --tools notes.txt", 3, "Give a file that ends in .py, or the name of a module."),
    ("tools --tools .", 3, ". is a folder"),
    ("tools --tools broken.py", 3, "broken.py, line 1: SyntaxError: invalid syntax"),
    ("tools --tools empty.py", 3, "empty.py has no tools"),
    ("tools --tools shop.py extra", 2, "Got unexpected extra argument(s) (extra)"),
    ("tools --tools shop.py --policy missing.toml", 2, "missing.toml cannot be read: No such file or directory"),
    ("tools --tools shop.py --policy rules.toml", 2, "rules.toml: it is not TOML: "),
    ("tools --tools shop.py --search", 2, "Option '--search' requires an argument."),
    ("prompt --tools shop.py --protocol xml2", 2, "there is no protocol 'xml2': write one of 'attp', 'xml', "),
    ("prompt --tools shop.py --language fr", 2, "'fr' is not one of 'en', 'zh'."),
    ("prompt --tools shop.py --thought long", 2, "'long' is not one of 'short', 'full'."),
    ("prompt --tools shop.py --protocol openai --thought full", 2, "thought"),
    ("call", 2, "Missing argument 'NAME'."),
    ("call add", 2, "Missing option '--tools'."),
    ("call add 1 --tools shop.py", 2, "Write key=value, as limit=3."),
    ("call add a=1 a=2 --tools shop.py", 2, "'a' is given twice"),
    ("call sub a=1 --tools shop.py", 1, "The tools are: add."),
    ("call add a=x --tools shop.py", 1, "'a' must be an integer, not 'x'."),
    ("call add --arguments missing.json --tools shop.py", 2, "missing.json cannot be read: No such file or directory"),
    ("call add --arguments bad.json --tools shop.py", 2, "bad.json is not JSON: line 1, column 8: "),
    ("call add --arguments list.json --tools shop.py", 2, "list.json holds array, not an object"),
    ("call add a=1 --tools shop.py --timeout 0", 2, "write a number of seconds above 0"),
    ("call add a=1 --tools shop.py --timeout soon", 2, "Invalid value for '--timeout'"),
    ("call add a=1 --tools shop.py --ask", 2, "--ask needs a terminal"),
    ("run --tools shop.py", 2, "give a reply or --resume RUN"),
    ("run missing.toml --tools shop.py", 2, "the reply missing.toml cannot be read: No such file or directory"),
    ("run notes.txt --resume r_1 --tools shop.py", 2, "give a reply or --resume RUN"),
    ("run --resume r_1 --tools shop.py", 2, "there is no store at "),
    ("run notes.txt --tools shop.py --protocol yaml", 2, "there is no protocol 'yaml'"),
    ("run notes.txt --tools shop.py --store /proc/none/x.db", 2, "no store can be created at /proc/none/x.db"),
    ("policy explain", 2, "Missing argument 'NAME'."),
    ("policy explain sub --tools shop.py", 2, "no tool is named 'sub'"),
    ("policy check missing.toml --tools shop.py", 2, "there is no policy file missing.toml"),
    ("policy check rules.toml --tools shop.py", 1, "rules.toml: it is not TOML: "),
    ("approvals list", 2, "there is no store at "),
    ("approvals approve", 2, "Missing argument 'ID'."),
    ("approvals approve a_1 --for 8h", 2, "Add --remember."),
    ("approvals approve a_1 --remember run --for soon", 2, "Write 30min, 8h or 7d."),
    ("approvals approve a_1 --remember always", 2, "'always' is not one of 'run', 'session', 'workspace'."),
    ("approvals edit a_1", 2, "Missing option '--arguments'."),
    ("log --since yesterday", 2, "Invalid value for --since: 'yesterday' is not a time; write 30min, 2h, 7d or "),
    ("log --limit 0", 2, "Invalid value for '--limit'"),
    ("log tree", 2, "Missing argument 'RUN'."),
    ("log --principal", 2, "Option '--principal' requires an argument."),
    ("log --status", 2, "Option '--status' requires an argument."),
    ("log --status faled", 2, "a log has no status 'faled'"),
    ("log tree r_1", 2, "Name another with --store or $TOOLWIRE_STORE; `toolwire run` makes one."),
    ("tools --config missing.json", 2, "Invalid value for '--config': file 'missing.json' does not exist."),
    ("tools --config bad.json", 2, "bad.json cannot be read: "),
    ("tools --config empty.json", 2, "empty.json has no table of servers: write {'mcpServers': {'fs': {'command': "),
    ("tools --tools imports.py", 3, 'A tool that it imports counts if __all__ names it: __all__ = ["add"].'),
    ("tools --tools bare.py", 3, "Without a docstring: add. These count as tools: public functions with a docstring"),
    ("tools --tools shop.py --tokens", 2, "Option '--tokens' requires an argument."),
    ("tools --tools shop.py --tokens gpt", 2, "there is no protocol 'gpt': write one of 'attp', 'xml', "),
    ("tools --tools shop.py --tokens xml --search x", 2, "--tokens is about all tools: leave --search out"),
    ("tools --tools shop.py --builtin", 2, "give your tools by --tools, --config or --openapi, or --builtin "),
    ("mcp list", 2, "give --config FILE, or --pins FILE without --tokens"),
    ("mcp list --pins missing.json", 2, "Invalid value for '--pins': file 'missing.json' does not exist."),
    ("mcp list --pins bad.json", 2, "pins='bad.json' is not a file of pins: mend or delete it"),
    ("mcp list --pins pins.json --tokens xml", 2, "give --config FILE, or --pins FILE without --tokens"),
    ("mcp accept fs --pins pins.json", 1, "no MCP server 'fs' was seen; there are none"),
    ("mcp login issues", 2, "give the file that has a server of this name (--config)"),
    ("mcp doctor", 2, "Missing option '--config'."),
    ("serve", 2, "Give --tools FILE, --config FILE or --openapi FILE."),
    ("serve --tools shop.py --pins pins.json", 2, "Give --config FILE, or leave it out."),
    ("serve --tools shop.py --token-env NONE", 2, "Give --http PORT, or leave it out."),
    ("serve --tools shop.py --http 0 --token-env NONE", 2, "Set it, or leave it out."),
    ("serve --tools shop.py --config profiles.json", 2, "Give --http PORT."),
    ("serve --config profiles.json --http 0", 2, "Give --tools FILE as well."),
    ("serve --config off.json", 3, "The warnings say why."),
    ("serve --tools shop.py --config misspelt.json --http 0", 2, "misspelt.json has no table of servers: write "),
    ("serve --tools shop.py --http 99999", 2, "Invalid value for '--http'"),
    ("serve --tools shop.py --mode fast", 2, "'fast' is not one of 'tools', 'search', 'code'."),
    ("init shop.py", 1, "shop.py cannot be written: File exists"),
    ("init shop.py/agent", 1, "shop.py/agent cannot be written: Not a directory"),
    ("init one two", 2, "Got unexpected extra argument(s) (two)"),
    ("completion", 2, "Missing argument 'SHELL'."),
    ("artifacts list", 2, "Missing option '--namespace'."),
    ("doctor --tools shop.py", 2, "No such option: --tools"),
    ("completion tcsh", 2, "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
]


FILES = {
    "shop.py": 'def add(a: int, b: int = 10) -> int:\n    """Adds two numbers."""\n    return a + b\n',
    "bad.json": '{"a": 1',
    "list.json": "[1]",
    "notes.txt": "x",
    "broken.py": "def f(:",
    "empty.py": "x = 1",
    "rules.toml": "nonsense",
    "bare.py": "def add(a: int) -> int:\n    return a\n",
    "imports.py": "from pathlib import Path\n\nfrom shop import *\n",
    "empty.json": "{}",
    "off.json": '{"mcpServers": {"fs": {"args": []}}}',
    "pins.json": '{"version": 1, "servers": {}}',
    "profiles.json": '{"profiles": {"ops": {"token": "sha256:' + "0" * 64 + '", "tools": ["*"]}}}',
    "misspelt.json": '{"mcpserver": {}, "profiles": {"ops": {"token": "sha256:' + "0" * 64 + '", "tools": ["*"]}}}',
}
"""The files that the lines name."""


@pytest.mark.parametrize(("line", "code", "message"), WRONG, ids=[line for line, _, _ in WRONG])
def test_a_wrong_command_line_is_told_what_is_wrong(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name, text in FILES.items():
        write(name, text)
    ended = run_here(*shlex.split(line))
    said = ended.stderr + ended.stdout
    assert (ended.code, message in said or said, "Traceback" in said) == (code, True, False)
    # A result of a command that ran goes to standard output, also with code 1.
    assert (ended.stdout == "") is (code != 1 or ended.stderr.startswith("toolwire: "))
