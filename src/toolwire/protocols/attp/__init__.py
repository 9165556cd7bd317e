"""ATTP: the model replies with a TOML document, and its program calls the tools.

`parse.py` reads a reply strictly, with `document.py`. If that fails, `recover.py` recovers the document (`layout.py`)
and its values (`value_reader.py`). `prompt.py` writes the system prompt, and `render.py` the text for the model after a
reply.
"""
