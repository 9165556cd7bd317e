"""ATTP: the model replies with a TOML document, and its program calls the tools.

`parse.py` reads a reply strictly, with `document.py`. If that fails, `recover.py` recovers the document (`layout.py`)
and its values (`values.py`). `prompt.py` writes the system prompt, `render.py` the results that the model reads next.
"""
