"""The words by which providers and their compatible servers say why a reply ended."""

from __future__ import annotations

from toolwire.vocabulary.calls import Ended

_COMPLETE = frozenset(
    {"", "null", "stop", "end_turn", "stop_sequence", "tool_use", "tool_calls", "function_call"}
    | {"eos", "eos_token", "complete"}
)
"""The model ended the reply itself. The last row has words of compatible servers."""

_CUT: dict[str, str] = {
    "length": "at the token limit",
    "max_tokens": "at the token limit",
    "model_length": "at the token limit",
    "model_context_window_exceeded": "at the end of the context window",
}
_FILTERED = frozenset({"content_filter", "refusal", "safety", "sensitive", "guardrail_intervened"})


def find_ending(word: str) -> tuple[Ended | None, str]:
    """Returns why a reply ended, and what a problem says of it. None if the model ended the reply itself.

    An unknown word stands for a failure, so that nothing runs of a reply that may not be whole.
    """
    known = word.lower()
    if known in _COMPLETE:
        return None, ""
    if known in _CUT:
        return "length", _CUT[known]
    if known in _FILTERED:
        return "filter", "at a content filter"
    if known == "pause_turn":
        return "paused", ""
    return "failed", "with an error" if known == "error" else f"with the reason {word!r:.80}"
