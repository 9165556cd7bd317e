"""The machinery of toolwire's tools. Those that users register are in `facade/built_in`."""
