"""A newcomer in a fresh environment: installs the wheel and follows the documentation."""
