"""Tools made of an OpenAPI document: `api_document` reads it, `references` and `operations` prepare it for the parser,
`tools` makes the tools, `arguments` their requests, `api_server` sends these, and `api_results` reads the answers.
"""
