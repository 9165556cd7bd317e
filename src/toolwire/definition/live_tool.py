"""Live tools. They read permission, description and parameters from the author's object at each use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from toolwire.definition.binding import Binding, States
from toolwire.definition.declared import check_permission
from toolwire.definition.docstring.docs import Docs
from toolwire.definition.from_schema import SchemaShape
from toolwire.definition.hostile.schema_limits import check_limits
from toolwire.definition.parameters import ToolParameter, schema_of
from toolwire.definition.shape import Form, Invalid, OutputShape, Parameter, ParameterKind, Validated
from toolwire.definition.signature import Signature, read_signature
from toolwire.definition.tool import Permission, Tool
from toolwire.vocabulary.effects import UNDECLARED


class Author(Protocol):
    """The author's object behind a live tool. Its fields may change at any time."""

    name: str
    description: str
    permission: Any
    """`auto`, `confirm` or `deny`, or an enum member with such a value."""

    def get_parameters(self) -> Sequence[ToolParameter]: ...
    async def execute(self, **params: Any) -> Any: ...
    def validate_params(self, params: dict[str, Any]) -> str | None: ...


class LiveTool(Tool):
    """A tool that reads permission, description and parameters from its author's object at each call.

    A change of the parameters compiles a new form. Without a change, the only cost is reading the list.
    """

    def __init__(self, author: Author) -> None:
        label = f"tool {author.name!r}"
        signature = read_signature(author.execute, label)
        # Set first: the base class assigns `permission`, which reads `_author`.
        self._author = author
        self._live = LiveShape(label, author.get_parameters, signature)
        self._seen = self._live.now()
        super().__init__(
            name=author.name,
            shape=self._live,
            docs=Docs,
            function=author.execute,
            signature=signature,
            description=lambda: author.description,
            permission=author.permission,
            check=author.validate_params,
            effects=getattr(author, "effects", UNDECLARED),
        )

    def is_of(self, author: object) -> bool:
        """True if this is the tool of this object under the object's current name."""
        return self._author is author and self.name == self._author.name

    @property
    def permission(self) -> Permission:
        """The object's current permission.

        Raises:
            DefinitionError: The value is not a permission.
        """
        return check_permission(self.name, self._author.permission)

    @permission.setter
    def permission(self, given: Permission) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Ignores the value, because the author's object holds the permission.

        In a plain tool it is a field, for speed.
        """

    @property
    def revision(self) -> object:
        """An object that is replaced when the description, the parameters or the bindings change."""
        self._refresh()
        told = (self.description, self._seen, self.bindings.current)
        known = self._revision
        if known is None or known[0] != told[0] or known[1] is not told[1] or known[2] is not told[2]:
            self._revision = known = told
        return known

    def validate(self, arguments: Mapping[str, Any], states: States = ()) -> Validated | Invalid:
        """Validates like `Tool.validate`, with the current parameters.

        Raises:
            DefinitionError: The object's current permission or parameters are unusable.
        """
        check_permission(self.name, self._author.permission)
        self._refresh()
        return super().validate(arguments, states)

    _revision: tuple[str, SchemaShape, Mapping[str, Binding]] | None = None

    def _form(self) -> Form:
        self._refresh()
        return super()._form()

    def _refresh(self) -> None:
        seen = self._live.now()
        if seen is not self._seen:
            # The order matters: a compilation that another thread began earlier sees the change, and keeps nothing.
            self._seen = seen
            self._compiled = None

    def _compile(self) -> tuple[Form, Mapping[str, Binding]]:
        seen, shape = self._seen, self.shape
        self.bindings.follow(shape.kinds, shape.takes)
        compiled = super()._compile()
        if seen is not self._seen:
            self._compiled = None
        return compiled


class LiveShape:
    """The shape of a list of parameters that is read again each time."""

    spread = None

    def __init__(self, label: str, parameters: Callable[[], Sequence[ToolParameter]], signature: Signature) -> None:
        self._label = label
        self._parameters = parameters
        self._signature = signature
        self._now: tuple[str, SchemaShape] | None = None

    def now(self) -> SchemaShape:
        """Returns the shape of the current parameters, and the same object while they do not change.

        Raises:
            DefinitionError: The parameters cannot be described, or the function cannot take one of them.
        """
        listed = list(self._parameters())
        # Compared as text, because the list and its defaults may be changed in place.
        told = repr([(one.name, one.type, one.description, one.required, one.default) for one in listed])
        now = self._now
        if now is None or now[0] != told:
            schema = schema_of(listed, self._label)
            check_limits(schema, self._label)
            self._now = now = (told, SchemaShape(self._label, schema, None, self._signature))
        return now[1]

    @property
    def kinds(self) -> Mapping[str, ParameterKind]:
        """The parameters."""
        return self.now().kinds

    @property
    def never_visible(self) -> Mapping[str, str]:
        """The function's context parameter."""
        return self.now().never_visible

    def misfit(self, name: str, value: Any) -> str | None:
        """Checks the value by the parameter's type."""
        return self.now().misfit(name, value)

    def takes(self, name: str) -> bool:
        """True if the function takes this name."""
        return self.now().takes(name)

    def compile(self, hidden: frozenset[str]) -> Form:
        """Compiles the form without these parameters."""
        return self.now().compile(hidden)

    def parameters(self, form: Form) -> tuple[Parameter, ...]:
        """Returns the parameters, required ones first."""
        return self.now().parameters(form)

    def output(self) -> OutputShape:
        """Returns the output, which declares nothing."""
        return self.now().output()
