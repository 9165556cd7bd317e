"""Docstrings in every style, in English and Chinese."""

from __future__ import annotations

import pytest

from toolwire.definition.docstring import Docs, read_docstring

WHOLE = Docs(
    description="Searches the web.\n\nSlowly, and\nin full.",
    parameters={"query": "the words", "limit": "how many\nat most", "rest": "more words"},
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


def without_examples(docs: Docs) -> Docs:
    return Docs(
        description=docs.description,
        parameters=docs.parameters,
        returns=docs.returns,
        returns_type=docs.returns_type,
        raises=docs.raises,
    )


def test_google_style() -> None:
    assert read_docstring(GOOGLE) == WHOLE


def test_numpy_style() -> None:
    assert read_docstring(NUMPY) == WHOLE


def test_rest_style_has_no_examples() -> None:
    assert read_docstring(REST) == without_examples(WHOLE)


def test_epydoc_style() -> None:
    docs = read_docstring(EPYDOC)
    assert (docs.description, docs.parameters, docs.raises) == (WHOLE.description, WHOLE.parameters, WHOLE.raises)
    assert (docs.returns_type, docs.returns) == ("list[dict]", "rows")


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
