"""README's blocks, the displays of toolwire's objects, and the approver, in a real notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.documents.pages import blocks_of
from tests.documents.test_readme import WEATHER
from tests.notebook.kernels import Page, display_of, page, printed, run_notebook
from tests.protocols.providers import provider

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M/A8B8ABQABgP/Io7GwAAAAAElFTkSuQmCC"
SCRIPT = "<script>alert(1)</script>"
SETUP = f'''
from toolwire import Session, ToolRegistry
from toolwire.approvals import console_approver

SCRIPT, PNG = {SCRIPT!r}, {PNG!r}
registry = ToolRegistry()

@registry.register
def look(thing: str) -> str:
    """Looks <script>alert(1)</script>."""
    return thing

def image(**source):
    return {{"type": "image", "source": source}}

@registry.register
def draw(source: dict) -> list:
    """Draws."""
    return [{{"type": "text", "text": SCRIPT}}, image(**source)]

@registry.register(permission="confirm")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {{amount}}"
'''


@pytest.fixture(autouse=True)
def _own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("TOOLWIRE_KEY", "00" * 32)


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags_of(html: str) -> set[str]:
    return {tag for tag, _ in Tags(html).found}


def images_of(html: str) -> list[str | None]:
    return [attributes.get("src") for tag, attributes in Tags(html).found if tag == "img"]


def test_the_blocks_of_the_readme_run_in_a_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of("README.md")
    cells = [block.replace("asyncio.run(read())", "await read()") for block in blocks]
    assert sum(cell != block for cell, block in zip(cells, blocks, strict=True)) == 1
    with provider() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        server.script = list(WEATHER)
        outputs = [printed(outputs) for outputs in run_notebook(cells, tmp_path)]
    assert outputs[0] == "It is clear.\n"
    assert outputs[1].endswith("dune 2\nemma 1\n\n")
    assert outputs[3].endswith("['finished', '90\\n', 10]\n")
    assert outputs[4:] == ["True True\n", "1  False\n1 2  False\n1 2 3  False\n1 2 3  True\n"]


def test_objects_show_themselves_in_a_notebook(tmp_path: Path) -> None:
    ask = "<tool_call><name>{}</name><params><{}>{}</{}></params></tool_call>"
    cells = [
        SETUP,
        "registry",
        "session = Session(registry, protocol='xml', store='sqlite:///runs.db'); session",
        "registry.invoke('draw', {'source': {'type': 'base64', 'media_type': 'image/png', 'data': PNG}})",
        "registry.run_program(f\"print('hello')\\ndraw({{'type': 'base64', 'media_type': '', 'data': '{PNG}'}})[1]\")",
        "registry.run_program('nothing')",
        f"session.run_turn({ask.format('look', 'thing', 'a thing', 'thing')!r})",
        f"await session.turn({ask.format('pay', 'amount', '5', 'amount')!r})",
        "session.run_turn('All <b>done</b>.')",
        "session.run_turn('<tool_call><name>pay')",
    ]
    shown = [display_of(outputs) for outputs in run_notebook(cells, tmp_path)[1:]]
    registry, session, result, program, failed, turn, suspended, final, refused = (each["text/html"] for each in shown)
    plain = [each["text/plain"] for each in shown]
    assert plain[:2] == ["<ToolRegistry: 3 tools>", "<Session 'xml': 3 tools, with a store>"]
    assert [text.partition(", 0.")[0] for text in plain[3:5]] == [
        "<ProgramResult finished: 1 call",
        "<ProgramResult failed: NameError, 0 calls",
    ]
    assert plain[5] == "<Turn: 1 result, 0 failed>"
    assert ("pay" in registry, "confirm" in registry, "Pays." in session) == (True, True, True)
    assert images_of(result) == images_of(program) == [f"data:image/png;base64,{PNG}"]
    assert "<pre>hello\n" in program
    assert "NameError: name &#x27;nothing&#x27; is not defined" in failed
    assert "a thing" in turn
    assert "&quot;amount&quot;: 5" in suspended
    assert final == "<pre>All &lt;b&gt;done&lt;/b&gt;.</pre>"
    assert "Turn refused" in refused


def test_no_text_of_a_tool_or_a_model_becomes_markup(tmp_path: Path) -> None:
    sources = [
        {"type": "base64", "media_type": "image/png", "data": f'"><script>alert(1)</script>{PNG}'},
        {"type": "base64", "media_type": 'image/png"><script>alert(1)</script>', "data": PNG},
        {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+"},
        {"type": "url", "url": "https://attacker.example/?read=secret"},
        {"type": "url", "url": 'data:text/html,"><script>alert(1)</script>'},
    ]
    cells = [
        f"{SETUP}\nfrom IPython.display import HTML\nHTML(look(SCRIPT))",
        "registry",
        "Session(registry)",
        "registry.invoke('look', {'thing': SCRIPT})",
        "registry.invoke(SCRIPT)",
        "registry.run_program(f'print({SCRIPT!r})')",
        "registry.run_program(f'raise ValueError({SCRIPT!r})')",
        "registry.run_program(f'{SCRIPT!r}')",
        "Session(registry, protocol='xml').run_turn(SCRIPT)",
        "Session(registry, protocol='json').run_turn('{\"tool_calls\": [{\"name\": \"' + SCRIPT + '\"}]}')",
        *(f"registry.invoke('draw', {{'source': {source!r}}})" for source in sources),
    ]
    control, *shown = [display_of(outputs)["text/html"] for outputs in run_notebook(cells, tmp_path)]
    assert tags_of(control) == {"script"}
    assert set().union(*map(tags_of, shown)) <= {"table", "tr", "th", "td", "pre", "img"}
    assert all("&lt;script&gt;" in html for html in shown)
    # The image whose media type was wrong is shown by its bytes; no other is, and nothing is loaded from elsewhere.
    assert [address for html in shown for address in images_of(html)] == [f"data:image/png;base64,{PNG}"]


ASK = "<tool_call><name>pay</name><params><amount>5</amount></params></tool_call>"
SESSION = f"{SETUP}\nsession, ask = Session(registry, protocol='xml', approver=console_approver), {ASK!r}"
KEYS = "[y] approve  [n] deny  [e] edit  [a] approve and remember  [s] stop the run  [l] later"


@pytest.fixture(scope="module")
def person() -> Iterator[Page]:
    """A person at a notebook with the session."""
    with page() as there:
        there.run(SESSION)
        yield there


def test_the_person_at_a_notebook_is_asked_below_the_cell(person: Page) -> None:
    blocking = person.run("print(session.run_turn(ask).results[0].data)", ["y"])
    awaited = person.run("print((await session.turn(ask)).results[0].data)", ["what?", "y"])
    denied = person.run("print(session.run_turn(ask).results[0].error)", ["n", "too much"])
    alone = person.run("print(session.run_turn(ask).results[0].failure.kind)", can_ask=False)
    assert (blocking.questions, blocking.text.endswith("paid 5\n")) == (["? "], True)
    assert ('"amount": 5' in blocking.text, KEYS in blocking.text) == (True, True)
    assert (awaited.questions, awaited.text.count(KEYS)) == (["? ", "? "], 2)
    assert denied.text.endswith("'pay' may not be run: too much.\n")
    assert "not decided: this notebook takes no input\n" in alone.text
    assert alone.text.endswith("approval_required\n")


def test_a_question_ends_with_its_cell(person: Page) -> None:
    interrupted = person.run("session.run_turn(ask)", [Page.interrupt])
    # A question that went on would hold the next one up, or take the answer that is meant for it.
    later = person.run("print(session.run_turn(ask).results[0].data)", ["y"])
    own = person.run("print(input('name? '))", ["Ada"])
    assert (interrupted.error, later.questions, own.text) == ("KeyboardInterrupt", ["? "], "Ada\n")
    assert later.text.endswith("paid 5\n")
