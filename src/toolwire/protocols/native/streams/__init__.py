"""Streams of native replies: each provider's pieces are put together to what it would have sent whole."""
