# SPDX-License-Identifier: Apache-2.0
"""Schemas and instances whose members or items are all of one type."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def labels_schema():
    return {"$schema": DIALECT, "type": "object", "additionalProperties": {"type": "string"}}


def labels(d):
    return {d.ident(): d.word() for _ in range(d.randint(2, 40))}


def tags_schema():
    return {"$schema": DIALECT, "type": "array", "items": {"type": "string"}}


def tags(d):
    return d.list(1, 40, d.word)


def closed(properties, required):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def points_schema():
    point = closed({"x": {"type": "number"}, "y": {"type": "number"}, "label": {"type": "string"}}, ["x", "y"])
    return {"$schema": DIALECT, "type": "array", "items": point}


def points(d):
    def point():
        return {"x": d.randint(0, 999), "y": d.decimal(0, 100, 2), **d.some({"label": d.word}, 0.5)}
    return d.list(1, 30, point)


def lines_schema():
    line = closed({"sku": {"type": "string", "minLength": 1}, "quantity": {"type": "integer", "minimum": 1},
                   "note": {"type": "string"}}, ["sku", "quantity"])
    return {"$schema": DIALECT, "type": "array", "items": line}


def lines(d):
    def line():
        return {"sku": d.ident(), "quantity": d.randint(1, 20), **d.some({"note": d.word}, 0.5)}
    return d.list(1, 30, line)
