"""Models: what asks a provider for one reply, as a stream that `session.stream().feed` takes.

>>> from toolwire.models import OpenAIModel, Request  # doctest: +SKIP
>>> model = OpenAIModel("gpt-x-mini")  # doctest: +SKIP
"""

from toolwire.models.anthropic_model import AnthropicModel as AnthropicModel
from toolwire.models.gemini_model import GeminiModel as GeminiModel
from toolwire.models.model import FailureCause as FailureCause
from toolwire.models.model import Model as Model
from toolwire.models.model import ModelFailed as ModelFailed
from toolwire.models.model import Price as Price
from toolwire.models.model import Request as Request
from toolwire.models.model import Usage as Usage
from toolwire.models.openai_model import OpenAIModel as OpenAIModel

__all__ = [
    "AnthropicModel",
    "FailureCause",
    "GeminiModel",
    "Model",
    "ModelFailed",
    "OpenAIModel",
    "Price",
    "Request",
    "Usage",
]
