"""XML with CDATA: the model writes each call as an element.

`scan.py` finds calls in text, `call.py` and `element.py` read one call, and `values.py` converts its values by the
tool's schema.
"""
