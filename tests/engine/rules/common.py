# SPDX-License-Identifier: Apache-2.0
"""What the rules of all providers share."""

import re


class Refused(Exception):
    """A request that the provider answers with an error."""

    def __init__(self, message, param=None, code=None, status=400):
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status


def need(truth, message, param=None, code=None):
    if not truth:
        raise Refused(message, param, code)


def is_string(value):
    return isinstance(value, str)


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def known(value, allowed, say):
    """Every member must be one that the API has."""
    need(isinstance(value, dict), say("an object"))
    for name in value:
        need(name in allowed, say(name), name, "unknown_parameter")


FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


# ---- schemas of parameters ----------------------------------------------------------

def check_json_schema(schema, where, strict=False):
    """What OpenAI and Anthropic want of a function's parameters."""
    need(isinstance(schema, dict), f"Invalid schema for {where}: it is no object.", "tools")
    need(schema.get("type") == "object",
         f"Invalid schema for {where}: schema must be a JSON Schema of 'type: \"object\"', got "
         f"'type: \"{schema.get('type')}\"'.", "tools", "invalid_function_parameters")
    _check_arrays(schema, where)
    if strict:
        _check_strict(schema, where)


def _subschemas(schema):
    for name in ("properties", "$defs", "definitions", "patternProperties"):
        if isinstance(schema.get(name), dict):
            yield from schema[name].values()
    for name in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(name), dict):
            yield schema[name]
    for name in ("anyOf", "allOf", "oneOf", "prefixItems"):
        if isinstance(schema.get(name), list):
            yield from schema[name]


def _check_arrays(schema, where):
    need(schema.get("type") != "array" or "items" in schema or "prefixItems" in schema,
         f"Invalid schema for {where}: array schema missing items.", "tools",
         "invalid_function_parameters")
    for sub in _subschemas(schema):
        if isinstance(sub, dict):
            _check_arrays(sub, where)


def _check_strict(schema, where):
    if schema.get("type") == "object" or "properties" in schema:
        need(schema.get("additionalProperties") is False,
             f"Invalid schema for {where}: 'additionalProperties' is required to be supplied and to "
             "be false.", "tools", "invalid_function_parameters")
        missing = set(schema.get("properties", {})) - set(schema.get("required", []))
        need(not missing, f"Invalid schema for {where}: 'required' is required to be supplied and "
             f"to be an array including every key in properties. Missing {sorted(missing)}.",
             "tools", "invalid_function_parameters")
    for sub in _subschemas(schema):
        if isinstance(sub, dict):
            _check_strict(sub, where)
