"""Pages are parsed in a process that can reach nothing, and that is replaced when a page breaks it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolwire.builtin.web import page_reader as module
from toolwire.builtin.web.page_reader import TEXT_LIMIT, PageReader
from toolwire.builtin.web.page_texts import SAMPLE_HTML, SAMPLE_PDF
from toolwire.builtin.web.refusals import FetchFailed, PageLimit
from toolwire.vocabulary.errors import SandboxUnavailable


@pytest.fixture(scope="module")
def reader() -> Iterator[PageReader]:
    made = PageReader()
    yield made
    made.close()


def html(reader: PageReader, body: bytes, charset: str = "") -> tuple[str, str]:
    page = reader.read("html", body, url="https://example.org/a/", charset=charset)
    return page.title, page.text


def test_an_article_is_markdown_without_menus(reader: PageReader) -> None:
    title, text = html(reader, SAMPLE_HTML)
    assert title == "Sample"
    assert text.startswith("# Sample\n\nA sentence that is long enough")
    assert "[a link](https://example.org/b)" in text
    assert "| 1 | 2 |" in text
    assert "menu" not in text


def test_a_page_without_an_article_is_read_whole(reader: PageReader) -> None:
    assert html(reader, b"<html><body><ul><li><a href='/x'>one</a></li></ul></body></html>")[1] == "one"
    assert html(reader, b"<p>short")[1] == "short"
    assert html(reader, b"") == ("", "")


def test_a_pdf_is_its_text(reader: PageReader) -> None:
    assert reader.read("pdf", SAMPLE_PDF, url="https://example.org/", charset="").text == "Sample"


@pytest.mark.parametrize("name", ["gb2312", "big5", "shift_jis", "euc-kr", "koi8-r", "iso-8859-2", "utf-16"])
def test_charsets_are_those_that_the_server_names(reader: PageReader, name: str) -> None:
    word = {"koi8-r": "Привет", "iso-8859-2": "Dvořák", "euc-kr": "안녕", "utf-16": "né"}.get(name, "中文")
    page = f"<html><head><title>{word}</title></head><body><p>{word}</p></body></html>".encode(name)
    assert html(reader, page, charset=name) == (word, word)


def test_a_charset_that_is_unknown_is_found_out(reader: PageReader) -> None:
    page = "<html><head><title>Zoë</title></head><body><p>Zoë</p></body></html>".encode()
    assert html(reader, page, charset="x-unknown") == ("Zoë", "Zoë")


@pytest.mark.parametrize("body", [b"", b"no", b"%PDF-1.4\n" + b"x" * 1_000, SAMPLE_PDF[:60]])
def test_a_damaged_pdf_is_told_and_the_process_stays(reader: PageReader, body: bytes) -> None:
    before = reader.process_id
    with pytest.raises(FetchFailed, match="the PDF cannot be opened"):
        reader.read("pdf", body, url="", charset="")
    assert reader.process_id == before


def test_a_long_text_ends_at_the_limit(reader: PageReader) -> None:
    assert len(html(reader, b"<pre>" + b"a" * (TEXT_LIMIT + 1) + b"</pre>")[1]) == TEXT_LIMIT


def test_threads_share_one_process(reader: PageReader) -> None:
    titles: list[str] = []

    def read(number: int) -> None:
        page = f"<html><head><title>{number}</title></head><body><p>{number}</p></body></html>"
        titles.append(html(reader, page.encode())[0])

    threads = [threading.Thread(target=read, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(titles) == [str(number) for number in range(8)]


def hostile_reader(
    monkeypatch: pytest.MonkeyPatch, folder: Path, body: str, *, is_confined: bool = True, setup: str = ""
) -> PageReader:
    """Returns a reader whose parser runs `body` instead, as one that a page has taken over would."""
    lines = [
        "import ctypes, os, socket, sys, time",
        "from toolwire.builtin.web import page_process, page_texts",
        "def text_of(kind, page, url, charset):",
        "    if page == b'honest' or url == 'https://example.org/':",
        "        return '', 'honest'",
        *(f"    {line}" for line in body.split("; ")),
        "page_process.text_of = text_of",
        setup,
    ]
    if not is_confined:
        lines += [
            "page_process.apply = lambda outgoing, incoming, steps: (",
            "    os.dup2(outgoing, 3), os.dup2(incoming, 4), os.closerange(5, 64))",
            "page_process._is_confined = lambda: True",
        ]
    script = folder / "attack.py"
    script.write_text("\n".join([*lines, "page_process.main()"]))
    monkeypatch.setattr(module, "_MAIN", f"import sys; sys.path[:] = sys.argv[1:]; exec(open({str(script)!r}).read())")
    return PageReader()


ATTACKS = {
    "file": "return '', open('/etc/passwd').read()",
    "write": "open({target!r}, 'w').write('x'); return '', 'done'",
    "connect": "socket.create_connection(('127.0.0.1', 1)); return '', 'done'",
    "socket": "socket.socket(); return '', 'done'",
    "process": "return '', os.popen('id').read()",
    "fork": "pid = os.fork(); os.waitpid(pid, 0) if pid else os._exit(0); return '', 'done'",
    "signal": "os.kill(os.getppid(), 0); return '', 'done'",
    "environment": "return '', open('/proc/self/environ').read() + 'done'",
    "folder": "return '', ' '.join(os.listdir('/'))",
}


@pytest.mark.threat(48)
@pytest.mark.parametrize("name", [*ATTACKS])
def test_a_parser_that_a_page_has_taken_over_reaches_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = ATTACKS[name].format(target=str(tmp_path / "written"))
    reader = hostile_reader(monkeypatch, tmp_path, body)
    with pytest.raises(FetchFailed, match="the page cannot be read"):
        html(reader, b"attack")
    assert not (tmp_path / "written").exists()
    # A page after it is read by a new process.
    assert html(reader, b"honest") == ("", "honest")
    reader.close()


@pytest.mark.threat(48)
@pytest.mark.parametrize("name", ["file", "write", "socket", "process", "fork", "signal", "environment", "folder"])
def test_the_same_parser_reaches_it_without_the_lockdown(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    body = ATTACKS[name].format(target=str(tmp_path / "written"))
    reader = hostile_reader(monkeypatch, tmp_path, body, is_confined=False)
    assert html(reader, b"attack")[1]
    reader.close()


@pytest.mark.threat(49)
@pytest.mark.parametrize(
    "body",
    [
        "memory = [bytes(1 << 20) for _ in range(600)]; return '', 'done'",
        "while True: pass",
        "os.kill(os.getpid(), 9)",
        "ctypes.string_at(0)",
        "os.write(3, b'x' * 100); os._exit(0)",
        "os.write(3, b't' + b'[]'); os._exit(0)",
        "os.write(3, b't' + bytes(range(1, 256))); os._exit(0)",
        "[os.write(3, b't' * 65536) for _ in range(300)]; return '', ''",
        "os.write(3, b't' + bytes(1) + b'mine'); time.sleep(600)",
        "os._exit(0)",
    ],
    ids=["memory", "processor", "killed", "crash", "noise", "list", "no text", "long", "lingers", "no answer"],
)
def test_a_page_that_breaks_its_parser_is_told_and_the_next_is_read(
    body: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = hostile_reader(monkeypatch, tmp_path, body)
    with monkeypatch.context() as patched:
        if "while" in body or "sleep" in body:
            patched.setattr(module, "PAGE_TIMEOUT_S", 1.0)
        with pytest.raises(FetchFailed, match="it needs more than 30 seconds or 512 MiB, or it is damaged"):
            html(reader, b"attack")
    assert html(reader, b"honest") == ("", "honest")
    reader.close()


@pytest.mark.threat(49)
def test_the_kernel_ends_a_page_at_its_processor_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader = hostile_reader(monkeypatch, tmp_path, "while True: pass")
    assert html(reader, b"honest") == ("", "honest")
    before = reader.process_id
    with pytest.raises(PageLimit, match="its markup is too complex"):
        html(reader, b"attack")
    # The host's own timer would have ended the warm process with it.
    assert (html(reader, b"honest"), reader.process_id) == (("", "honest"), before)
    reader.close()


def test_a_page_below_the_limit_of_memory_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader = hostile_reader(
        monkeypatch, tmp_path, "memory = [bytes(1 << 20) for _ in range(400)]; return '', str(len(memory))"
    )
    assert html(reader, b"attack")[1] == "400"
    reader.close()


@pytest.mark.threat(48)
def test_no_page_sees_one_before_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = "page_texts.kept = getattr(page_texts, 'kept', 0) + 1; return '', str(page_texts.kept)"
    reader = hostile_reader(monkeypatch, tmp_path, body)
    assert [html(reader, b"attack")[1] for _ in range(3)] == ["1", "1", "1"]
    reader.close()


def test_the_process_gets_no_environment(reader: PageReader, monkeypatch: pytest.MonkeyPatch) -> None:
    html(reader, b"<p>x")
    environment = Path(f"/proc/{reader.process_id}/environ").read_bytes()
    assert [each for each in environment.split(b"\0") if each] == [b"LANG=C.UTF-8"]


def test_a_machine_without_seccomp_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAIN", "import os; os.write(1, b'u')")
    with pytest.raises(SandboxUnavailable, match="this kernel has no seccomp"):
        html(PageReader(), b"<p>x")


def test_the_process_ends_with_its_host() -> None:
    code = (
        "from toolwire.builtin.web.page_reader import page_reader\n"
        "reader = page_reader()\n"
        "reader.read('html', b'<p>x', url='', charset='')\n"
        "print(reader.process_id)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
