# SPDX-License-Identifier: Apache-2.0
"""Tools of a registry as the vendors of models want them described."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Callable

NAME_MAX = 64
DIGEST_DIGITS = 8
Definition = dict[str, Any]
VENDORS: dict[str, Callable[[Definition, Definition], Definition]] = {
    "openai": lambda common, schema: {"type": "function", "function": {**common, "parameters": schema}},
    "openai-responses": lambda common, schema: {"type": "function", **common, "parameters": schema, "strict": False},
    "anthropic": lambda common, schema: {**common, "input_schema": schema},
    "gemini": lambda common, schema: {**common, "parametersJsonSchema": schema},
}


class Definitions(list[Definition]):
    """What goes under "tools" of a request. The vendors allow fewer names than a registry has: `resolve` tells
    which toolset and tool the model means by one."""

    def __init__(self, vendor: str, toolsets: list[Any]) -> None:
        if vendor not in VENDORS:
            raise ValueError(f"there is no vendor '{vendor}': it is " + ", ".join(VENDORS))
        self._tools: dict[str, tuple[str, str]] = {}
        made = [self._define(vendor, toolset.toolset.name, tool) for toolset in toolsets for tool in toolset.tools]
        super().__init__([{"functionDeclarations": made}] if vendor == "gemini" and made else made)

    def resolve(self, name: str) -> tuple[str, str]:
        """(toolset, tool). KeyError: the model has made it up."""
        return self._tools[name]

    def _define(self, vendor: str, toolset: str, tool: Any) -> Definition:
        name, digits = _name(toolset, tool.name), DIGEST_DIGITS
        while self._tools.get(name, (toolset, tool.name)) != (toolset, tool.name):  # somebody has chosen it on purpose
            name, digits = _digest_name(toolset, tool.name, digits), digits + 1
        self._tools[name] = (toolset, tool.name)
        return VENDORS[vendor]({"name": name, "description": tool.description},
                               json.loads(tool.input_schema or b'{"type": "object"}'))


def _name(toolset: str, tool: str) -> str:
    """Both in one; if it has to change, or could be read as another one's, with a digest."""
    whole = f"{toolset}__{tool}"
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", whole)
    if is_plain and "__" not in toolset and not toolset.endswith("_") and not tool.startswith("_"):
        return whole
    return _digest_name(toolset, tool, DIGEST_DIGITS)


def _digest_name(toolset: str, tool: str, digits: int) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{toolset}__{tool}")
    if not re.match(r"[A-Za-z_]", name):
        name = "_" + name
    digest = hashlib.sha256(f"{toolset}\0{tool}".encode()).hexdigest()[:digits]
    return f"{name[:NAME_MAX - 1 - len(digest)]}_{digest}"
