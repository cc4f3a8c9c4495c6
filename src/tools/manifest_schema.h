/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_MANIFEST_SCHEMA_H
#define PEG_TOOLS_MANIFEST_SCHEMA_H

/* The form of a manifest, as JSON Schema. What numbers and texts mean is checked by manifest.c. */

static const char peg__manifest_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"toolset\",\"tools\"],"
    "\"properties\":{"
    "\"toolset\":{\"$ref\":\"#/$defs/name\"},"
    "\"description\":{\"type\":\"string\",\"maxLength\":4096},"
    "\"version\":{\"type\":\"string\","
    "\"pattern\":\"^v?[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[A-Za-z0-9.]+)?$\"},"
    "\"tags\":{\"$ref\":\"#/$defs/tags\"},"
    "\"tools\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":10000,"
    "\"items\":{\"$ref\":\"#/$defs/tool\"}}},"
    "\"$defs\":{"
    "\"name\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.:/-]{1,256}$\"},"
    "\"tags\":{\"type\":\"array\",\"maxItems\":64,"
    "\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256}},"
    "\"amount\":{\"type\":[\"integer\",\"string\"]},"
    "\"tool\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"name\",\"description\",\"command\"],\"properties\":{"
    "\"name\":{\"$ref\":\"#/$defs/name\"},"
    "\"description\":{\"type\":\"string\",\"maxLength\":4096},"
    "\"input_schema\":{\"type\":\"object\"},"
    "\"output_schema\":{\"type\":[\"object\",\"boolean\"]},"
    "\"command\":{\"type\":[\"array\",\"string\"],\"minLength\":1,\"minItems\":1,\"maxItems\":4096,"
    "\"items\":{\"type\":\"string\"}},"
    "\"shell\":{\"type\":\"boolean\"},"
    "\"output\":{\"enum\":[\"auto\",\"json\",\"text\"]},"
    "\"timeout\":{\"$ref\":\"#/$defs/amount\"},"
    "\"grace\":{\"$ref\":\"#/$defs/amount\"},"
    "\"max_memory\":{\"$ref\":\"#/$defs/amount\"},"
    "\"max_output\":{\"$ref\":\"#/$defs/amount\"},"
    "\"env\":{\"type\":\"array\",\"maxItems\":1000,\"items\":{\"type\":\"string\","
    "\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*(=|$)\"}},"
    "\"directory\":{\"type\":\"string\",\"minLength\":1},"
    "\"idempotent\":{\"type\":\"boolean\"},"
    "\"tags\":{\"$ref\":\"#/$defs/tags\"}}}}}";

#endif
