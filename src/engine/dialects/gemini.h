/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_GEMINI_H
#define PEG_ENGINE_DIALECTS_GEMINI_H

/* What schema_gemini.c writes is decided in schema_gemini_form.c. */

#include "engine/dialects/view.h"

/* How one schema is written. */
struct peg__gemini_form {
    unsigned types;        /* without null; none: anything */
    bool is_nullable;      /* null is valid, too */
    bool has_enum;         /* all values are strings */
    bool has_const;        /* which is a string */
    bool is_described;     /* the description stands outside already */
    enum peg__kw branches; /* PEG__KW_ANY_OF, PEG__KW_ONE_OF or PEG__KW_UNKNOWN */
};

void peg__gemini_decide(const struct peg__view *view, struct peg__gemini_form *ret_form);
/* Types that the other keywords speak of, where `type` is missing; 0: none. */
unsigned peg__gemini_implied(const struct peg__view *view);
/* PEG__KW_ANY_OF or PEG__KW_ONE_OF, if it has branches; PEG__KW_UNKNOWN. */
enum peg__kw peg__gemini_find_branches(const struct peg__view *view);
static inline enum peg__kw peg__gemini_branches(const struct peg__view *view)
{
    return view->has & (PEG__KW_BIT(ANY_OF) | PEG__KW_BIT(ONE_OF)) ? peg__gemini_find_branches(view)
                                                                   : PEG__KW_UNKNOWN;
}

/* Fills the notes with what goes into the description, and tells what is lost. */
void peg__gemini_sort(struct peg__render *r, const struct peg__view *view,
                      const struct peg__gemini_form *form);

/* Keywords of one type that are sent as they are, if their value is taken. */
uint64_t peg__gemini_keywords(unsigned type);
bool peg__gemini_takes_value(enum peg__kw keyword, const peg_json *value);
bool peg__gemini_takes_format(unsigned type, const peg_json *format);
/* exclusiveMinimum or exclusiveMaximum of whole numbers as the bound next to it. */
bool peg__gemini_bound(const struct peg__view *view, const struct peg__gemini_form *form,
                       enum peg__kw keyword, int64_t *ret_bound);

#endif
