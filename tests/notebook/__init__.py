"""toolwire in a notebook: real kernels, as nbclient and a person at a page run them."""
