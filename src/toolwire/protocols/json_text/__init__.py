"""JSON in text: the model writes calls as JSON, alone, in tags or in code fences.

`layout.py` splits a reply into parts, and `call_forms.py` in `reading/` makes calls from its JSON.
"""
