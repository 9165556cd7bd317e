"""Tools made of an OpenAPI document: `document` reads it, `references` and `operations` prepare it for the parser,
`tools` makes the tools, `arguments` and `sending` make their requests.
"""
