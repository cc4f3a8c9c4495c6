/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Most names are acceptable as they are: of those nothing is kept. Only names that have to change
 * are in the two maps, with what they become.
 */

#include "engine/dialects/dialects.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "engine/dialects/internal.h"

/* ---- vendors ---------------------------------------------------------------------------- */

static const char *const vendor_names[PEG_N_VENDORS] = {
    [PEG_VENDOR_NEUTRAL] = "neutral",
    [PEG_VENDOR_OPENAI_CHAT] = "openai-chat",
    [PEG_VENDOR_OPENAI_RESPONSES] = "openai-responses",
    [PEG_VENDOR_ANTHROPIC] = "anthropic",
    [PEG_VENDOR_GEMINI] = "gemini",
};

const char *peg_vendor_name(peg_vendor vendor)
{
    return (unsigned)vendor < PEG_N_VENDORS ? vendor_names[vendor] : "unknown";
}

peg_status peg_vendor_from_name(peg_str name, peg_vendor *ret_vendor, peg_error *reterr)
{
    for (unsigned i = 0; i < PEG_N_VENDORS; i++) {
        if (peg__str_is(name, vendor_names[i])) {
            *ret_vendor = (peg_vendor)i;
            return PEG_OK;
        }
    }
    return peg__fail(reterr, PEG_ENOTFOUND, "E_DEFINITIONS",
                     "there is no vendor '%.*s': it is neutral, openai-chat, openai-responses, "
                     "anthropic or gemini",
                     (int)(name.len < 64 ? name.len : 64), name.ptr);
}

/* ---- names ------------------------------------------------------------------------------- */

enum {
    SUFFIX_DIGITS = 8,      /* of the digest, behind a '_' */
    SUFFIX_DIGITS_MAX = 32, /* tried when names were chosen so that eight collide */
};

struct peg__names {
    peg_vendor vendor;
    size_t max_bytes;
    struct peg__arena arena; /* of the names that changed */
    struct peg__map out;     /* tool -> what the vendor calls it, a peg_str */
    struct peg__map in;      /* and back */
    struct peg__map refused; /* names that would stand for two tools */
};

PEG_DEFINE_CLEANUP(struct peg__names, peg__names_free)

struct peg__names *peg__names_free(struct peg__names *names)
{
    if (!names)
        return NULL;
    peg__map_free(&names->out);
    peg__map_free(&names->in);
    peg__map_free(&names->refused);
    peg__arena_free(&names->arena);
    peg__free(names);
    return NULL;
}

/* ---- what is acceptable ----------------------------------------------------------------- */

enum { LETTER = 1, OTHER = 2, GEMINI_ONLY = 4 };

static const uint8_t classes[256] = {
    ['A' ... 'Z'] = LETTER, ['a' ... 'z'] = LETTER, ['_'] = LETTER,     ['0' ... '9'] = OTHER,
    ['-'] = OTHER,          ['.'] = GEMINI_ONLY,    [':'] = GEMINI_ONLY};

static bool may_begin(char c)
{
    return classes[(unsigned char)c] == LETTER;
}

static unsigned classes_of(peg_vendor vendor)
{
    return vendor == PEG_VENDOR_GEMINI ? LETTER | OTHER | GEMINI_ONLY : LETTER | OTHER;
}

static bool is_taken_by(peg_vendor vendor, char c)
{
    return classes[(unsigned char)c] & classes_of(vendor);
}

static bool is_acceptable(const struct peg__names *names, peg_str name)
{
    const unsigned taken = classes_of(names->vendor);

    if (name.len == 0 || name.len > names->max_bytes)
        return false;
    if (names->vendor == PEG_VENDOR_NEUTRAL)
        return true;
    if (names->vendor == PEG_VENDOR_GEMINI && !may_begin(name.ptr[0]))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (!(classes[(unsigned char)name.ptr[i]] & taken))
            return false;
    }
    return true;
}

/* ---- a set of the names that definitions have ------------------------------------------- */

/* Slots hold names of the definitions, or NULL. A map would copy each of them. */
struct taken {
    const peg_json **slots;
    size_t n_slots; /* a power of two, or 0 */
    struct peg__hash_key key;
};

static size_t slot_of(const struct taken *taken, peg_str name)
{
    size_t i = (size_t)peg__hash(taken->key, name) & (taken->n_slots - 1);

    while (taken->slots[i] && !peg__str_eq(peg_json_str(taken->slots[i]), name))
        i = (i + 1) & (taken->n_slots - 1);
    return i;
}

static bool is_used_name(const struct taken *taken, peg_str name)
{
    return taken->n_slots && taken->slots[slot_of(taken, name)];
}

static peg_status taken_make(size_t n, struct taken *ret_taken)
{
    size_t n_slots = 16;

    while (n_slots < 2 * n)
        n_slots *= 2;
    *ret_taken = (struct taken){.slots = peg__alloc_zero(n_slots, sizeof(peg_json *)),
                                .n_slots = n_slots,
                                .key = peg__hash_key_new()};
    return ret_taken->slots ? PEG_OK : PEG_ENOMEM;
}

/* ---- what a name becomes ---------------------------------------------------------------- */

/* Bytes that continue a character add nothing: one '_' stands for each character. */
static size_t replace_chars(const struct peg__names *names, peg_str name, char *to)
{
    size_t len = 0;

    if (names->vendor == PEG_VENDOR_GEMINI && name.len && !may_begin(name.ptr[0]) &&
        is_taken_by(names->vendor, name.ptr[0]))
        to[len++] = '_';
    for (size_t i = 0; i < name.len && len < names->max_bytes; i++) {
        const char c = name.ptr[i];

        if (is_taken_by(names->vendor, c))
            to[len++] = c;
        else if (!peg__utf8_is_tail(c))
            to[len++] = '_';
    }
    to[len] = '\0';
    return len;
}

static peg_status basic_form(struct peg__names *names, peg_str name, peg_str *ret_wire)
{
    const size_t max = name.len < names->max_bytes ? name.len : names->max_bytes;
    char *bytes = peg__arena_alloc(&names->arena, max + 2);

    if (!bytes)
        return PEG_ENOMEM;
    *ret_wire = peg__strn(bytes, replace_chars(names, name, bytes));
    return PEG_OK;
}

static bool is_free(const struct peg__names *names, const struct taken *taken, peg_str wire)
{
    return !is_used_name(taken, wire) && !peg__map_find(&names->in, wire) &&
           !peg__map_find(&names->refused, wire);
}

/* The basic form, cut where needed, and digits of the name's own digest. */
static peg_status with_suffix(struct peg__names *names, const struct taken *taken, peg_str name,
                              peg_str *wire)
{
    unsigned char digest[PEG_SHA256_BYTES];
    char hex[PEG_SHA256_HEX];

    if (!peg__sha256(name, digest))
        return PEG_ENOMEM;
    peg__hex(digest, sizeof(digest), hex);
    for (size_t n = SUFFIX_DIGITS; n <= SUFFIX_DIGITS_MAX; n *= 2) {
        size_t keep;
        char *bytes;

        if (n + 2 > names->max_bytes)
            break;
        keep = wire->len < names->max_bytes - n - 1 ? wire->len : names->max_bytes - n - 1;
        bytes = peg__arena_alloc(&names->arena, names->max_bytes + 1);
        if (!bytes)
            return PEG_ENOMEM;
        memcpy(bytes, wire->ptr, keep);
        bytes[keep] = '_';
        memcpy(bytes + keep + 1, hex, n);
        bytes[keep + 1 + n] = '\0';
        if (is_free(names, taken, peg__strn(bytes, keep + 1 + n))) {
            *wire = peg__strn(bytes, keep + 1 + n);
            return PEG_OK;
        }
    }
    return PEG_ELIMIT;
}

static peg_status add_changed(struct peg__names *names, peg_str name, peg_str wire)
{
    peg_str *pair = peg__arena_alloc(&names->arena, 2 * sizeof(*pair));
    const char *original = peg__arena_copy(&names->arena, name);
    peg_status status;

    if (!pair || !original)
        return PEG_ENOMEM;
    pair[0] = wire;
    pair[1] = peg__strn(original, name.len);
    status = peg__map_add(&names->out, name, &pair[0]);
    return status ? status : peg__map_add(&names->in, wire, &pair[1]);
}

static peg_status change_name(struct peg__names *names, const struct taken *taken, peg_str name,
                              peg_error *reterr)
{
    peg_str wire;
    peg_status status = basic_form(names, name, &wire);

    if (!status && !is_free(names, taken, wire))
        status = with_suffix(names, taken, name, &wire);
    if (!status)
        status = add_changed(names, name, wire);
    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (status)
        return peg__fail(reterr, PEG_ELIMIT, "E_DEFINITIONS",
                         "the tool '%.*s' finds no name of at most %zu bytes that is its own: give "
                         "it a shorter one",
                         (int)(name.len < 64 ? name.len : 64), name.ptr, names->max_bytes);
    return PEG_OK;
}

/* ---- definitions ------------------------------------------------------------------------ */

peg_status peg__fail_definition(peg_error *reterr, peg_status status, size_t i, const char *member,
                                const char *reason)
{
    char where[64];

    peg__fail(reterr, status, "E_DEFINITIONS", "the definition at %zu: %s", i, reason);
    snprintf(where, sizeof(where), "/%zu%s", i, member);
    if (reterr)
        peg__error_where(reterr, peg__str(where));
    return status;
}

static peg_status check_tool_name(const struct peg__names *names, const peg_json *name, size_t i,
                                  peg_error *reterr)
{
    const size_t max =
        names->vendor == PEG_VENDOR_NEUTRAL ? names->max_bytes : PEG_LIMIT_NAME_BYTES;
    char reason[128];

    if (!name || name->kind != PEG_JSON_STRING || name->len == 0)
        return peg__fail_definition(reterr, PEG_EINVAL, i, "/name",
                                    "give it a \"name\" that is a string and not empty");
    if (name->len > max) {
        snprintf(reason, sizeof(reason), "its name '%.32s...' has %u bytes: use at most %zu",
                 name->u.ptr, name->len, max);
        return peg__fail_definition(reterr, PEG_ELIMIT, i, "/name", reason);
    }
    return PEG_OK;
}

/* Counts those that have to change. */
static peg_status take_names(const struct peg__names *names, const peg_json *definitions,
                             struct taken *taken, size_t *ret_n_changing, peg_error *reterr)
{
    size_t n_changing = 0;
    size_t i = 0;

    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_json *name = peg_json_get(definition, "name");
        peg_status status = check_tool_name(names, name, i, reterr);
        size_t slot;

        if (status)
            return status;
        slot = slot_of(taken, peg_json_str(name));
        if (taken->slots[slot])
            return peg__fail_definition(reterr, PEG_EINVAL, i, "/name",
                                        "another definition has the same name: rename one");
        taken->slots[slot] = name;
        n_changing += !is_acceptable(names, peg_json_str(name));
        i++;
    }
    *ret_n_changing = n_changing;
    return PEG_OK;
}

/* No tool gets a basic form that two names share, so that the order of definitions does not matter.
 * A value says how many want it. */
static peg_status refuse_shared(struct peg__names *names, const peg_json *definitions)
{
    static char shared;
    struct peg__map wanted = PEG__MAP(PEG_LIMIT_REGISTRY_TOOLS);
    peg_status status = PEG_OK;

    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_str name = peg_json_str(peg_json_get(definition, "name"));
        peg_str wire;

        if (is_acceptable(names, name))
            continue;
        status = basic_form(names, name, &wire);
        if (!status)
            status = peg__map_add(&wanted, wire, NULL);
        if (status == PEG_EEXISTS)
            status = peg__map_put(&names->refused, wire, &shared, NULL);
        if (status)
            break;
    }
    peg__map_free(&wanted);
    return status;
}

static peg_status change_definitions(struct peg__names *names, const peg_json *definitions,
                                     const struct taken *taken, peg_error *reterr)
{
    if (refuse_shared(names, definitions))
        return peg__fail_nomem(reterr);
    PEG_JSON_EACH_ITEM (definitions, definition) {
        const peg_str name = peg_json_str(peg_json_get(definition, "name"));
        peg_status status;

        if (is_acceptable(names, name))
            continue;
        status = change_name(names, taken, name, reterr);
        if (status)
            return status;
    }
    return PEG_OK;
}

static size_t max_tools(const peg_definitions_options *options)
{
    if (options->max_tools)
        return options->max_tools;
    switch (options->vendor) {
    case PEG_VENDOR_OPENAI_CHAT:
    case PEG_VENDOR_OPENAI_RESPONSES:
        return PEG_LIMIT_OPENAI_TOOLS;
    case PEG_VENDOR_ANTHROPIC:
    case PEG_VENDOR_GEMINI:
        return PEG_LIMIT_OTHER_TOOLS;
    default:
        return PEG_LIMIT_REGISTRY_TOOLS;
    }
}

static peg_status check_definitions(const peg_json *definitions,
                                    const peg_definitions_options *options, peg_error *reterr)
{
    if (definitions->kind != PEG_JSON_ARRAY)
        return peg__fail(reterr, PEG_EINVAL, "E_DEFINITIONS",
                         "definitions are an array of objects, and this is no array but %s",
                         peg_json_kind_name(peg_json_kind_of(definitions)));
    if (definitions->len > max_tools(options))
        return peg__fail(reterr, PEG_ELIMIT, "E_DEFINITIONS",
                         "there are %u tools, and %s takes at most %zu (max_tools): offer fewer, "
                         "or raise max_tools if the model takes more",
                         definitions->len, peg_vendor_name(options->vendor), max_tools(options));
    return PEG_OK;
}

static peg_status add_definitions(struct peg__names *names, const peg_json *definitions,
                                  struct taken *taken, peg_error *reterr)
{
    peg_status status = taken_make(definitions->len, taken);
    size_t n_changing = 0;

    if (status)
        return peg__fail_nomem(reterr);
    status = take_names(names, definitions, taken, &n_changing, reterr);
    if (status || n_changing == 0)
        return status;
    return change_definitions(names, definitions, taken, reterr);
}

/* Tools that are gone: an acceptable name stays, also where a definition has become that, for in
 * the history it does no harm. */
static peg_status add_calls(struct peg__names *names, const peg_turn *turn,
                            const struct taken *taken, peg_error *reterr)
{
    const size_t n = peg_turn_len(turn);

    for (size_t i = peg_turn_next(turn, PEG_BLOCKS_CALLS, 0); i < n;
         i = peg_turn_next(turn, PEG_BLOCKS_CALLS, i + 1)) {
        const peg_str name = peg_block_tool(peg_turn_at(turn, i));
        peg_status status;

        if (name.len == 0 || is_acceptable(names, name) || peg__map_find(&names->out, name))
            continue;
        status = change_name(names, taken, name, reterr);
        if (status)
            return status;
    }
    return PEG_OK;
}

static size_t max_name_bytes(const peg_definitions_options *options)
{
    if (options->max_name_bytes)
        return options->max_name_bytes < PEG_LIMIT_NAME_BYTES ? options->max_name_bytes
                                                              : PEG_LIMIT_NAME_BYTES;
    return options->vendor == PEG_VENDOR_NEUTRAL ? PEG_LIMIT_NAME_BYTES
                                                 : PEG_LIMIT_PROVIDER_NAME_BYTES;
}

peg_status peg__names_new(const peg_json *definitions, const peg_turn *turn,
                          const peg_definitions_options *options, struct peg__names **ret_names,
                          peg_error *reterr)
{
    PEG_CLEANUP(peg__names_freep) struct peg__names *names = peg__alloc_zero(1, sizeof(*names));
    struct taken taken = {0};
    peg_status status = PEG_OK;

    if (!names)
        return peg__fail_nomem(reterr);
    names->vendor = options->vendor;
    names->max_bytes = max_name_bytes(options);
    names->out.max = names->in.max = names->refused.max =
        PEG_LIMIT_REGISTRY_TOOLS + PEG_LIMIT_TURN_BLOCKS;

    if (definitions)
        status = check_definitions(definitions, options, reterr);
    if (!status && definitions && definitions->len)
        status = add_definitions(names, definitions, &taken, reterr);
    if (!status && turn)
        status = add_calls(names, turn, &taken, reterr);
    peg__free(taken.slots);
    if (status)
        return status;
    *ret_names = names;
    names = NULL;
    return PEG_OK;
}

/* ---- asking ----------------------------------------------------------------------------- */

peg_str peg__names_out(const struct peg__names *names, peg_str tool)
{
    const peg_str *wire;

    if (is_acceptable(names, tool))
        return tool;
    wire = peg__map_get(&names->out, tool);
    return wire ? *wire : peg__str("unknown_tool");
}

peg_str peg__names_in(const struct peg__names *names, peg_str wire)
{
    const peg_str *tool = peg__map_get(&names->in, wire);

    return tool ? *tool : wire;
}
