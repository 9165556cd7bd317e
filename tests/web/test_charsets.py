"""A server's charset chooses among the codecs of the web alone."""

from __future__ import annotations

import codecs
import subprocess
import sys
from functools import partial

import pytest

from tests.architecture.source import ROOT
from tests.processor import REFERENCE_MS, reference, thread_s
from toolwire.builtin.web.charsets import codec_of
from toolwire.builtin.web.fetching import content_type_of

SIZE = 300_000
LIMIT_S = 1.0
PROGRAM = """
import time
from toolwire.builtin.web.fetching import Fetched, content_type_of
from toolwire.builtin.web.page_cache import _page

kind, charset = content_type_of("text/plain; charset={charset}")
body = (b"{unit}" * {size})[:{size}]
began = time.process_time()
_page(Fetched(url="", status=200, content_type=kind, charset=charset, body=body))
print(time.process_time() - began)
"""


def cost_s(charset: str, unit: str) -> float:
    """Returns the processor seconds of decoding a page, in a process of its own."""
    program = PROGRAM.format(charset=charset, unit=unit, size=SIZE)
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return float(run.stdout) / min(thread_s(reference) for _ in range(3)) * REFERENCE_MS / 1_000


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "unicode_escape", "utf-8", "gb2312", "iso-2022-jp"])
@pytest.mark.parametrize("unit", ["a", "xn--a."])
def test_a_page_is_decoded_in_time_whatever_its_server_names(charset: str, unit: str) -> None:
    assert cost_s(charset, unit) <= LIMIT_S


def test_codecs_that_the_web_does_not_know_are_dangerous() -> None:
    """The control: Python knows them, and one of them takes seconds for it."""
    page = b"a" * SIZE
    dangerous, known = (thread_s(partial(page.decode, codec, "replace")) for codec in ("punycode", "cp932"))
    assert dangerous > 100 * known
    with pytest.raises(UnicodeError):
        (b"xn--a." * 100).decode("idna", "replace")


@pytest.mark.parametrize(
    ("header", "codec"),
    [
        ("text/html; charset=UTF-8", "utf-8-sig"),
        ('text/html; charset="ISO-8859-1"', "cp1252"),
        ("text/html; charset=gb2312", "gb18030"),
        ("text/html; charset= Shift_JIS ", "cp932"),
        ("text/html; charset=punycode", ""),
        ("text/html; charset=idna", ""),
        ("text/html; charset=zlib", ""),
        ("text/html", ""),
    ],
)
def test_a_charset_is_one_of_the_labels_of_the_web(header: str, codec: str) -> None:
    assert content_type_of(header) == ("text/html", codec)
    assert not codec or codecs.lookup(codec)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        *[(label, "Zoë") for label in ("latin1", "windows-1252", "l5", "iso-8859-15", "macintosh", "utf-16")],
        *[(label, "привет") for label in ("koi8-r", "windows-1251", "iso-8859-5", "ibm866")],
        *[(label, "中文") for label in ("gbk", "gb2312", "big5", "gb18030", "utf-16be")],
        *[(label, "日本語") for label in ("euc-jp", "shift_jis", "iso-2022-jp")],
        ("euc-kr", "한국어"),
    ],
)
def test_pages_of_each_charset_are_read(label: str, text: str) -> None:
    assert text.encode(label if label != "l5" else "latin5").decode(codec_of(label)) == text
