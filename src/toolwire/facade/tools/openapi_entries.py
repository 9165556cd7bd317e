"""The operations of an OpenAPI document as entries of a registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Permission
from toolwire.facade.tools.intake import entries_of
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.invocation.middleware.retry import Retry
from toolwire.invocation.scope import RESULT_LIMIT_BYTES
from toolwire.runtime.extras import packages_of

if TYPE_CHECKING:
    from toolwire.openapi.api_server import HeaderValue


def openapi_entries(
    document: object,
    client: object,
    headers: Mapping[str, HeaderValue] | None,
    *,
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
    permission: Permission | None,
    error_limit_bytes: int | None,
) -> list[Entry]:
    """Returns an entry for each wanted operation. Its calls are repeated as `Retry` does by default.

    Raises:
        ConfigurationError: An argument cannot be used, the document cannot be read, or a package is not installed.
        DefinitionError: It is not an OpenAPI 3 document, or it is broken.
        RegistrationError: A name is reserved.
    """
    with packages_of("openapi", "register_openapi"):
        from toolwire.openapi.tools import tools_of_document
    tools = tools_of_document(
        document,
        client=client,
        headers=headers,
        include=include,
        exclude=exclude,
        permission=permission,
        error_limit_bytes=error_limit_bytes or RESULT_LIMIT_BYTES,
    )
    retry = Retry()
    return [entry for tool in tools for entry in entries_of(ToolSpec(tool), middleware=(retry,))]
