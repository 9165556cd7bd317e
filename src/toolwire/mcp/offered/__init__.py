"""The lists of a server beside its tools, their changes, and the requests that a gateway passes on."""
