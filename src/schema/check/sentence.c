/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sentences of a report, for a language model that has to correct its call: what is expected,
 * then what was found, then the remedy. At most 64 bytes of the instance are ever shown.
 */

#include <string.h>

#include "base/text/str.h"
#include "schema/check/check.h"
#include "json/json.h"

enum {
    MAX_SHOWN = 64,
    MAX_CHOICES = 12,
    MAX_RULE_SHOWN = 200,
};

/* ---- showing values --------------------------------------------------------------- */

void peg__write_line(peg_str text, struct peg__buf *out)
{
    size_t done = 0;

    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        if (c >= 0x20 && c != 0x7F)
            continue;
        peg__buf_add(out, text.ptr + done, i - done);
        peg__buf_printf(out, "\\u%04x", c);
        done = i + 1;
    }
    peg__buf_add(out, text.ptr + done, text.len - done);
}

/* The first `max` bytes of a text, cut between characters. */
static void write_cut(peg_str text, size_t max, struct peg__buf *out)
{
    if (text.len <= max) {
        peg__write_line(text, out);
        return;
    }
    peg__write_line(peg__strn(text.ptr, peg__utf8_cut(text.ptr, max - 3)), out);
    peg__buf_puts(out, "...");
}

/* A value as short JSON. Large containers are only described. */
static void write_short_value(const peg_json *value, size_t max, struct peg__buf *out)
{
    struct peg__buf text = PEG__BUF(4096);

    if (value->kind == PEG_JSON_STRING && value->len > max) {
        peg__json_write_string(peg__strn(value->u.ptr, max), &text);
        write_cut(peg__buf_view(&text), max, out);
    } else if (peg_json_extent(value) > max) {
        peg__buf_printf(out, "%s of %zu", value->kind == PEG_JSON_ARRAY ? "an array" : "an object",
                        peg_json_len(value));
    } else {
        peg__json_write(value, PEG_JSON_COMPACT, &text);
        write_cut(peg__buf_view(&text), max, out);
        if (text.status == PEG_ELIMIT && text.len <= max)
            peg__buf_puts(out, "...");
    }
    if (text.status == PEG_ENOMEM)
        out->status = PEG_ENOMEM;
    peg__buf_free(&text);
}

static void write_name(const peg_json *name, struct peg__buf *out)
{
    peg__buf_putc(out, '\'');
    write_cut(peg_json_str(name), MAX_SHOWN, out);
    peg__buf_putc(out, '\'');
}

/* "a string", "an array", "null" */
static void write_type(peg_str name, struct peg__buf *out)
{
    if (strchr("iao", name.ptr[0]))
        peg__buf_puts(out, "an ");
    else if (!peg__str_is(name, "null"))
        peg__buf_puts(out, "a ");
    peg__buf_str(out, name);
}

/* "a string", "a string or null" */
static void write_type_names(const peg_json *type, struct peg__buf *out)
{
    size_t i = 0;

    if (type->kind == PEG_JSON_STRING) {
        write_type(peg_json_str(type), out);
        return;
    }
    PEG_JSON_EACH_ITEM (type, name) {
        if (i++ > 0)
            peg__buf_puts(out, i == type->len ? " or " : ", ");
        write_type(peg_json_str(name), out);
    }
}

static void write_choices(const peg_json *list, struct peg__buf *out)
{
    size_t i = 0;

    PEG_JSON_EACH_ITEM (list, item) {
        if (i > 0)
            peg__buf_puts(out, ", ");
        if (i++ == MAX_CHOICES) {
            peg__buf_printf(out, "... (%zu in all)", peg_json_len(list));
            return;
        }
        write_short_value(item, MAX_RULE_SHOWN, out);
    }
}

/* ---- did you mean ----------------------------------------------------------------------- */

/* The property whose name is closest to an unknown one, if the object has not got it; or NULL. */
static const peg_json *closest_name(const peg_json *properties, const peg_json *object,
                                    const peg_json *unknown)
{
    const peg_json *closest = NULL;
    struct peg__typo typo;

    peg__typo_start(&typo, peg_json_str(unknown));
    PEG_JSON_EACH_MEMBER (properties, key) {
        if (!peg_json_get_str(object, peg_json_str(key)) &&
            peg__typo_offer(&typo, peg_json_str(key)))
            closest = key;
    }
    return closest;
}

/* The schema object that a keyword's value stands in. */
static const peg_json *enclosing_schema(const struct peg__finding *f)
{
    const peg_json *at = NULL;
    const peg_json *found = NULL;

    for (size_t i = 0; i < f->schema->n_documents; i++)
        if (peg__document_holds(f->schema->documents[i], f->rule))
            at = peg__document_root(f->schema->documents[i]);
    while (at && at != f->rule && at->kind >= PEG_JSON_ARRAY) {
        const bool is_object = at->kind == PEG_JSON_OBJECT;
        const peg_json *child = at + 1 + is_object;

        found = at;
        while (f->rule >= peg_json_next(child))
            child = peg_json_next(child) + is_object;
        at = child;
    }
    return found;
}

static void write_known_names(const struct peg__finding *f, struct peg__buf *out)
{
    const peg_json *schema = enclosing_schema(f);
    const peg_json *properties = schema ? peg_json_get(schema, "properties") : NULL;
    const peg_json *suggestion;
    size_t i = 0;

    if (!properties || properties->kind != PEG_JSON_OBJECT || properties->len == 0)
        return;
    suggestion = closest_name(properties, f->value, f->detail);
    if (suggestion) {
        peg__buf_puts(out, "; did you mean ");
        write_name(suggestion, out);
        peg__buf_putc(out, '?');
        return;
    }
    peg__buf_puts(out, "; known are ");
    PEG_JSON_EACH_MEMBER (properties, key) {
        if (i > 0)
            peg__buf_puts(out, ", ");
        if (i++ == MAX_CHOICES) {
            peg__buf_puts(out, "...");
            return;
        }
        write_name(key, out);
    }
}

/* ---- formats ------------------------------------------------------------------------- */

static const struct {
    const char *format;
    const char *phrase;
} format_phrases[] = {
    {"date-time", "a date and time such as 2024-05-31T13:45:00Z"},
    {"date", "a date such as 2024-05-31"},
    {"time", "a time such as 13:45:00Z"},
    {"duration", "a duration such as P3DT4H"},
    {"email", "an e-mail address such as someone@example.com"},
    {"idn-email", "an e-mail address such as someone@example.com"},
    {"hostname", "a host name such as www.example.com"},
    {"idn-hostname", "a host name such as www.example.com"},
    {"ipv4", "an IPv4 address such as 192.0.2.1"},
    {"ipv6", "an IPv6 address such as 2001:db8::1"},
    {"uri", "a URI such as https://example.com/path"},
    {"uri-reference", "a URI or a relative reference such as /path"},
    {"iri", "an IRI such as https://example.com/path"},
    {"iri-reference", "an IRI or a relative reference such as /path"},
    {"uri-template", "a URI template such as /users/{id}"},
    {"uuid", "a UUID such as 123e4567-e89b-12d3-a456-426614174000"},
    {"json-pointer", "a JSON Pointer such as /a/0"},
    {"relative-json-pointer", "a relative JSON Pointer such as 1/a"},
    {"regex", "an ECMA-262 regular expression"},
};

static void write_format(const peg_json *format, struct peg__buf *out)
{
    for (size_t i = 0; i < sizeof(format_phrases) / sizeof(*format_phrases); i++)
        if (peg__str_is(peg_json_str(format), format_phrases[i].format)) {
            peg__buf_puts(out, format_phrases[i].phrase);
            return;
        }
    peg__buf_str(out, peg_json_str(format));
}

/* ---- what a rule expects ------------------------------------------------------------------ */

/* Keywords whose value completes a phrase. */
static const struct phrase {
    const char *keyword;
    const char *before;
    const char *unit; /* of a count: gets an s unless that is 1 */
    bool counts;      /* the value is given as a count */
} phrases[] = {
    {"minimum", "at least ", "", false},
    {"maximum", "at most ", "", false},
    {"exclusiveMinimum", "more than ", "", false},
    {"exclusiveMaximum", "less than ", "", false},
    {"multipleOf", "a multiple of ", "", false},
    {"const", "", "", false},
    {"minLength", "at least ", " character", true},
    {"maxLength", "at most ", " character", true},
    {"minItems", "at least ", " item", true},
    {"maxItems", "at most ", " item", true},
    {"minProperties", "at least ", " member", true},
    {"maxProperties", "at most ", " member", true},
    {"minContains", "at least ", " item", false},
    {"maxContains", "at most ", " item", false},
    {"contentEncoding", "text encoded as ", "", false},
    {"contentMediaType", "content of type ", "", false},
};

static const struct phrase *find_phrase(const char *keyword)
{
    for (size_t i = 0; i < sizeof(phrases) / sizeof(*phrases); i++)
        if (!strcmp(keyword, phrases[i].keyword))
            return &phrases[i];
    return NULL;
}

static bool is(const struct peg__finding *f, const char *keyword)
{
    return !strcmp(f->keyword, keyword);
}

static bool is_about_missing(const struct peg__finding *f)
{
    return f->detail && (is(f, "required") || is(f, "dependentRequired") || is(f, "dependencies"));
}

static bool is_about_unknown(const struct peg__finding *f)
{
    return f->detail && (is(f, "additionalProperties") || is(f, "unevaluatedProperties"));
}

static bool is_about_contained(const struct peg__finding *f)
{
    return is(f, "contains") || is(f, "minContains") || is(f, "maxContains");
}

static bool is_one(const peg_json *count)
{
    int64_t number;

    return peg_json_int64(count, &number) && number == 1;
}

/* The schema that items are to fit stands beside minContains and maxContains. */
static void write_contained(const struct peg__finding *f, struct peg__buf *out)
{
    const peg_json *schema = is(f, "contains") ? f->rule : NULL;

    if (!schema && enclosing_schema(f))
        schema = peg_json_get(enclosing_schema(f), "contains");
    peg__buf_puts(out, " that fit ");
    if (schema)
        write_short_value(schema, MAX_RULE_SHOWN, out);
}

static void write_wanted_pattern(const struct peg__finding *f, struct peg__buf *out)
{
    peg__buf_puts(out, "text that matches the pattern ");
    write_cut(peg_json_str(f->rule), MAX_RULE_SHOWN, out);
}

void peg__write_expected(const struct peg__finding *f, struct peg__buf *out)
{
    const struct phrase *phrase = find_phrase(f->keyword);

    if (phrase) {
        /* draft-04 has booleans beside minimum and maximum */
        peg__buf_puts(out, phrase->before);
        write_short_value(f->rule, MAX_RULE_SHOWN, out);
        peg__buf_puts(out, phrase->unit);
        if (*phrase->unit && !is_one(f->rule))
            peg__buf_putc(out, 's');
        if (is_about_contained(f))
            write_contained(f, out);
    } else if (is(f, "type")) {
        write_type_names(f->rule, out);
    } else if (is(f, "enum")) {
        peg__buf_puts(out, "one of ");
        write_choices(f->rule, out);
    } else if (is(f, "pattern")) {
        write_wanted_pattern(f, out);
    } else if (is(f, "format")) {
        write_format(f->rule, out);
    } else if (is_about_missing(f)) {
        peg__buf_puts(out, "the member ");
        write_name(f->detail, out);
    } else if (is_about_unknown(f) || is(f, "false")) {
        peg__buf_puts(out, "nothing");
    } else if (is(f, "anyOf")) {
        peg__buf_printf(out, "at least one of %zu alternatives", peg_json_len(f->rule));
    } else if (is(f, "oneOf")) {
        peg__buf_printf(out, "exactly one of %zu alternatives", peg_json_len(f->rule));
    } else if (is(f, "uniqueItems")) {
        peg__buf_puts(out, "items that all differ");
    } else if (is(f, "contains")) {
        peg__buf_puts(out, "items");
        write_contained(f, out);
    } else {
        peg__buf_printf(out, "what `%s` allows", f->keyword);
    }
}

void peg__write_got(const struct peg__finding *f, struct peg__buf *out)
{
    const struct phrase *phrase = find_phrase(f->keyword);

    if (is_about_missing(f))
        peg__buf_puts(out, "no such member");
    else if (is_about_unknown(f))
        write_name(f->detail, out);
    else if (phrase && phrase->counts)
        peg__buf_printf(out, "%zu",
                        f->value->kind == PEG_JSON_STRING ? peg__utf8_length(peg_json_str(f->value))
                                                          : peg_json_len(f->value));
    else
        write_short_value(f->value, MAX_SHOWN, out);
}

/* ---- whole sentences ---------------------------------------------------------------------- */

/* The member of dependentRequired whose list has the name in it. */
static const peg_json *find_requiring_member(const struct peg__finding *f)
{
    if (f->rule->kind == PEG_JSON_OBJECT)
        PEG_JSON_EACH_MEMBER (f->rule, key)
            if (f->detail > key && f->detail < peg_json_next(key + 1))
                return key;
    return NULL;
}

static void write_missing(const struct peg__finding *f, struct peg__buf *out)
{
    const peg_json *asks = find_requiring_member(f);

    peg__buf_puts(out, "the member ");
    write_name(f->detail, out);
    peg__buf_puts(out, " is missing");
    if (asks) {
        peg__buf_puts(out, ", which ");
        write_name(asks, out);
        peg__buf_puts(out, " asks for");
    }
    peg__buf_puts(out, "; add it");
}

static void write_unknown(const struct peg__finding *f, struct peg__buf *out)
{
    peg__buf_puts(out, "the member ");
    write_name(f->detail, out);
    peg__buf_puts(out, " is not allowed here");
    write_known_names(f, out);
}

/* The closing part of most sentences. */
static void write_but(const struct peg__finding *f, struct peg__buf *out)
{
    const struct phrase *phrase = find_phrase(f->keyword);

    if (phrase && phrase->counts) {
        peg__buf_puts(out, ", but has ");
    } else if (is(f, "type")) {
        peg__buf_puts(out, ", but is ");
        write_type(peg__str(peg_json_kind_name(peg_json_kind_of(f->value))), out);
        if (f->value->kind == PEG_JSON_NULL || f->value->kind >= PEG_JSON_ARRAY)
            return;
        peg__buf_puts(out, ": ");
    } else {
        peg__buf_puts(out, ", but is ");
    }
    peg__write_got(f, out);
}

/* Alternatives that a member tells apart: which values it may have. */
static bool write_switch(const struct peg__finding *f, struct peg__buf *out)
{
    for (size_t i = 0; i < f->schema->n_switches; i++) {
        const struct peg__switch *branches = &f->schema->switches[i];

        if (branches->name != f->detail)
            continue;
        peg__buf_puts(out, "must have a member ");
        write_name(branches->name, out);
        peg__buf_puts(out, " that is one of ");
        peg__buf_str(out, branches->values);
        return true;
    }
    return false;
}

static bool write_branches(const struct peg__finding *f, struct peg__buf *out)
{
    if (f->detail && (is(f, "anyOf") || is(f, "oneOf")) && write_switch(f, out))
        return true;
    if (is(f, "oneOf") && f->detail) {
        peg__buf_printf(out,
                        "must fit exactly one of %zu alternatives, but fits several; remove "
                        "what makes it fit the others",
                        peg_json_len(f->rule));
        return true;
    }
    if (!is(f, "anyOf") && !is(f, "oneOf"))
        return false;
    peg__buf_printf(out, "fits none of %zu alternatives", peg_json_len(f->rule));
    if (peg_json_len(f->rule) > 1)
        peg__buf_puts(out, "; the failures that follow are those of the closest one");
    return true;
}

static bool write_special(const struct peg__finding *f, struct peg__buf *out)
{
    if (is_about_missing(f)) {
        write_missing(f, out);
    } else if (is_about_unknown(f)) {
        write_unknown(f, out);
    } else if (is(f, "false")) {
        peg__buf_puts(out, f->is_name ? "is not allowed; remove the member"
                                      : "nothing is allowed here; remove it");
    } else if (is(f, "not")) {
        peg__buf_puts(out, "must not fit ");
        write_short_value(f->rule, MAX_RULE_SHOWN, out);
        peg__buf_puts(out, ", but does; change it");
    } else if (is(f, "uniqueItems")) {
        peg__buf_puts(out, "must not have equal items, but has this one twice: ");
        write_short_value(f->detail ? f->detail : f->value, MAX_SHOWN, out);
    } else if (is(f, "contains")) {
        peg__buf_puts(out, "must have at least 1 item that fits ");
        write_short_value(f->rule, MAX_RULE_SHOWN, out);
        peg__buf_puts(out, ", but has none");
    } else if (is(f, "unevaluatedItems") && f->detail) {
        peg__buf_puts(out, "has an item that is not allowed; remove it: ");
        write_short_value(f->detail, MAX_SHOWN, out);
    } else {
        return write_branches(f, out);
    }
    return true;
}

void peg__write_sentence(const struct peg__finding *f, struct peg__buf *out)
{
    const struct phrase *phrase = find_phrase(f->keyword);

    if (f->is_name)
        peg__buf_puts(out, "the name of this member ");
    if (write_special(f, out))
        return;
    peg__buf_puts(out,
                  phrase && (phrase->counts || is_about_contained(f)) ? "must have " : "must be ");
    peg__write_expected(f, out);
    if (!is_about_contained(f))
        write_but(f, out);
}
