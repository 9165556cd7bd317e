"""The classes that users hold: tools, registries, toolkits. Thin: the layers below do the work."""
