/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_DEFINITIONS_WORLD_H
#define PEG_TESTS_DEFINITIONS_WORLD_H

/* Definitions from text, what a vendor is sent for them, and what it is not told. */

#include "../t.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/definitions.h"

struct world {
    peg_json_doc *doc;
    char *text;
    size_t len;
    peg_definition_losses *losses;
    peg_error error;
};

static inline void world_free(struct world *w)
{
    peg_free(w->text);
    peg_definition_losses_free(w->losses);
    peg_json_doc_free(w->doc);
    *w = (struct world){0};
}

static inline peg_status render(struct world *w, const char *definitions,
                                const peg_definitions_options *options)
{
    peg_status status;

    *w = (struct world){0};
    status = peg_json_parse(peg__str(definitions), NULL, &w->doc, &w->error);
    if (status)
        return status;
    return peg_definitions_render(peg_json_root(w->doc), options, &w->text, &w->len, &w->losses,
                                  &w->error);
}

/* Of one tool "t" with these parameters. */
static inline peg_status render_schema(struct world *w, const char *schema,
                                       const peg_definitions_options *options)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_status status;

    *w = (struct world){0};
    peg__buf_puts(&text, "[{\"name\":\"t\",\"parameters\":");
    peg__buf_puts(&text, schema);
    peg__buf_puts(&text, "}]");
    status = text.status ? text.status : render(w, text.ptr, options);
    peg__buf_free(&text);
    return status;
}

static inline bool has_loss(const struct world *w, const char *where, const char *keyword,
                            const char *what)
{
    for (size_t i = 0; i < peg_definition_losses_len(w->losses); i++) {
        const peg_definition_loss *loss = peg_definition_losses_at(w->losses, i);

        if (peg__str_is(loss->where, where) && peg__str_is(loss->keyword, keyword) &&
            strcmp(loss->what, what) == 0 && loss->note.len > 0)
            return true;
    }
    return false;
}

static inline void print_losses(const struct world *w)
{
    for (size_t i = 0; i < peg_definition_losses_len(w->losses); i++) {
        const peg_definition_loss *loss = peg_definition_losses_at(w->losses, i);

        printf("# %.*s %.*s %s: %.*s\n", PEG_ARG(loss->where), PEG_ARG(loss->keyword), loss->what,
               PEG_ARG(loss->note));
    }
}

#define CHECK_TEXT(w, expected) CHECK_STR(peg__strn((w)->text, (w)->len), expected)
#define CHECK_LOSS(w, where, keyword, what)                                                        \
    do {                                                                                           \
        if (!has_loss(w, where, keyword, what)) {                                                  \
            print_losses(w);                                                                       \
            T_FAIL("expected that %s at %s is %s", keyword, where, what);                          \
        }                                                                                          \
    } while (0)
#define CHECK_LOSSES(w, n)                                                                         \
    do {                                                                                           \
        if (peg_definition_losses_len((w)->losses) != (n)) {                                       \
            print_losses(w);                                                                       \
            T_FAIL("%zu losses, expected %d", peg_definition_losses_len((w)->losses), (int)(n));   \
        }                                                                                          \
    } while (0)

#endif
