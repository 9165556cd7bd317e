"""XML with CDATA: the model writes each call as an element.

`scan.py` finds calls in text, `call_reader.py` and `element.py` read one call, and `conversion.py` in `reading/`
converts its values by the tool's schema.
"""
