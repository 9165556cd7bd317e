"""Servers, clients and coding agents of others, against a `toolwire serve` process. They come from npm and PyPI."""
