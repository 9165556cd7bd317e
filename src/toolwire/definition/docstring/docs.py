"""The facts in a docstring of Google, NumPy, reST or Epydoc style, with English or Chinese headings.

No text is lost: what belongs to no parameter, return value, exception or example stays in the description.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from toolwire.definition.docstring.sections import DocEntry, Prose, Section, sections_of
from toolwire.vocabulary.texts.lone_surrogates import encodable_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Docs:
    """The parts of a function's docstring."""

    description: str = ""
    """The purpose: all text outside the other parts, and entries whose name is no parameter."""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """The text of each described parameter, by its name without asterisks."""
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    """The type that the docstring gives a parameter, by the parameter's name."""
    returns: str = ""
    """The description of the return value. Continuation lines have no common indentation."""
    returns_type: str = ""
    """The type before that description; empty without one."""
    raises: tuple[tuple[str, str], ...] = ()
    """The name of each exception, and when it is raised."""
    examples: tuple[str, ...] = ()
    """The lines of each example section."""

    @property
    def text(self) -> str:
        """The description and the parts after it, without the parameters."""
        returns = f"{self.returns_type}: {self.returns}" if self.returns_type and self.returns else self.returns
        returns = returns or self.returns_type
        raises = [f"- {name}: {when}".removesuffix(": ").replace("\n", "\n  ") for name, when in self.raises]
        parts = [
            self.description,
            f"Returns: {returns}" if returns else "",
            "\n".join(["Raises:", *raises]) if raises else "",
            "\n".join(["Example:", *self.examples]) if self.examples else "",
        ]
        return "\n\n".join(part for part in parts if part)

    @property
    def summary(self) -> str:
        """The first paragraph of the description."""
        return self.description.split("\n\n", 1)[0]


def read_docstring(text: str | None, *, parse: bool = True, names: Collection[str] | None = None) -> Docs:
    """Parses a docstring. With `parse=False`, the result is only its first paragraph, unchanged.

    `names` are the parameters of the function: a text for any other name stays in the description. None accepts all.
    """
    cleaned = encodable_text(inspect.cleandoc(text.replace("\r\n", "\n"))) if text else ""
    if not cleaned:
        return Docs()
    if not parse:
        return Docs(description=cleaned.split("\n\n", 1)[0])
    reading = _DocsReader(names)
    for section in sections_of(cleaned):
        if isinstance(section, Prose):
            reading.description.add(section.lines)
        else:
            reading.add(section)
    return reading.docs()


class _Description:
    """The text that is left. A section that was taken out leaves one empty line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._is_cut = False

    def add(self, lines: Collection[str]) -> None:
        for line in lines:
            if self._is_cut and not line:
                continue
            if self._is_cut and self._lines and self._lines[-1]:
                self._lines.append("")
            self._is_cut = False
            self._lines.append(line)

    def cut(self) -> None:
        self._is_cut = True

    def text(self) -> str:
        return "\n".join(self._lines).strip()


class _DocsReader:
    """The facts found so far."""

    def __init__(self, names: Collection[str] | None) -> None:
        self.description = _Description()
        self._names = names
        self._parameters: dict[str, str] = {}
        self._types: dict[str, str] = {}
        self._returns: tuple[str, str] | None = None
        self._returns_type = ""
        self._raises: list[tuple[str, str]] = []
        self._examples: list[str] = []

    def add(self, section: Section) -> None:
        """Adds the entries of a section. The other ones stay in the description, below the section's heading."""
        self.description.cut()
        left = [entry.lines for entry in section.entries if not self._take_entry(entry)]
        if left:
            self.description.add(section.heading)
            for lines in left:
                self.description.add(lines)
            self.description.cut()

    def docs(self) -> Docs:
        """Returns all facts."""
        kind, returns = self._returns or ("", "")
        return Docs(
            description=self.description.text(),
            parameters=self._parameters,
            types={name: text for name, text in self._types.items() if text},
            returns=returns,
            returns_type=kind or self._returns_type,
            raises=tuple(self._raises),
            examples=tuple(self._examples),
        )

    def _take_entry(self, entry: DocEntry) -> bool:
        match entry.kind:
            case "parameter":
                self._add_texts(self._types, entry.type, entry)
                return self._add_texts(self._parameters, entry.text, entry)
            case "type":
                return self._add_texts(self._types, entry.text, entry)
            case "returns":
                is_first = self._returns is None and not (entry.type and self._returns_type)
                self._returns = (entry.type, entry.text) if is_first else self._returns
                return is_first
            case "returns type":
                is_first = not self._returns_type and not (self._returns and self._returns[0])
                self._returns_type = entry.text if is_first else self._returns_type
                return is_first
            case "raises":
                self._raises += [(name, entry.text) for name in entry.names]
            case "example":
                self._examples.append(entry.text)
            case "other":
                return False
        return True

    def _add_texts(self, texts: dict[str, str], text: str, entry: DocEntry) -> bool:
        """Adds a text for each parameter of the entry. False if the entry names more than parameters."""
        known = [name for name in entry.names if self._names is None or name in self._names]
        for name in known:
            texts[name] = "\n".join(part for part in (texts.get(name, ""), text) if part)
        return len(known) == len(entry.names)
