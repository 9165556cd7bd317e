"""The wheel in a fresh environment, outside the repository: every page, example and command works as written."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.cli.test_help_pages import ALL as COMMANDS
from tests.cli.test_wrong_command_lines import FILES, WRONG
from tests.documents.pages import PAGES, blocks_of, said_by, text_of
from tests.documents.test_pages import PLAIN
from tests.examples.test_agents import ANSWER, EXAMPLES, SCRIPTS
from tests.newcomer.environment import COLUMNS, EACH_LIMIT_S, Environment, build_wheel
from tests.protocols.providers import provider
from toolwire import __version__

INSTALLS = {
    "README.md": "`pip install openai`",
    "docs/built_in/web_fetch.md": "pip install 'toolwire[web]'",
    "docs/built_in/web_search.md": "pip install 'toolwire[web]'",
    "docs/fastmcp.md": "pip install 'toolwire[fastmcp]'",
    "docs/gateway.md": "pip install 'toolwire[mcp]'",
    "docs/mcp.md": "pip install 'toolwire[mcp]'",
    "docs/langchain.md": "pip install 'toolwire[langchain]'",
    "docs/openai_agents.md": "pip install 'toolwire[openai-agents]'",
    "docs/openapi.md": "pip install 'toolwire[openapi]'",
    "docs/platforms.md": "pip install 'toolwire[wasm]'",
    "docs/pydantic_ai.md": "pip install 'toolwire[pydantic-ai]'",
    "docs/seeds/toolkit.md": "pip install 'toolwire[mcp]'",
    "docs/serving_mcp.md": "pip install 'toolwire[mcp]'",
    "docs/tracing.md": "pip install 'toolwire[otel]'",
    "docs/web.md": "pip install 'toolwire[web]'",
}
"""Pages that need more than the package, each with the words in which it says so."""
EXTRAS = "fastmcp,langchain,mcp,openai-agents,openapi,otel,pydantic-ai,wasm,web"
SDKS = ("openai", "anthropic", "google-genai")
pytestmark = pytest.mark.timeout(2 * EACH_LIMIT_S)


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package alone."""
    folder = tmp_path_factory.mktemp("newcomer")
    environment = Environment(folder, build_wheel(folder))
    environment.install(str(environment.wheel))
    return environment


PAGES_WITH_CODE = [page for page in PAGES if blocks_of(page)]
WRONG_HERE = WRONG[::3]
"""The command lines that go wrong here. `tests/cli` has all of them, with the packages of all extras."""

End = tuple[int, str, str]
"""The exit code, the output and the errors of a process."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The ends of all that the package alone was asked to do. They are run from one process, which starts slowly."""

    pages: dict[str, End]
    helps: dict[tuple[str, ...], End]
    wrong: dict[str, End]


@pytest.fixture(scope="module")
def ended(newcomer: Environment) -> Ended:
    tasks: list[dict[str, object]] = [
        *({"blocks": blocks_of(page)} for page in PAGES_WITH_CODE),
        *({"words": [*words, "--help"]} for words in COMMANDS),
        *({"words": shlex.split(line), "files": FILES} for line, _, _ in WRONG_HERE),
    ]
    ends = iter(newcomer.each(tasks))
    return Ended(
        pages={page: next(ends) for page in PAGES_WITH_CODE},
        helps={words: next(ends) for words in COMMANDS},
        wrong={line: next(ends) for line, _, _ in WRONG_HERE},
    )


def wrong_pages(ends: Mapping[str, End]) -> dict[str, End]:
    """The pages whose blocks fail, or print another text than their comments say."""
    return {page: end for page, end in ends.items() if end[0] != 0 or (page in PLAIN and end[1] != said_by(page))}


def test_the_package_alone_runs_every_page_that_names_no_other(ended: Ended) -> None:
    assert len(ended.pages) - len(INSTALLS) > 10
    # The control: without their packages, no page runs that names one.
    assert set(wrong_pages(ended.pages)) == set(INSTALLS), wrong_pages(ended.pages)


def test_the_script_of_the_wheel_starts(newcomer: Environment) -> None:
    toolwire = str(newcomer.bin / "toolwire")
    assert newcomer.check(toolwire, "--version") == f"toolwire {__version__}\n"
    assert newcomer.run(toolwire, "fly")[0] == 2


def test_every_command_helps_within_the_terminal(ended: Ended) -> None:
    wide = [line for _, page, _ in ended.helps.values() for line in page.splitlines() if len(line) > COLUMNS]
    assert ({words: end for words, end in ended.helps.items() if end[0] != 0}, wide) == ({}, [])


def test_a_wrong_command_line_ends_with_its_exit_code(ended: Ended) -> None:
    wrong = {
        line: (code, output, errors)
        for (line, expected, _), (code, output, errors) in zip(WRONG_HERE, ended.wrong.values(), strict=True)
        # A command of an extra ends with the line that installs it.
        if (code != expected and "pip install" not in errors) or "Traceback" in output + errors
    }
    assert wrong == {}


def test_the_pages_and_agents_that_name_a_package_run_with_it(newcomer: Environment, ended: Ended) -> None:
    """It asks for `ended`, so that what must run without these packages has run before they are installed."""
    assert {page: words in text_of(page) for page, words in INSTALLS.items()} == dict.fromkeys(INSTALLS, True)
    newcomer.install(*SDKS, f"toolwire[{EXTRAS}] @ {newcomer.wheel.as_uri()}")
    with provider() as server:
        reach = {
            **{f"{name}_BASE_URL": server.url for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI")},
            **{f"{name}_API_KEY": "k" for name in ("OPENAI", "ANTHROPIC", "GEMINI")},
        }
        server.script = list(SCRIPTS["openai_agent"])
        ends = newcomer.each([{"blocks": blocks_of(page)} for page in INSTALLS], reach)
        assert wrong_pages(dict(zip(INSTALLS, ends, strict=True))) == {}
        for name, script in SCRIPTS.items():
            server.script = list(script)
            assert newcomer.python(str(EXAMPLES / f"{name}.py"), more=reach) == (0, f"{ANSWER}\n", "")
