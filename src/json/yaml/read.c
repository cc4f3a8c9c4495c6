/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads YAML: libyaml's events become a tree of nodes. Read it from the bottom up:
 *
 *   read_tree -> read_events -> handle_event -> add_scalar, add_alias, ...
 *
 * An alias is an edge to a node that is complete, so the tree stays small however
 * much it stands for. Each node knows the weight and height of what it expands
 * to; an expansion beyond the limits is refused when the alias is read, before
 * anything was copied. libyaml is known in this file only.
 */

#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/number/number.h"
#include "json/yaml/yaml.h"

enum { SHOWN_BYTES = 60 };

#define CORE_TAG "tag:yaml.org,2002:"

struct composer {
    struct peg__yaml_reader r;
    yaml_parser_t parser;
    struct peg__map anchors; /* name -> node; a name may be given again */
    struct peg__yaml_node *root;
    struct peg__yaml_node *open; /* the innermost container */
    unsigned depth;
    unsigned n_documents;
    bool is_finished;
};

/* ---- errors and limits ------------------------------------------------------------ */

static int shown(peg_str s)
{
    return s.len > SHOWN_BYTES ? SHOWN_BYTES : (int)s.len;
}

static peg_status fail_too_deep(const struct composer *c, const struct peg__yaml_node *node)
{
    peg__fail(c->r.reterr, PEG_ELIMIT, "E_JSON_TOO_DEEP",
              "the values nest deeper than %u (max_depth), aliases expanded; write them flatter",
              c->r.limits.max_depth);
    return peg__yaml_fail_at(&c->r, node->index, PEG_ELIMIT);
}

static bool is_tab(const struct composer *c, yaml_mark_t mark)
{
    const size_t offset = peg__yaml_offset(c->r.text, mark.index);

    return offset < c->r.text.len && c->r.text.ptr[offset] == '\t';
}

static peg_status fail_parser(const struct composer *c)
{
    const yaml_parser_t *parser = &c->parser;
    const char *context = parser->context ? parser->context : "";

    if (parser->error == YAML_MEMORY_ERROR)
        return peg__fail_nomem(c->r.reterr);
    if (parser->error == YAML_SCANNER_ERROR && is_tab(c, parser->problem_mark))
        peg__fail(c->r.reterr, PEG_EPARSE, "E_YAML_SYNTAX",
                  "a tab cannot stand here: YAML is indented with spaces");
    else
        peg__fail(c->r.reterr, PEG_EPARSE, "E_YAML_SYNTAX", "%s%s%s", context, *context ? ": " : "",
                  parser->problem ? parser->problem : "this is not YAML");
    if (parser->error != YAML_READER_ERROR)
        return peg__yaml_fail_at(&c->r, parser->problem_mark.index, PEG_EPARSE);
    peg__error_at(c->r.reterr, c->r.text, peg__yaml_mark_len(c->r.text) + parser->problem_offset);
    return PEG_EPARSE;
}

/* ---- nodes --------------------------------------------------------------------------- */

/* NULL when out of memory. */
static struct peg__yaml_node *new_node(struct composer *c, enum peg__yaml_kind kind,
                                       yaml_mark_t mark)
{
    struct peg__yaml_node *node = peg__arena_alloc_zero(&c->r.arena, sizeof(*node));

    if (!node)
        return NULL;
    node->kind = (uint8_t)kind;
    node->index = (uint32_t)mark.index;
    node->weight = sizeof(peg_json);
    return node;
}

static bool expects_key(const struct peg__yaml_node *container)
{
    return container && container->kind == PEG__YAML_MAPPING && container->u.children.n % 2 == 0;
}

static peg_status check_key_kind(const struct composer *c, const struct peg__yaml_node *node)
{
    if (!expects_key(c->open) || peg__yaml_resolve(node)->kind == PEG__YAML_SCALAR)
        return PEG_OK;
    peg__fail(c->r.reterr, PEG_EPARSE, "E_YAML_UNSUPPORTED",
              "a key is a sequence or mapping; JSON has only strings as names");
    return peg__yaml_fail_at(&c->r, node->index, PEG_EPARSE);
}

/* Adds a node to the innermost container, or makes it the root. */
static peg_status place(struct composer *c, struct peg__yaml_node *node)
{
    struct peg__yaml_node *parent = c->open;
    const peg_status status = check_key_kind(c, node);

    if (status)
        return status;
    if (!parent) {
        c->root = node;
        return PEG_OK;
    }
    if (parent->u.children.last)
        parent->u.children.last->next = node;
    else
        parent->u.children.first = node;
    parent->u.children.last = node;
    parent->u.children.n++;
    return PEG_OK;
}

/* Adds what a complete child weighs to its container. */
static void weigh(struct peg__yaml_node *parent, const struct peg__yaml_node *child)
{
    if (!parent)
        return;
    parent->weight += child->weight; /* each is charged or part of the text: no overflow */
    if (child->height >= parent->height)
        parent->height = (uint16_t)(child->height + 1);
}

static peg_status set_anchor(struct composer *c, const yaml_char_t *name,
                             struct peg__yaml_node *node)
{
    peg_status status;

    if (!name)
        return PEG_OK;
    status = peg__map_put(&c->anchors, peg__str((const char *)name), node, NULL);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(c->r.reterr);
    if (status) {
        peg__fail(c->r.reterr, status, "E_JSON_TOO_LARGE",
                  "the document has more than %d anchors; write fewer", PEG_LIMIT_YAML_ANCHORS);
        return peg__yaml_fail_at(&c->r, node->index, status);
    }
    return PEG_OK;
}

/* ---- scalars ---------------------------------------------------------------------------- */

static peg_status fail_number(const struct composer *c, const struct peg__yaml_node *node,
                              peg_status status, const char *why)
{
    const peg_str text = node->u.scalar.text;

    peg__fail(c->r.reterr, status, status == PEG_ELIMIT ? "E_JSON_TOO_LARGE" : "E_YAML_UNSUPPORTED",
              "'%.*s' %s", shown(text), text.ptr, why);
    return peg__yaml_fail_at(&c->r, node->index, status);
}

static peg_status set_number(struct composer *c, struct peg__yaml_node *node, unsigned base)
{
    struct peg__buf json = PEG__BUF(PEG_LIMIT_JSON_BYTES_MAX);
    const bool fits = peg__yaml_number(node->u.scalar.text, base, &json);
    char *text = json.status ? NULL : peg__arena_copy(&c->r.arena, peg__buf_view(&json));
    const peg_str number = {text, json.len};

    peg__buf_free(&json);
    if (!text)
        return peg__fail_nomem(c->r.reterr);
    if (!fits || peg__number_read(number, c->r.limits.max_number_digits, c->r.limits.max_exponent,
                                  &node->u.scalar.value) != PEG__NUMBER_OK)
        return fail_number(c, node, PEG_ELIMIT,
                           "has too many digits or too large an exponent: write it as a string");
    return PEG_OK;
}

static void set_string(struct peg__yaml_node *node)
{
    node->u.scalar.value = (peg_json){.kind = PEG_JSON_STRING,
                                      .len = (uint32_t)node->u.scalar.text.len,
                                      .u.ptr = node->u.scalar.text.ptr};
}

static peg_status set_scalar(struct composer *c, struct peg__yaml_node *node,
                             enum peg__yaml_type type, unsigned base)
{
    switch (type) {
    case PEG__YAML_NULL:
        node->u.scalar.value = (peg_json){.kind = PEG_JSON_NULL};
        return PEG_OK;
    case PEG__YAML_TRUE:
    case PEG__YAML_FALSE:
        node->u.scalar.value = (peg_json){.kind = PEG_JSON_BOOL, .u.truth = type == PEG__YAML_TRUE};
        return PEG_OK;
    case PEG__YAML_INT:
    case PEG__YAML_FLOAT:
        return set_number(c, node, base);
    case PEG__YAML_NOT_FINITE:
        return fail_number(c, node, PEG_EPARSE,
                           "is no number of JSON, which has no infinity and no NaN: leave it out "
                           "or quote it");
    case PEG__YAML_SEXAGESIMAL:
        return fail_number(c, node, PEG_EPARSE,
                           "is a number to base 60 in YAML 1.1: quote it, or write it in decimal");
    case PEG__YAML_STRING:
        break;
    }
    set_string(node);
    return PEG_OK;
}

/* The name of a tag of YAML's core schema, or NULL. */
static const char *core_name(const char *tag)
{
    const size_t n = strlen(CORE_TAG);

    return strncmp(tag, CORE_TAG, n) == 0 ? tag + n : NULL;
}

static bool is_core_scalar_tag(const char *tag)
{
    static const char *const names[] = {"null", "bool", "int", "float"};
    const char *name = core_name(tag);

    for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Requires is_core_scalar_tag(). */
static bool fits_tag(enum peg__yaml_type type, const char *tag)
{
    static const char *const names[] = {
        [PEG__YAML_STRING] = "",     [PEG__YAML_NULL] = "null",
        [PEG__YAML_TRUE] = "bool",   [PEG__YAML_FALSE] = "bool",
        [PEG__YAML_INT] = "int",     [PEG__YAML_SEXAGESIMAL] = "float",
        [PEG__YAML_FLOAT] = "float", [PEG__YAML_NOT_FINITE] = "float",
    };
    const char *name = core_name(tag);

    return strcmp(name, names[type]) == 0 || (type == PEG__YAML_INT && strcmp(name, "float") == 0);
}

static peg_status fail_tag(const struct composer *c, size_t index, const char *tag, const char *why)
{
    const peg_str text = peg__str(tag);

    peg__fail(c->r.reterr, PEG_EPARSE, "E_YAML_UNSUPPORTED", "the tag '%.*s' %s", shown(text),
              text.ptr, why);
    return peg__yaml_fail_at(&c->r, index, PEG_EPARSE);
}

/* By its tag if it has one, else by its looks if it is without quotes. */
static peg_status resolve_scalar(struct composer *c, struct peg__yaml_node *node, const char *tag,
                                 bool is_plain)
{
    enum peg__yaml_type type;
    unsigned base = 10;

    if (tag ? strcmp(tag, CORE_TAG "str") == 0 || strcmp(tag, "!") == 0 : !is_plain) {
        set_string(node);
        return PEG_OK;
    }
    type = peg__yaml_type_of(node->u.scalar.text, c->r.is_1_1, &base);
    if (tag && !is_core_scalar_tag(tag))
        return fail_tag(c, node->index, tag,
                        "is not known here: use !!str, !!int, !!float, !!bool, !!null or none");
    if (tag && !fits_tag(type, tag))
        return fail_tag(c, node->index, tag, "does not fit the text of this scalar");
    return set_scalar(c, node, type, base);
}

static peg_status add_scalar(struct composer *c, const yaml_event_t *event)
{
    const peg_str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    const char *tag = (const char *)event->data.scalar.tag;
    const bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct peg__yaml_node *node = new_node(c, PEG__YAML_SCALAR, event->start_mark);
    peg_status status = PEG_OK;

    if (!node)
        return peg__fail_nomem(c->r.reterr);
    node->u.scalar.text = peg__strn(peg__arena_copy(&c->r.arena, text), text.len);
    if (!node->u.scalar.text.ptr)
        return peg__fail_nomem(c->r.reterr);
    node->weight += text.len + 1;
    node->is_merge =
        c->r.is_1_1 && !tag && is_plain && expects_key(c->open) && peg__str_is(text, "<<");
    /* A key is called by its text, so what else it could mean is of no interest, unless an
     * alias may ask for it elsewhere. */
    if (expects_key(c->open) && !tag && !event->data.scalar.anchor)
        set_string(node);
    else
        status = resolve_scalar(c, node, tag, is_plain);
    if (status || (status = place(c, node)) ||
        (status = set_anchor(c, event->data.scalar.anchor, node)))
        return status;
    weigh(c->open, node);
    return PEG_OK;
}

/* ---- aliases ------------------------------------------------------------------------------ */

static peg_status add_alias(struct composer *c, const yaml_event_t *event)
{
    const peg_str name = peg__str((const char *)event->data.alias.anchor);
    struct peg__yaml_node *target = peg__map_get(&c->anchors, name);
    struct peg__yaml_node *node = new_node(c, PEG__YAML_ALIAS, event->start_mark);
    peg_status status;

    if (!node)
        return peg__fail_nomem(c->r.reterr);
    if (!target || target->is_open) {
        peg__fail(c->r.reterr, PEG_EPARSE, "E_YAML_SYNTAX",
                  target ? "the alias '*%.*s' stands inside of what it names; JSON has no cycles"
                         : "there is no anchor '&%.*s' before this alias",
                  shown(name), name.ptr);
        return peg__yaml_fail_at(&c->r, node->index, PEG_EPARSE);
    }
    node->u.target = target;
    node->weight = target->weight;
    node->height = target->height;
    if (c->depth + node->height > c->r.limits.max_depth)
        return fail_too_deep(c, node);
    if ((status = peg__yaml_charge(&c->r, node, node->weight)) || (status = place(c, node)))
        return status;
    weigh(c->open, node);
    return PEG_OK;
}

/* ---- containers ---------------------------------------------------------------------------- */

static peg_status open_node(struct composer *c, enum peg__yaml_kind kind, const yaml_event_t *event)
{
    const bool is_mapping = kind == PEG__YAML_MAPPING;
    const char *tag =
        (const char *)(is_mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag);
    struct peg__yaml_node *node = new_node(c, kind, event->start_mark);
    peg_status status;

    if (!node)
        return peg__fail_nomem(c->r.reterr);
    if (tag && strcmp(tag, "!") != 0 &&
        strcmp(tag, is_mapping ? CORE_TAG "map" : CORE_TAG "seq") != 0)
        return fail_tag(c, node->index, tag, "is not known here: use !!map, !!seq or none");
    if (c->depth == c->r.limits.max_depth)
        return fail_too_deep(c, node);
    if ((status = place(c, node)) ||
        (status = set_anchor(
             c, is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor,
             node)))
        return status;
    node->is_open = true;
    node->height = 1;
    node->u.children.parent = c->open;
    c->open = node;
    c->depth++;
    return PEG_OK;
}

static peg_status close_node(struct composer *c)
{
    struct peg__yaml_node *node = c->open;

    if (node->kind == PEG__YAML_MAPPING) {
        const peg_status status = peg__yaml_settle_members(&c->r, node);

        if (status)
            return status;
    }
    node->is_open = false;
    c->open = node->u.children.parent;
    c->depth--;
    weigh(c->open, node);
    return PEG_OK;
}

/* ---- documents ------------------------------------------------------------------------------ */

static peg_status begin_document(struct composer *c, const yaml_event_t *event)
{
    const yaml_version_directive_t *version = event->data.document_start.version_directive;

    if (c->n_documents++) {
        peg__fail(c->r.reterr, PEG_EPARSE, "E_YAML_UNSUPPORTED",
                  "there is a second document in the text; give one at a time");
        return peg__yaml_fail_at(&c->r, event->start_mark.index, PEG_EPARSE);
    }
    c->r.is_1_1 = version && version->major == 1 && version->minor == 1;
    return PEG_OK;
}

static peg_status handle_event(struct composer *c, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return begin_document(c, event);
    case YAML_SCALAR_EVENT:
        return add_scalar(c, event);
    case YAML_ALIAS_EVENT:
        return add_alias(c, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(c, PEG__YAML_SEQUENCE, event);
    case YAML_MAPPING_START_EVENT:
        return open_node(c, PEG__YAML_MAPPING, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(c);
    case YAML_STREAM_END_EVENT:
        c->is_finished = true;
        return PEG_OK;
    default:
        return PEG_OK;
    }
}

static peg_status read_events(struct composer *c)
{
    peg_status status = PEG_OK;

    while (!status && !c->is_finished) {
        yaml_event_t event;

        if (!yaml_parser_parse(&c->parser, &event))
            return fail_parser(c);
        status = handle_event(c, &event);
        yaml_event_delete(&event);
    }
    return status;
}

static size_t limit_or(size_t given, size_t otherwise, size_t most)
{
    if (given == 0)
        given = otherwise;
    return given < most ? given : most;
}

static peg_json_options fill_limits(const peg_json_options *options)
{
    const peg_json_options given = options ? *options : (peg_json_options){PEG_JSON_OPTIONS_INIT};

    return (peg_json_options){
        PEG_JSON_OPTIONS_INIT,
        .max_bytes = limit_or(given.max_bytes, PEG_LIMIT_JSON_BYTES, PEG_LIMIT_JSON_BYTES_MAX),
        .max_depth =
            (unsigned)limit_or(given.max_depth, PEG_LIMIT_JSON_DEPTH, PEG_LIMIT_JSON_DEPTH_MAX),
        .max_number_digits = (unsigned)limit_or(given.max_number_digits, PEG_LIMIT_NUMBER_DIGITS,
                                                PEG_LIMIT_NUMBER_DIGITS),
        .max_exponent = (unsigned)limit_or(given.max_exponent, PEG_LIMIT_NUMBER_EXPONENT,
                                           PEG_LIMIT_NUMBER_EXPONENT),
        .duplicates = given.duplicates,
    };
}

/* libyaml compares each %TAG with all before it, also those of documents that we refuse. */
static bool has_too_many_tag_directives(peg_str text)
{
    const char *at = text.ptr;
    const char *end = text.ptr + text.len;
    unsigned n = 0;

    while (at < end && (at = memmem(at, (size_t)(end - at), "%TAG", 4))) {
        /* Behind any kind of line end; a space or letter before it makes it content. */
        if (at == text.ptr || (unsigned char)at[-1] < ' ' || (unsigned char)at[-1] >= 0x80)
            n++;
        at += 4;
    }
    return n > PEG_LIMIT_YAML_TAG_DIRECTIVES;
}

static peg_status check_yaml_text(const struct peg__yaml_reader *r)
{
    if (r->text.len > r->limits.max_bytes)
        return peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                         "the text has %zu bytes and may have %zu (max_bytes)", r->text.len,
                         r->limits.max_bytes);
    if (has_too_many_tag_directives(r->text))
        return peg__fail(r->reterr, PEG_ELIMIT, "E_JSON_TOO_LARGE",
                         "the text has more than %d %%TAG directives; tags are of no use here",
                         PEG_LIMIT_YAML_TAG_DIRECTIVES);
    return PEG_OK;
}

/* The arena goes to `r` in any case. */
static peg_status compose(struct peg__yaml_reader *r, const struct peg__yaml_node **ret_root)
{
    struct composer c = {.r = *r, .anchors = PEG__MAP(PEG_LIMIT_YAML_ANCHORS)};
    const peg_str text = peg__str_from(r->text, peg__yaml_mark_len(r->text));
    peg_status status;

    if (!yaml_parser_initialize(&c.parser))
        return peg__fail_nomem(r->reterr);
    yaml_parser_set_encoding(&c.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&c.parser, (const unsigned char *)text.ptr, text.len);
    status = read_events(&c);
    yaml_parser_delete(&c.parser);
    peg__map_free(&c.anchors);
    *r = c.r;
    if (!status)
        *ret_root = c.root;
    return status;
}

static peg_status read_tree(struct peg__yaml_reader *r, const peg_json_options *options,
                            const struct peg__yaml_node **ret_root)
{
    peg_status status;

    r->limits = fill_limits(options);
    if (!r->text.len)
        r->text = peg__str("");
    status = check_yaml_text(r);
    return status ? status : compose(r, ret_root);
}

peg_status peg_yaml_parse(peg_str text, const peg_json_options *options, peg_json_doc **ret_doc,
                          peg_error *reterr)
{
    PEG__READ_OR_RETURN(options, PEG_JSON_OPTIONS_INIT, reterr);
    static const struct peg__yaml_node nothing = {.kind = PEG__YAML_SCALAR};
    struct peg__yaml_reader r = {.text = text, .reterr = reterr};
    const struct peg__yaml_node *root = NULL;
    peg_status status = read_tree(&r, options, &root);

    /* A text without a document, as an empty file is, reads as null. */
    if (!status)
        status = peg__yaml_build(root ? root : &nothing, ret_doc, reterr);
    peg__arena_free(&r.arena);
    return status;
}

/* ---- places: the text is read once more, for its nodes know where they start --------------- */

/* The key of a member; its value is the next node. */
static const struct peg__yaml_node *find_member_key(const struct peg__yaml_node *mapping,
                                                    peg_str token)
{
    for (const struct peg__yaml_node *key = mapping->u.children.first; key; key = key->next->next) {
        if (!key->is_dropped && peg__pointer_is_name(token, peg__yaml_resolve(key)->u.scalar.text))
            return key;
    }
    return NULL;
}

static const struct peg__yaml_node *find_item(const struct peg__yaml_node *sequence, peg_str token)
{
    const struct peg__yaml_node *item = sequence->u.children.first;

    for (size_t i = peg__pointer_index(token); item && i > 0; i--)
        item = item->next;
    return item;
}

/* Where the value stands, or the key of a member; NULL: there is none. */
static const struct peg__yaml_node *find_child(const struct peg__yaml_node *node, peg_str token,
                                               const struct peg__yaml_node **ret_key)
{
    node = peg__yaml_resolve(node);
    *ret_key = node->kind == PEG__YAML_MAPPING ? find_member_key(node, token) : NULL;
    if (*ret_key)
        return (*ret_key)->next;
    return node->kind == PEG__YAML_SEQUENCE ? find_item(node, token) : NULL;
}

static size_t locate_node(peg_str text, const peg_json_options *options, peg_str pointer,
                          bool wants_key)
{
    struct peg__yaml_reader r = {.text = text};
    const struct peg__yaml_node *node = NULL;
    const struct peg__yaml_node *key = NULL;
    size_t index = 0;
    peg_str token;

    if (!read_tree(&r, options, &node) && node)
        index = node->index;
    while (node && peg__pointer_next(&pointer, &token) && (node = find_child(node, token, &key)))
        index = wants_key && key ? key->index : node->index;
    peg__arena_free(&r.arena);
    return peg__yaml_offset(text, index);
}

size_t peg__yaml_locate(peg_str text, const peg_json_options *options, peg_str pointer)
{
    return locate_node(text, options, pointer, false);
}

size_t peg__yaml_locate_key(peg_str text, const peg_json_options *options, peg_str pointer)
{
    return locate_node(text, options, pointer, true);
}
