/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TEST_GENERATE_WORLD_H
#define PEG_TEST_GENERATE_WORLD_H

/* Fixture: a declaration with its types, and what a language writes for its first toolset. */

#include "t.h"

#include "base/mem.h"
#include "base/text/str.h"
#include "generate/declaration.h"
#include "generate/language.h"
#include "pegboard/yaml.h"

struct world {
    struct peg__arena arena;
    peg_json_doc *doc;
    struct gen_service service;
    struct peg__buf text;
    peg_error error;
};

static inline peg_status world_make(struct world *w, const char *yaml, struct gen_options options)
{
    const struct gen_names names = {.service = NULL};
    peg_status status;

    *w = (struct world){.text = PEG__BUF(1 << 24)};
    status = peg_yaml_parse(peg__str(yaml), NULL, &w->doc, &w->error);
    if (!status)
        status =
            gen_declaration_read(peg_json_root(w->doc), &names, &w->arena, &w->service, &w->error);
    if (!status)
        status =
            gen_type_service(&w->service, peg_json_root(w->doc), &options, &w->arena, &w->error);
    return status;
}

/* All its files, one behind the other. */
static inline peg_status world_write(struct world *w, const struct gen_language *language,
                                     const char *yaml)
{
    peg_status status = world_make(w, yaml, (struct gen_options){.raw = false});

    for (size_t i = 0; i < language->n_files && !status; i++)
        status = language->write(&w->service, w->service.toolsets, i, &w->text, &w->error);
    return status;
}

static inline void world_done(struct world *w)
{
    peg__buf_free(&w->text);
    peg_json_doc_free(w->doc);
    peg__arena_free(&w->arena);
}

static inline void check_has(const struct world *w, const char *part)
{
    if (!strstr(w->text.ptr, part))
        T_FAIL("there is no %s in %s", part, w->text.ptr);
}

#endif
