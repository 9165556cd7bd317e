"""What users hold: tools, registries, toolkits. Thin: the work is done in the layers below."""
