/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GENERATE_LANGUAGE_H
#define PEG_GENERATE_LANGUAGE_H

/* A language to write: the files of one toolset, and a function that writes each. A language is a
 * room of generate/, whose face declares one of these, and a line in language.c. */

#include "base/buf.h"
#include "generate/model.h"

/* What a file is for: types are always written, the others as they are asked for. */
enum gen_part {
    GEN_PART_TYPES,
    GEN_PART_PROVIDER,
    GEN_PART_CLIENT,
};

struct gen_file {
    const char *name; /* "types.h" */
    enum gen_part part;
};

/* Constant. */
struct gen_language {
    const char *name;             /* as --lang takes it */
    const struct gen_file *files; /* in the order in which they are written and reported */
    size_t n_files;
    /* Appends the text of files[file]: the same model gives the same text, byte for byte.
     * PEG_ENOMEM, PEG_ELIMIT (E_GENERATE_LIMIT). */
    peg_status (*write)(const struct gen_service *service, const struct gen_toolset *toolset,
                        size_t file, struct peg__buf *out, peg_error *reterr);
    /* The name of the folder of a service or a toolset, from its word, in the arena; NULL: out of
     * memory. Without the function it is the word. */
    const char *(*folder)(struct peg__arena *arena, const char *word);
};

/* NULL: there is no such language. */
const struct gen_language *gen_language_find(const char *name);
/* "c, python": those that gen_language_find() finds. */
extern const char gen_language_names[];

/* ---- for languages: text.c ---- */

/* The text of a part that is made for `out`; what went wrong with it goes wrong with all. */
const char *gen_text_of(struct peg__buf *out, const struct peg__buf *part);
/* What a file is, and of what it was made, for a comment at its head. */
void gen_put_head(struct peg__buf *text, const struct gen_service *service,
                  const struct gen_toolset *toolset, const char *what);
/* The next word of a text, without the white space and control characters around it, and what is
 * left of the text; "": there is none. */
peg_str gen_next_word(peg_str *text);
/* The code of the character at `at` if it ends a line in JavaScript, or shows code in another order
 * than it has; else 0. It is of three bytes. */
unsigned gen_hidden_char(peg_str text, size_t at);
/* What became of a file that was written: its status as an error that names the file. */
peg_status gen_finish(const struct peg__buf *out, const char *file, peg_error *reterr);

#endif
