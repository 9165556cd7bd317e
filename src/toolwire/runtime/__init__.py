"""Owners of what is shared and waits: worker threads, the portal's event loop, and parts such as the sandbox."""
