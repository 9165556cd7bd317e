"""Docstrings in every style, in English and Chinese."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolwire.definition.docstring.docs import Docs, read_docstring

WHOLE = Docs(
    description="Searches the web.\n\nSlowly, and\nin full.",
    parameters={"query": "the words", "limit": "how many\nat most", "rest": "more words"},
    types={"limit": "int, optional"},
    returns="rows, each with:\n- title: str - its title\n    - nested\n- url: str",
    returns_type="list[dict]",
    raises=(("ValueError", "when query is empty"), ("TimeoutError", "when it takes long")),
    examples=(">>> search('x')\n[]",),
)

GOOGLE = """Searches the web.

    Slowly, and
    in full.

    Args:
        query: the words
        limit (int, optional): how many
            at most
        *rest: more words

    Returns:
        list[dict]: rows, each with:
            - title: str - its title
                - nested
            - url: str

    Raises:
        ValueError: when query is empty
        TimeoutError: when it takes long

    Example:
        >>> search('x')
        []
    """

NUMPY = """Searches the web.

    Slowly, and
    in full.

    Parameters
    ----------
    query : str
        the words
    limit : int, optional
        how many
        at most
    *rest : str
        more words

    Returns
    -------
    list[dict]
        rows, each with:
        - title: str - its title
            - nested
        - url: str

    Raises
    ------
    ValueError
        when query is empty
    TimeoutError
        when it takes long

    Examples
    --------
    >>> search('x')
    []
    """

REST = """Searches the web.

    Slowly, and
    in full.

    :param query: the words
    :param int limit: how many
        at most
    :param rest: more words
    :returns: rows, each with:
        - title: str - its title
            - nested
        - url: str
    :rtype: list[dict]
    :raises ValueError: when query is empty
    :raises TimeoutError: when it takes long
    """

EPYDOC = """Searches the web.

    Slowly, and
    in full.

    @param query: the words
    @param limit: how many
        at most
    @type limit: int
    @param rest: more words
    @return: rows
    @rtype: list[dict]
    @raise ValueError: when query is empty
    @raise TimeoutError: when it takes long
    """


def test_google_style() -> None:
    assert read_docstring(GOOGLE) == WHOLE


def test_numpy_style() -> None:
    assert read_docstring(NUMPY) == replace(WHOLE, types={"query": "str", "limit": "int, optional", "rest": "str"})


def test_rest_style_has_no_examples() -> None:
    assert read_docstring(REST) == replace(WHOLE, types={"limit": "int"}, examples=())


def test_epydoc_style() -> None:
    docs = read_docstring(EPYDOC)
    assert (docs.description, docs.parameters, docs.raises) == (WHOLE.description, WHOLE.parameters, WHOLE.raises)
    assert (docs.returns_type, docs.returns) == ("list[dict]", "rows")
    assert docs.types == {"limit": "int"}


CHINESE = Docs(
    description="在网络上搜索。\n\n注意：很慢。",
    parameters={"query": "搜索词：任意", "limit": "数量"},
    returns="结果，每个包含：\n- title: str - 标题",
    returns_type="list[dict]",
    raises=(("ValueError", "当词为空时"),),
    examples=(">>> search('x')\n[]",),
)


@pytest.mark.requirement("spec.practice.chinese-docstring")
@pytest.mark.parametrize(
    ("headings", "colon"),
    [
        (("参数：", "返回：", "异常：", "示例："), "："),
        (("参数:", "返回值:", "抛出:", "例子:"), ":"),
        (("Args：", "Returns：", "Raises：", "Example："), "："),
    ],
)
def test_chinese_headings_and_full_width_colons(headings: tuple[str, str, str, str], colon: str) -> None:
    arguments, returns, raises, example = headings
    text = f"""在网络上搜索。

    注意：很慢。

    {arguments}
        query{colon}搜索词：任意
        limit（整数）{colon}数量

    {returns}
        list[dict]{colon}结果，每个包含：
            - title: str - 标题

    {raises}
        ValueError{colon}当词为空时

    {example}
        >>> search('x')
        []
    """.replace("limit（整数）", "limit")
    assert read_docstring(text) == CHINESE


def test_a_full_width_colon_in_prose_stays() -> None:
    docs = read_docstring("短。\n\n返回：\n    成功：真，失败：假\n")
    assert (docs.returns, docs.returns_type) == ("成功：真，失败：假", "")


def test_a_docstring_that_fits_no_style_is_all_description() -> None:
    text = "Does it.\n\nArgs:\n    no colon here\n"
    assert read_docstring(text).description.startswith("Does it.\n\nArgs:")
    assert read_docstring(text).parameters == {}


@pytest.mark.parametrize(
    "line",
    [
        "limit: how many",
        "- limit: how many",
        "* limit: how many",
        "`limit`: how many",
        "**limit**: how many",
        "- `limit` (int, optional): how many",
        "limit (dict(str, int)): how many",
        "limit [int]: how many",
        "limit - how many",
        "limit：how many",
    ],
)
@pytest.mark.parametrize("heading", ["Args:", "Arguments:", "Keyword Args:", "Other Parameters:", "参数："])
def test_every_way_to_write_an_item_of_a_list_describes_its_parameter(heading: str, line: str) -> None:
    docs = read_docstring(f"Finds.\n\n{heading}\n    query: words\n    {line}\n", names={"query", "limit"})
    assert (docs.description, docs.parameters) == ("Finds.", {"query": "words", "limit": "how many"})


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n    a, b: both\n    c: one\n",
        "Args:\n    a / `b` (int): both\n\nKeyword Args:\n    c: one\n",
        "Args:\n    a, b: both\n\nArgs:\n    c: one\n",
        "Parameters\n----------\na, b : int\n    both\nc\n    one\n",
        "Parameters\n----------\n`a`, *b : int\n    both\n\nOther Parameters\n----------------\nc : int\n    one\n",
        ":param a, b: both\n:keyword c: one\n",
        "@param a: both\n@param b: both\n@keyword c: one\n",
    ],
)
def test_one_text_describes_several_parameters_and_several_sections_are_read(text: str) -> None:
    docs = read_docstring(f"Finds.\n\n{text}", names={"a", "b", "c"})
    assert (docs.description, docs.parameters) == ("Finds.", {"a": "both", "b": "both", "c": "one"})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Args:\n    a: x\nWarning: Cannot be undone.", "Warning: Cannot be undone."),
        ("Args:\n    a: x\n\nNote:\n    Be careful.\n", "Note:\n    Be careful."),
        ("Args:\n    a: x\n    depth: how deep\n", "Args:\n    depth: how deep"),
        ("Args:\n    a: x\n\n    No name here.\n", "Args:\n    No name here."),
        ("Parameters\n----------\na : int\n    x\n\nNotes\n-----\nSlow.\n", "Notes\n-----\nSlow."),
        ("Parameters\n----------\na\n    x\nwho : int\n    y\n", "Parameters\n----------\nwho : int\n    y"),
        (":param a: x\n:meta private:\n\nCareful.", ":meta private:\n\nCareful."),
        (":param a: x\n:param who: y\n", ":param who: y"),
        (":param a: x\n:class:`T` is used.", ""),
        ("@param a: x\n\n@see: there", "@see: there"),
        ("Returns:\n    one\n\nArgs:\n    a: x\n\nReturns:\n    two\n", "Returns:\n    two"),
        ("Raises:\n    an error if it fails\n\nArgs:\n    a: x\n", "Raises:\n    an error if it fails"),
    ],
)
def test_text_that_belongs_to_nothing_stays_in_the_description(text: str, left: str) -> None:
    docs = read_docstring(f"Finds.\n\n{text}", names={"a"})
    assert docs.description == f"Finds.\n\n{left}".strip()
    assert " ".join(docs.parameters["a"].split()[:1]) == "x"


def test_a_parameter_described_twice_has_both_texts() -> None:
    assert read_docstring("F.\n\nArgs:\n    a: one\n\n:param a: two\n").parameters == {"a": "one\ntwo"}


def test_each_exception_of_a_list_is_named() -> None:
    docs = read_docstring("F.\n\nRaises:\n    ValueError, KeyError: when empty\n    OSError\n")
    assert docs.raises == (("ValueError", "when empty"), ("KeyError", "when empty"), ("OSError", ""))


def test_several_results_of_numpy_are_all_there() -> None:
    docs = read_docstring("F.\n\nReturns\n-------\nx : int\n    the x\ny : int\n    the y\n")
    assert docs.returns == "x : int\n    the x\ny : int\n    the y"


def test_unparsed_the_first_paragraph_is_the_description() -> None:
    text = "Short\n    and wrapped.\n\n    Args:\n        a: b\n"
    assert read_docstring(text, parse=False) == Docs(description="Short\nand wrapped.")


@pytest.mark.parametrize("text", [None, "", "   \n "])
def test_no_docstring_says_nothing(text: str | None) -> None:
    assert read_docstring(text) == Docs()


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n        x: The x\n        y (int): The y\n            in two lines\n    ",
        "参数：\n        x：The x\n        y：The y\n            in two lines\n",
        "Args:\n        x: The x\n        y (int): The y\n            in two lines\n\n    Returns:\n        str: all",
    ],
)
def test_a_docstring_that_begins_with_its_parameters_keeps_their_descriptions(text: str) -> None:
    docs = read_docstring(text)
    described = {name: " ".join(words.split()) for name, words in docs.parameters.items()}
    assert (docs.description, described) == ("", {"x": "The x", "y": "The y in two lines"})


@pytest.mark.parametrize(
    "text",
    [
        "Finds.\n\nARGS:\n    query: the words\n    limit: how many\n",
        "Finds.\n\nargs:\n    query: the words\n    limit: how many\n",
        "Finds.\n\nparameters\n----------\nquery\n    the words\nlimit\n    how many\n",
        "Finds.\n\nArgs:\n    1. query: the words\n    2) limit: how many\n",
        "Finds.\n\nArgs:\n    query -- the words\n    limit - how many\n",
        "Finds.\n\n:Param query: the words\n:PARAM limit: how many\n",
        "Finds.\r\n\r\nArgs:\r\n    query: the words\r\n    limit: how many\r\n",
    ],
)
def test_headings_and_items_in_other_spellings_are_read(text: str) -> None:
    found = read_docstring(text, names={"query", "limit"})
    assert found == Docs(description="Finds.", parameters={"query": "the words", "limit": "how many"})
