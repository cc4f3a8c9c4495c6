/* SPDX-License-Identifier: Apache-2.0 */

#include "schema/compile/typos.h"

#include <string.h>

#include "base/text/str.h"
#include "base/text/typo.h"
#include "schema/compile/keyword.h"

struct search {
    const struct peg__dialect *dialect;
    peg__found_typo *found;
    void *user;
};

/* Shorter names are one edit from too many words. */
enum { MIN_KEYWORD = 4, MIN_NAME = 3 };

/* The keyword that a name is, or the one that it is an edit away from; KW_COUNT if it is neither.
 */
static enum peg__keyword closest(peg_str name, bool *ret_is_keyword)
{
    enum peg__keyword best = KW_COUNT;
    struct peg__typo typo;

    *ret_is_keyword = false;
    peg__typo_start(&typo, name);
    typo.best = 2; /* below it: one edit, or another case */
    for (int i = 0; i < KW_COUNT; i++) {
        const char *keyword = peg__keyword_name((enum peg__keyword)i);

        if (peg__str_is(name, keyword)) {
            *ret_is_keyword = true;
            return (enum peg__keyword)i;
        }
        if (strlen(keyword) >= MIN_KEYWORD && name.len >= MIN_NAME &&
            peg__typo_offer(&typo, peg__str(keyword)))
            best = (enum peg__keyword)i;
    }
    return best;
}

static void look_at_schema(const struct search *s, const peg_json *schema);

// NOLINTNEXTLINE(misc-no-recursion): by the depth of a document, which is limited
static void look_at_each(const struct search *s, const peg_json *value)
{
    if (value->kind == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (value, item)
            look_at_schema(s, item);
    } else if (value->kind == PEG_JSON_OBJECT) {
        PEG_JSON_EACH_MEMBER (value, key)
            look_at_schema(s, key + 1);
    }
}

// NOLINTNEXTLINE(misc-no-recursion)
static void look_below(const struct search *s, enum peg__keyword keyword, const peg_json *value)
{
    switch (peg__keyword_shape(keyword, s->dialect)) {
    case SHAPE_NONE:
        break;
    case SHAPE_SCHEMA:
        look_at_schema(s, value);
        break;
    case SHAPE_SCHEMA_OR_ARRAY:
        if (value->kind == PEG_JSON_ARRAY)
            look_at_each(s, value);
        else
            look_at_schema(s, value);
        break;
    case SHAPE_ARRAY:
    case SHAPE_MAP:
    case SHAPE_MAP_OR_NAMES:
        look_at_each(s, value);
        break;
    case SHAPE_MAP_OF_MAPS:
        if (value->kind == PEG_JSON_OBJECT) {
            PEG_JSON_EACH_MEMBER (value, key)
                look_at_each(s, key + 1);
        }
        break;
    }
}

// NOLINTNEXTLINE(misc-no-recursion)
static void look_at_schema(const struct search *s, const peg_json *schema)
{
    if (schema->kind != PEG_JSON_OBJECT)
        return;
    PEG_JSON_EACH_MEMBER (schema, key) {
        bool is_keyword;
        const enum peg__keyword keyword = closest(peg_json_str(key), &is_keyword);

        if (is_keyword)
            look_below(s, keyword, key + 1);
        else if (keyword != KW_COUNT)
            s->found(key, peg__keyword_name(keyword), s->user);
    }
}

void peg__schema_typos(const peg_json *schema, peg__found_typo *found, void *user)
{
    /* Of the shapes only that of items depends on it, and a draft that has no array there has no
     * use for one. */
    const struct peg__dialect dialect = peg__dialect_of(PEG_DIALECT_DRAFT7);
    const struct search search = {.dialect = &dialect, .found = found, .user = user};

    look_at_schema(&search, schema);
}
