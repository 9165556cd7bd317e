"""The wheel in a fresh environment, outside the repository: every page, example and command works as written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

import pytest

from tests.cli.test_wrong_command_lines import FILES, WRONG
from tests.documents.pages import PAGES, blocks_of, said_by, text_of
from tests.documents.test_pages import PLAIN
from tests.examples.test_agents import ANSWER, EXAMPLES, SCRIPTS
from tests.newcomer.environment import COLUMNS, Environment, build_wheel
from tests.protocols.providers import provider
from toolwire import __version__

INSTALLS = {
    "README.md": "`pip install openai`",
    "docs/built_in/web_fetch.md": "pip install 'toolwire[web]'",
    "docs/built_in/web_search.md": "pip install 'toolwire[web]'",
    "docs/fastmcp.md": "pip install 'toolwire[fastmcp]'",
    "docs/mcp.md": "pip install 'toolwire[mcp]'",
    "docs/seeds/toolkit.md": "pip install 'toolwire[mcp]'",
    "docs/serving_mcp.md": "pip install 'toolwire[mcp]'",
    "docs/tracing.md": "pip install 'toolwire[otel]'",
    "docs/web.md": "pip install 'toolwire[web]'",
}
"""Pages that need more than the package, each with the words in which it says so."""
SDKS = ("openai", "anthropic", "google-genai")


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package alone."""
    folder = tmp_path_factory.mktemp("newcomer")
    environment = Environment(folder, build_wheel(folder))
    environment.install(str(environment.wheel))
    return environment


def wrong_pages(newcomer: Environment, pages: list[str], more: Mapping[str, str]) -> dict[str, object]:
    """The pages whose blocks fail, or print another text than their comments say."""
    ended = newcomer.each([{"blocks": blocks_of(page)} for page in pages], more)
    return {
        page: end
        for page, end in zip(pages, ended, strict=True)
        if end[0] != 0 or (page in PLAIN and end[1] != said_by(page))
    }


PAGES_WITH_CODE = [page for page in PAGES if blocks_of(page)]


def test_the_package_alone_runs_every_page_that_names_no_other(newcomer: Environment) -> None:
    pages = [page for page in PAGES_WITH_CODE if page not in INSTALLS]
    assert len(pages) > 10
    assert wrong_pages(newcomer, pages, {}) == {}


def test_the_script_of_the_wheel_starts(newcomer: Environment) -> None:
    toolwire = str(newcomer.bin / "toolwire")
    assert newcomer.check(toolwire, "--version") == f"toolwire {__version__}\n"
    assert newcomer.run(toolwire, "fly")[0] == 2


def test_every_command_helps_within_the_terminal(newcomer: Environment) -> None:
    found: list[list[str]] = []
    level: list[list[str]] = [[]]
    while level:
        pages = newcomer.each([{"words": [*words, "--help"]} for words in level])
        wide = [line for _, page, _ in pages for line in page.splitlines() if len(line) > COLUMNS]
        assert ([code for code, _, _ in pages], wide) == ([0] * len(level), [])
        found += level
        level = [[*words, name] for words, (_, page, _) in zip(level, pages, strict=True) for name in commands_on(page)]
    assert len(found) > 15


def commands_on(page: str) -> list[str]:
    """The commands that a help page lists."""
    _, _, commands = page.partition("\nCommands:\n")
    return re.findall(r"^  ([a-z]+)  ", commands.partition("\n\n")[0], re.MULTILINE)


def test_a_wrong_command_line_ends_with_its_exit_code(newcomer: Environment) -> None:
    ended = newcomer.each([{"words": shlex.split(line), "files": FILES} for line, _, _ in WRONG])
    wrong = {
        line: (code, output, errors)
        for (line, expected, _), (code, output, errors) in zip(WRONG, ended, strict=True)
        # A command of an extra ends with the line that installs it.
        if (code != expected and "pip install" not in errors) or "Traceback" in output + errors
    }
    assert wrong == {}
    assert len(WRONG) >= 40


def test_the_pages_and_agents_that_name_a_package_run_with_it(newcomer: Environment) -> None:
    assert {page: words in text_of(page) for page, words in INSTALLS.items()} == dict.fromkeys(INSTALLS, True)
    assert set(wrong_pages(newcomer, list(INSTALLS), {})) == set(INSTALLS)  # The control: without them, no page runs.
    newcomer.install(*SDKS, f"toolwire[fastmcp,mcp,otel,web] @ {newcomer.wheel.as_uri()}")
    with provider() as server:
        reach = {
            **{f"{name}_BASE_URL": server.url for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI")},
            **{f"{name}_API_KEY": "k" for name in ("OPENAI", "ANTHROPIC", "GEMINI")},
        }
        server.script = list(SCRIPTS["openai_agent"])
        assert wrong_pages(newcomer, list(INSTALLS), reach) == {}
        for name, script in SCRIPTS.items():
            server.script = list(script)
            assert newcomer.python(str(EXAMPLES / f"{name}.py"), more=reach) == (0, f"{ANSWER}\n", "")
