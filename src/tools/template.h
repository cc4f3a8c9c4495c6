/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_TEMPLATE_H
#define PEG_TOOLS_TEMPLATE_H

/*
 * A command line whose words have placeholders for members of a call's arguments. No shell reads
 * it: a value is a word, or a part of one, whatever bytes it has.
 *
 *   {name}    the value: a string as it is, a number or a boolean as JSON writes it. The word of an
 *             array is repeated for each item
 *   {-name}   the same; the value may begin with '-'
 *   {?name}   a word of a group that stands for nothing: the group is there if the member is true
 *   {{name}}  the text {name}
 *
 * A name begins with a letter or _, and goes on with letters, digits, '_', '-' and '.'. Any other
 * brace is itself.
 *
 * The words of a group (a list within the list) stand or vanish together: they vanish if a member
 * that they name is absent, null or an empty array.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "pegboard/common.h"
#include "pegboard/json.h"

/* As the manifest has it; a value. */
struct peg__word {
    const char *text;
    unsigned group; /* 0: of none; else the index of the list in the command, plus 1 */
    unsigned at;    /* index in the command, or in the group */
};

enum peg__piece_kind {
    PEG__PIECE_TEXT,
    PEG__PIECE_MEMBER,    /* {name}, {-name} */
    PEG__PIECE_CONDITION, /* {?name} */
};

/* Of a word; in the arena of the template. */
struct peg__piece {
    enum peg__piece_kind kind;
    bool takes_dash;
    peg_str text; /* itself, or the name of the member */
    const struct peg__piece *next;
};

struct peg__template_word {
    const struct peg__piece *pieces; /* NULL: an empty word */
    unsigned group;
};

/* Immutable; in an arena. */
struct peg__template {
    const struct peg__template_word *words;
    size_t n_words;
};

/* What is wrong, and with which word. */
struct peg__word_fault {
    size_t word;
    const char *message; /* static */
};

/* PEG_EPARSE with *ret_fault, PEG_ENOMEM. */
peg_status peg__template_parse(const struct peg__word *words, size_t n, struct peg__arena *arena,
                               struct peg__template *ret_template,
                               struct peg__word_fault *ret_fault);
bool peg__template_has_members(const struct peg__template *t);

/* The command line for these arguments, NULL-terminated, in the arena. PEG_EINVAL: a value cannot
 * be one of its words, and `problem` has the sentence for the model. PEG_ENOMEM. */
peg_status peg__template_render(const struct peg__template *t, const peg_json *args,
                                struct peg__arena *arena, const char *const **ret_argv,
                                struct peg__buf *problem);

#endif
