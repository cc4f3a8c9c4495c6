# SPDX-License-Identifier: Apache-2.0
"""Schemas too large or too regular to write by hand, each with its instances."""

DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2020 = "https://json-schema.org/draft/2020-12/schema"

VERBS = ["open", "close", "click", "scroll", "type", "press", "wait", "navigate", "download", "upload", "select", "hover"]
NOUNS = ["tab", "page", "element"]


def actions_schema():
    """A union of 36 actions told apart by a const, as computer-use tools have them."""
    branches = []
    for noun in NOUNS:
        for i, verb in enumerate(VERBS):
            properties = {
                "action": {"const": f"{verb}_{noun}"},
                "target": {"type": "string", "minLength": 1},
                f"{verb}_mode": {"enum": ["fast", "careful", "silent"]},
                "x": {"type": "integer", "minimum": 0, "maximum": 10000},
                "y": {"type": "integer", "minimum": 0, "maximum": 10000},
            }
            required = ["action", "target"] + ([f"{verb}_mode"] if i % 3 == 0 else [])
            branches.append({"type": "object", "properties": properties, "required": required,
                             "additionalProperties": False})
    return {"$schema": DRAFT2020, "title": "run_actions", "type": "object",
            "properties": {"session": {"type": "string"},
                           "actions": {"type": "array", "minItems": 1, "items": {"oneOf": branches}}},
            "required": ["actions"], "additionalProperties": False}


def actions(d):
    def action():
        verb, noun = d.choice(VERBS), d.choice(NOUNS)
        return {"action": f"{verb}_{noun}", "target": f"#{d.ident()}", f"{verb}_mode": d.choice(["fast", "careful"]),
                "x": d.randint(0, 2000), "y": d.randint(0, 2000)}
    return {"session": d.uuid(), "actions": d.list(1, 8, action)}


COUNTRY_CODES = [a + b for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for b in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
MEDIA_TYPES = [f"application/x-kind-{i}" for i in range(900)]


def enum_schema():
    """Enumerations of hundreds of members, as in schemas generated from code lists."""
    return {"$schema": DRAFT7, "type": "object",
            "properties": {"country": {"enum": COUNTRY_CODES}, "media_type": {"type": "string", "enum": MEDIA_TYPES},
                           "code": {"enum": list(range(0, 3000, 7)) + [None, "none", False]},
                           "codes": {"type": "array", "items": {"enum": COUNTRY_CODES[::3]}}},
            "required": ["country", "media_type"], "additionalProperties": False}


def enum(d):
    return {"country": d.choice(COUNTRY_CODES), "media_type": d.choice(MEDIA_TYPES),
            "code": d.choice([d.randint(0, 400) * 7, None, "none"]), "codes": d.list(0, 20, lambda: d.choice(COUNTRY_CODES[::3]))}


KINDS = ["Pod", "Deployment", "Service", "ConfigMap", "Secret", "Ingress", "Job", "CronJob", "StatefulSet", "DaemonSet",
         "Namespace", "Role", "Volume", "Claim"]
PARTS = ["Spec", "Status", "Condition", "Source", "Selector", "Template", "Strategy", "Reference", "Limits", "Rule"]
FIELDS = ["name", "path", "port", "replicas", "enabled", "labels", "values", "mode", "weight", "reason", "message", "owner"]


def field_schema(i):
    scalar = [
        {"type": "string", "maxLength": 1024},
        {"type": "integer", "minimum": 0}, {"type": "boolean"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array", "items": {"type": "string"}},
        {"type": ["string", "null"]}, {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        {"$ref": "#/definitions/Quantity"},
    ]
    return scalar[i % len(scalar)]


def part_schema(k, p):
    """Part p of kind k: a few scalars and references to later parts of the same kind."""
    properties = {f: field_schema(k + p + i) for i, f in enumerate(FIELDS[(k + p) % 5:][:4])}
    for later in range(p + 1, min(p + 3, len(PARTS))):
        reference = {"$ref": f"#/definitions/{KINDS[k]}{PARTS[later]}"}
        properties[PARTS[later].lower()] = {"type": "array", "items": reference} if (k + later) % 3 == 0 else reference
    return {"type": "object", "properties": properties, "required": [FIELDS[(k + p) % 5]], "additionalProperties": False}


def kubernetes_schema():
    """156 definitions; the kind member chooses among 14 resources."""
    definitions = {
        "Quantity": {"oneOf": [{"type": "string", "pattern": "^[0-9]+(m|Ki|Mi|Gi)?$"}, {"type": "number"}]},
        "Metadata": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 253}, "namespace": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            "annotations": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            "generation": {"type": "integer"}}, "required": ["name"]},
    }
    for k, kind in enumerate(KINDS):
        for p, part in enumerate(PARTS):
            definitions[kind + part] = part_schema(k, p)
        definitions[kind] = {"type": "object", "properties": {
            "apiVersion": {"enum": ["v1", "apps/v1", "batch/v1"]}, "kind": {"type": "string", "enum": [kind]},
            "metadata": {"$ref": "#/definitions/Metadata"}, "spec": {"$ref": f"#/definitions/{kind}Spec"},
            "status": {"$ref": f"#/definitions/{kind}Status"}},
            "required": ["apiVersion", "kind", "metadata"], "additionalProperties": False}
    return {"$schema": DRAFT7, "title": "cluster resources", "oneOf": [{"$ref": f"#/definitions/{kind}"} for kind in KINDS],
            "definitions": definitions}


def field_value(d, i):
    return [lambda: d.text(2, 8), lambda: d.randint(0, 99), lambda: d.chance(0.5), lambda: {d.word(): d.word()},
            lambda: d.list(0, 4, d.word), lambda: d.choice([None, d.word()]), lambda: d.choice([d.word(), 8080]),
            lambda: d.choice([f"{d.randint(1, 500)}Mi", 0.5])][i % 8]()


def part(d, k, p):
    names = FIELDS[(k + p) % 5:][:4]
    made = {f: field_value(d, k + p + i) for i, f in enumerate(names) if i == 0 or d.chance(0.6)}
    for later in range(p + 1, min(p + 3, len(PARTS))):
        if d.chance(0.5):
            array = (k + later) % 3 == 0
            made[PARTS[later].lower()] = d.list(1, 2, lambda: part(d, k, later)) if array else part(d, k, later)
    return made


def kubernetes(d):
    k = d.randrange(len(KINDS))
    metadata = {"name": d.ident(), "namespace": d.word(), "labels": {d.word(): d.word() for _ in range(3)},
                "annotations": {"note": d.text(2, 8), "owner": None}, "generation": d.randint(1, 50)}
    return {"apiVersion": d.choice(["v1", "apps/v1"]), "kind": KINDS[k], "metadata": metadata, "spec": part(d, k, 0),
            "status": part(d, k, 1)}
