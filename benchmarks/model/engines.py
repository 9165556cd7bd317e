"""A GGUF file as a model that answers messages: by xllamacpp, or by llama-cpp-python if that is installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

CONTEXT_TOKENS = 8192
"""Tokens of a whole conversation: the longest prompt here has 3,000, and a reply at most 300."""

REPLY_TOKENS = 300
"""Tokens of one reply, at most."""

RETRY_TEMPERATURE = 0.7
"""Temperature of a reply after a failure, in `RETRY_VARIES`. A greedy model mostly repeats the reply that failed."""

RETRY_VARIES = "attp"
"""The only format in which a temperature helps. It lowered the right next replies in `json` from 69 to 40 %."""

SEED = 17
"""The seed of replies with a temperature, so that a run can be repeated."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A reply of the model.

    Attributes:
        text: The reply.
        tokens_in: Tokens of the conversation before it.
        tokens_out: Tokens of the reply.
    """

    text: str
    tokens_in: int
    tokens_out: int


class Engine(Protocol):
    """Answers a conversation. Temperature 0 is greedy. A grammar in GBNF holds the reply to its form."""

    def __call__(
        self, messages: Sequence[Mapping[str, str]], grammar: str | None, *, temperature: float = 0
    ) -> Answer: ...


class EngineMissing(Exception):
    """No engine is installed."""


def load_engine(model: Path, *, threads: int) -> Engine:
    """Loads the model of a GGUF file.

    Raises:
        EngineMissing: Neither engine is installed.
        FileNotFoundError: The path is not a file.
    """
    if not model.is_file():
        raise FileNotFoundError(f"there is no model file {str(model)!r}: give the path of a GGUF file")
    if importlib.util.find_spec("xllamacpp") is not None:
        return _xllamacpp(model, threads)
    if importlib.util.find_spec("llama_cpp") is not None:
        return _llama_cpp(model, threads)
    raise EngineMissing(
        "no engine for GGUF files is installed: .venv/bin/uv pip install --python .venv/bin/python xllamacpp"
    )


def _xllamacpp(model: Path, threads: int) -> Engine:
    import xllamacpp  # pyright: ignore[reportMissingImports]

    parameters: Any = xllamacpp.CommonParams()
    parameters.model.path = os.fspath(model)
    parameters.n_ctx, parameters.n_parallel = CONTEXT_TOKENS, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    # It writes its progress to stderr otherwise.
    parameters.verbosity = -1
    server: Any = xllamacpp.Server(parameters)

    def answer(messages: Sequence[Mapping[str, str]], grammar: str | None, *, temperature: float = 0) -> Answer:
        sampling = {"max_tokens": REPLY_TOKENS, "temperature": temperature, "seed": SEED}
        # The server keeps the prompts of earlier requests: tasks of one group share the longest part.
        request = {"messages": list(messages), "cache_prompt": True, **sampling}
        return _read(server.handle_chat_completions(request | ({} if grammar is None else {"grammar": grammar})))

    return answer


def _llama_cpp(model: Path, threads: int) -> Engine:
    import llama_cpp  # pyright: ignore[reportMissingImports]

    engine: Any = llama_cpp.Llama(os.fspath(model), n_ctx=CONTEXT_TOKENS, n_threads=threads, verbose=False)

    def answer(messages: Sequence[Mapping[str, str]], grammar: str | None, *, temperature: float = 0) -> Answer:
        held = None if grammar is None else llama_cpp.LlamaGrammar.from_string(grammar, verbose=False)
        sampling = {"max_tokens": REPLY_TOKENS, "temperature": temperature, "seed": SEED}
        return _read(engine.create_chat_completion(list(messages), grammar=held, **sampling))

    return answer


def _read(response: Mapping[str, Any]) -> Answer:
    if "choices" not in response:
        raise RuntimeError(f"the engine refused the request: {response.get('error', response)}")
    usage = response["usage"]
    return Answer(
        text=response["choices"][0]["message"]["content"] or "",
        tokens_in=usage["prompt_tokens"],
        tokens_out=usage["completion_tokens"],
    )
