"""Models ask their provider through its real SDK, and say why there is no reply."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.documents.pages import blocks_of
from tests.protocols.providers import Fault, Provider, provider
from tests.session.test_broken_streams import ANSWER, PAID, PROVIDERS, pay
from toolwire import ConfigurationError, Session, Turn
from toolwire.models import AnthropicModel, GeminiModel, ModelFailed, OpenAIModel, Price, Request, Usage
from toolwire.testing import ScriptedModel

Make = Callable[..., Any]


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


CLOSES: list[Callable[[], Any]] = []
"""What closes the clients that were made and not closed."""


def chat(server: Provider, *, retries: int = 0, **options: Any) -> OpenAIModel:
    client = openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=retries)
    CLOSES.append(client.close)
    return OpenAIModel("m", client=client, **options)


def responses(server: Provider, **options: Any) -> OpenAIModel:
    return chat(server, api="responses", **options)


def claude(server: Provider, *, retries: int = 0, **options: Any) -> AnthropicModel:
    client = anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=retries)
    CLOSES.append(client.close)
    return AnthropicModel("m", client=client, **options)


def gemini(server: Provider, *, retries: int = 0, **options: Any) -> GeminiModel:
    again = types.HttpRetryOptions(attempts=retries + 1, initial_delay=0.01, max_delay=0.02)
    http = types.HttpOptions(base_url=server.url, retry_options=again)
    client = genai.Client(api_key="k", http_options=http)
    CLOSES.append(client.aio.aclose)
    return GeminiModel("m", client=client, **options)


MODELS: dict[str, Make] = {
    "openai": chat,
    "openai-responses": responses,
    "anthropic": claude,
    "gemini": gemini,
}


async def follow(model: Any, protocol: str) -> tuple[str | None, Usage]:
    """Returns the answer of a loop over the model, and the tokens that it took. All clients are closed at its end."""
    try:
        return await _follow(model, protocol)
    finally:
        while CLOSES:
            await CLOSES.pop()()


async def _follow(model: Any, protocol: str) -> tuple[str | None, Usage]:
    session, used = Session([pay], protocol=protocol), Usage()
    messages: list[Any] = [PROVIDERS[protocol][3] if protocol in PROVIDERS else {"role": "user", "content": "Pay."}]
    while True:
        native = session.protocol.is_native
        request = Request(
            system="Be kind." if native else f"Be kind.\n\n{session.system_prompt}",
            messages=messages,
            tools=session.request_tools if native else [],
        )
        stream = session.stream()
        async for piece in model.stream(request):
            if isinstance(piece, Usage):
                used += piece
            else:
                stream.feed(piece)
        turn: Turn = await session.turn(stream.reply())
        if turn.is_final:
            return turn.answer, used
        said = turn.reply.message
        said = {"role": "assistant", "content": said} if isinstance(said, str) else said
        messages += [*(said if isinstance(said, list) else [said]), *turn.messages]


@pytest.mark.parametrize("name", MODELS)
async def test_a_loop_over_a_model_calls_and_answers(server: Provider, name: str) -> None:
    PAID.clear()
    _, calls, text, _ = PROVIDERS[name]
    server.script, server.requests[:] = [calls, text], []
    answer, _ = await follow(MODELS[name](server), name)
    assert (answer, PAID) == (ANSWER, [50])
    first, second = server.requests
    assert "Be kind." in str(first)
    assert first["tools"] == second["tools"]
    assert "paid 50" in str(second)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_says_its_name_and_its_provider(server: Provider, name: str) -> None:
    model = MODELS[name](server)
    provider = {"openai": "openai", "openai-responses": "openai", "anthropic": "anthropic", "gemini": "gcp.gemini"}[
        name
    ]
    assert (model.name, model.provider) == ("m", provider)


@pytest.mark.parametrize("name", MODELS)
async def test_a_text_protocol_runs_on_every_model(server: Provider, name: str) -> None:
    """Its prompt goes out, its calls come as text, and no tools stand in the request."""
    PAID.clear()
    _, _, text, _ = PROVIDERS[name]
    call = '<tool_call>\n{"name": "pay", "arguments": {"amount": 5}}\n</tool_call>'
    server.script, server.requests[:] = [_said(name, call), text], []
    answer, _ = await follow(MODELS[name](server, protocol="json"), "json")
    assert (answer, PAID) == (ANSWER, [5])
    assert "tools" not in server.requests[0]
    assert "pay" in str(server.requests[0])


def _said(name: str, text: str) -> list[Any]:
    """The stream of an answer with this text."""
    _, _, template, _ = PROVIDERS[name]
    written = str(template).replace("Paid 5, ", "\x01").replace("and not 50.", "\x02")
    assert "\x01" in written
    return _replaced(template, {"Paid 5, ": text, "and not 50.": "", ANSWER: text})


def _replaced(value: Any, words: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, words) for item in value]
    return words.get(value, value) if isinstance(value, str) else value


FAULTS = {
    (401, "the key is wrong"): "auth",
    (403, "not allowed"): "auth",
    (429, "slow down"): "rate",
    (500, "a fault"): "overloaded",
    (503, "overloaded"): "overloaded",
    (529, "overloaded"): "overloaded",
    (400, "the model is unknown"): "refused",
    (404, "no such model"): "refused",
    (400, "this model's maximum context length is 8192 tokens"): "context_length",
    (413, "the prompt is too long"): "context_length",
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("fault", "kind"), FAULTS.items(), ids=[f"{code} {kind}" for (code, _), kind in FAULTS.items()]
)
async def test_the_failure_of_a_request_has_its_kind(
    server: Provider, name: str, fault: tuple[int, str], kind: str
) -> None:
    server.script = [Fault(status=fault[0], words=fault[1])]
    with pytest.raises(ModelFailed, match=fault[1]) as failed:
        await follow(MODELS[name](server), name)
    assert failed.value.kind == kind


TOO_LONG = {
    "openai-responses": "Your input exceeds the context window of this model.",
    "anthropic": "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
}


@pytest.mark.parametrize("name", TOO_LONG)
async def test_the_words_of_providers_for_a_long_conversation_are_known(server: Provider, name: str) -> None:
    server.script = [Fault(status=400, words=TOO_LONG[name])]
    with pytest.raises(ModelFailed) as failed:
        await follow(MODELS[name](server), name)
    assert failed.value.kind == "context_length"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("breaks", [False, True], ids=["ends", "breaks"])
@pytest.mark.parametrize("protocol", ["native", "json"])
async def test_a_stream_that_is_cut_anywhere_is_no_reply(
    server: Provider, name: str, breaks: bool, protocol: str, whole: bool
) -> None:
    PAID.clear()
    _, calls, text, _ = PROVIDERS[name]
    protocol = name if protocol == "native" else protocol
    for at in range(16) if whole else (0, 5, 10, 15):
        server.script = [Fault(events=tuple(calls if at % 2 else text), share=at / 16, breaks=breaks)]
        with pytest.raises(ModelFailed) as failed:
            await follow(MODELS[name](server, protocol=protocol), protocol)
        assert failed.value.kind == "network", at
    assert PAID == []


@pytest.mark.parametrize("name", MODELS)
async def test_a_server_that_is_not_there_is_a_failure_of_the_network(name: str) -> None:
    nobody = Provider("http://127.0.0.1:9")
    with pytest.raises(ModelFailed) as failed:
        await follow(MODELS[name](nobody), name)
    assert failed.value.kind == "network"


@pytest.mark.parametrize("name", MODELS)
async def test_retries_are_those_of_the_client(server: Provider, name: str) -> None:
    _, _, text, _ = PROVIDERS[name]
    server.script, server.requests[:] = [Fault(status=503), text], []
    answer, _ = await follow(MODELS[name](server, retries=1), name)
    assert (answer, len(server.requests)) == (ANSWER, 2)


USED = {
    "openai": {"usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}},
    "openai-responses": {
        "usage": {
            "input_tokens": 9,
            "output_tokens": 4,
            "total_tokens": 13,
            "input_tokens_details": {"cached_tokens": 3},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
    },
}


async def test_the_tokens_are_those_that_the_provider_counts(server: Provider) -> None:
    text = list(PROVIDERS["openai"][2])
    last = {**text[-1], "choices": [], **USED["openai"]}
    server.script = [[*text, last]]
    assert (await follow(chat(server), "openai"))[1] == Usage(input=9, output=4)
    *events, completed = PROVIDERS["openai-responses"][2]
    server.script = [[*events, {**completed, "response": {**completed["response"], **USED["openai-responses"]}}]]
    assert (await follow(responses(server), "openai-responses"))[1] == Usage(input=9, output=4, cached=3)
    server.script = [PROVIDERS["anthropic"][2]]
    assert (await follow(claude(server), "anthropic"))[1] == Usage(input=1, output=1)
    *chunks, end = PROVIDERS["gemini"][2]
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "cachedContentTokenCount": 3}
    server.script = [[*chunks, {**end, "usageMetadata": counts}]]
    assert (await follow(gemini(server), "gemini"))[1] == Usage(input=9, output=6, cached=3)


@pytest.mark.parametrize("make", [chat, responses, claude, gemini])
def test_a_protocol_of_another_api_is_an_error(server: Provider, make: Make) -> None:
    own = make(server).protocol
    other = "gemini" if own != "gemini" else "openai"
    with pytest.raises(ConfigurationError, match=f"this model's API is that of '{own}'"):
        make(server, protocol=other)
    assert make(server, protocol="attp", price=Price(input=1, output=2)).price == Price(input=1, output=2)


def test_an_unknown_api_is_an_error(server: Provider) -> None:
    with pytest.raises(ConfigurationError, match="write 'chat' or 'responses'"):
        chat(server, api="batch")


@pytest.mark.parametrize(
    ("model", "module", "package"),
    [
        (OpenAIModel, "openai", "openai"),
        (AnthropicModel, "anthropic", "anthropic"),
        (GeminiModel, "google", "google-genai"),
    ],
)
def test_a_missing_sdk_is_an_error_with_the_command(
    model: Make, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    if module == "google":
        monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(ConfigurationError, match=f"pip install {package}"):
        model("m")


SETTINGS: dict[str, dict[str, Any]] = {
    "openai": {"temperature": 0.5},
    "openai-responses": {"temperature": 0.5},
    "anthropic": {"max_tokens": 5},
    "gemini": {"temperature": 0.5},
}


async def test_settings_go_into_each_request(server: Provider) -> None:
    server.requests[:] = []
    for name, make in MODELS.items():
        server.script = [PROVIDERS[name][2]]
        await follow(make(server, **SETTINGS[name]), name)
    assert [server.requests[at]["temperature"] for at in (0, 1)] == [0.5, 0.5]
    assert server.requests[2]["max_tokens"] == 5
    assert server.requests[3]["generationConfig"]["temperature"] == 0.5


async def test_a_reply_of_anthropic_has_a_limit_by_default(server: Provider) -> None:
    server.requests[:], server.script = [], [PROVIDERS["anthropic"][2]]
    await follow(claude(server), "anthropic")
    assert server.requests[0]["max_tokens"] == 8_192


@pytest.mark.parametrize("model", [OpenAIModel, AnthropicModel, GeminiModel])
def test_what_belongs_to_the_client_is_an_error_that_says_so(model: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "k")
    with pytest.raises(ConfigurationError, match=r"belongs to its client: write client=\w+\(api_key=\.\.\.\)"):
        model("m", api_key="k")
    with pytest.raises(ConfigurationError, match=r"\(client=str\): give a "):
        model("m", client="k")


@pytest.mark.parametrize(
    ("model", "variable"),
    [(OpenAIModel, "OPENAI_API_KEY"), (AnthropicModel, "ANTHROPIC_API_KEY"), (GeminiModel, "GEMINI_API_KEY")],
)
def test_without_a_key_the_error_says_what_to_set(model: Make, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match=f"found no key: set {variable}, or give client="):
        model("m")


async def test_a_reader_that_leaves_closes_the_stream(server: Provider) -> None:
    for name, make in MODELS.items():
        server.script = [PROVIDERS[name][2], PROVIDERS[name][2]]
        model = make(server)
        pieces = model.stream(Request(messages=[PROVIDERS[name][3]]))
        assert await anext(pieces)
        await pieces.aclose()
        assert (await follow(make(server), name))[0] == ANSWER


@pytest.mark.parametrize("protocol", [*MODELS, "attp", "xml", "json"])
async def test_the_loop_of_the_page_runs_in_every_protocol(protocol: str) -> None:
    names: dict[str, Any] = {}
    lines, _, _ = blocks_of("docs/models.md")[0].partition("\nprint(")
    exec(lines, names)
    model = ScriptedModel([[("double", {"n": 21})], "It is 42."], protocol=protocol)
    first = {"role": "user", "content": "Double 21."}
    if protocol == "gemini":
        first = {"role": "user", "parts": [{"text": "Double 21."}]}
    assert await names["answer"](model, first) == ("It is 42.", Usage(input=200, output=20))
    assert "42" in str(model.requests[1].messages)
