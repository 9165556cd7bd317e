"""The providers' own formats: OpenAI chat and responses, Anthropic and Gemini.

The module of a provider splits a reply into parts. `written.py` makes calls from the parts, and `streams/` collects
them from a stream. `provider_schema.py`, `strict_schema.py` and `gemini_schema.py` adapt schemas to a provider.
"""
