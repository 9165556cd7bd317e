"""Shared resources of a process: worker threads, the portal's event loop, and parts such as the sandbox."""
