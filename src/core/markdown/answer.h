/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_MARKDOWN_ANSWER_H
#define PEG_CORE_MARKDOWN_ANSWER_H

/* An answer being written, for the files that write some. The first failure sticks. */

#include "core/markdown/markdown.h"

struct peg__md_answer {
    const struct peg__md *md;
    const struct peg__md_scope *scope; /* NULL: the whole document */
    peg_json_builder *b;
    size_t size;             /* never more than what is rendered */
    struct peg__buf text;    /* scratch: bytes on their way to being a string */
    struct peg__buf content; /* scratch: a piece of a block */
    peg_status status;
    peg_error *reterr;
};

void peg__md_begin(struct peg__md_answer *a, const struct peg__md *md,
                   const struct peg__md_scope *scope, peg_error *reterr);
peg_status peg__md_finish(struct peg__md_answer *a, peg_json_doc **ret_doc);

/* There is a failure, or more would be cut off. */
bool peg__md_is_full(const struct peg__md_answer *a);
void peg__md_fail_nomem(struct peg__md_answer *a);

/* Members of the object that is open. What is not UTF-8 becomes U+FFFD. */
void peg__md_put_number(struct peg__md_answer *a, const char *name, size_t number);
void peg__md_put_text(struct peg__md_answer *a, const char *name, peg_str bytes);
/* Escapes and character references as what they stand for. */
void peg__md_put_unescaped(struct peg__md_answer *a, const char *name, const char *prefix,
                           peg_str written);

/* ---- blocks within the range -------------------------------------------------------------- */

static inline bool peg__md_is_within(const struct peg__md_answer *a,
                                     const struct peg__md_block *block)
{
    return block->end_line > a->scope->start_line && block->first_line < a->scope->end_line;
}

/* The block after this one: a container outside the range is passed with all it contains. */
static inline size_t peg__md_next_block(const struct peg__md_answer *a, size_t i)
{
    const struct peg__md_block *block = &a->md->blocks[i];

    return peg__md_is_within(a, block) ? i + 1 : i + block->extent;
}

#endif
