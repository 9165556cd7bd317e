"""The text of a PDF in a folder, by the confined process that parses the pages of the web."""

from __future__ import annotations

import logging

from toolwire.builtin.files.paths import FileLimit, FilePath, FileRefused
from toolwire.runtime.extras import PAGE_PACKAGES, require_packages
from toolwire.vocabulary.errors import ConfigurationError, SandboxUnavailable

_LOG = logging.getLogger("toolwire.tools")
_NOT_HERE = "{} is a PDF, which cannot be read here: ask the user for its text"


def pdf_text(content: bytes, path: FilePath) -> str:
    """Returns the text of a PDF, at most 1,000,000 characters. A line at its end says where it is cut.

    Raises:
        FileLimit: The PDF takes too much time.
        FileRefused: The PDF is damaged, has no text, or takes too much memory. Or this machine has no extra
            `web`, or cannot confine a process: then a warning in the log `toolwire.tools` says what to do.
    """
    from toolwire.builtin.web.page_reader import TEXT_LIMIT, page_reader
    from toolwire.builtin.web.refusals import FetchFailed, PageLimit

    try:
        require_packages("web", "reading a PDF", PAGE_PACKAGES)
        page = page_reader().read("pdf", content, url="", charset="")
    except (ConfigurationError, SandboxUnavailable) as error:
        _LOG.warning("A PDF was not read: %s", error)
        raise FileRefused(_NOT_HERE.format(path)) from error
    except PageLimit as error:
        raise FileLimit(f"{path}: {error}") from error
    except FetchFailed as error:
        raise FileRefused(f"{path}: {error}") from error
    if not page.text.strip():
        raise FileRefused(f"{path} is a PDF without text, perhaps of scanned pages: ask the user for its text")
    return page.text if page.is_whole else f"{page.text}\n(The text is cut here, after {TEXT_LIMIT:,} characters.)\n"
