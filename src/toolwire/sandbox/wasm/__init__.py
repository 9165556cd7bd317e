"""Programs in WebAssembly: CPython and the child's own code as a guest in this process, on any system."""
