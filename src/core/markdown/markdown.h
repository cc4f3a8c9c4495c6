/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_MARKDOWN_MARKDOWN_H
#define PEG_CORE_MARKDOWN_MARKDOWN_H

/*
 * Markdown, as far as questions about a document need it: its blocks as CommonMark has them (with
 * the tables of GitHub), links and images, the text without markup. Left to right:
 *
 *   markdown_line.c    what a line can begin: a heading, a fence, a list item...
 *   markdown_block.c   lines -> blocks, in one pass
 *   markdown.c         the index: blocks, definitions of links, front matter
 *   markdown_link.c    what is behind a bracket; autolinks; HTML tags
 *   markdown_inline.c  the text of one block -> links, and which bytes are markup
 *   markdown_answer.c  answers from the index, as JSON
 *   markdown_content.c answers from what blocks say
 *
 * Everything takes time and memory linear in the text, whatever it is. No HTML is made, so what is
 * only about looks (tight lists, nested emphasis) is left out.
 *
 * Lines end at LF and are counted from 0; the end of a range is exclusive.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "pegboard/json.h"

struct peg__query;

/* ---- blocks --------------------------------------------------------------------------- */

enum peg__md_type {
    PEG__MD_FRONTMATTER,
    PEG__MD_HEADING,
    PEG__MD_PARAGRAPH,
    PEG__MD_FENCE,    /* code between fences */
    PEG__MD_INDENTED, /* code by indentation */
    PEG__MD_HTML,
    PEG__MD_TABLE,
    PEG__MD_BREAK,
    PEG__MD_DEFINITION, /* of a link */
    PEG__MD_QUOTE,      /* from here on: containers */
    PEG__MD_LIST,
    PEG__MD_ITEM,
};

/* 32 bytes: a document has many. A container comes first, then what it contains. */
struct peg__md_block {
    uint32_t first_line;
    uint32_t end_line; /* exclusive */
    uint32_t start;    /* where the content starts, markers left out; fences: the line after it */
    uint32_t end;
    uint32_t info;    /* fences: where the info string starts; ordered lists: the first number */
    uint32_t extent;  /* blocks of the subtree, itself included */
    uint16_t indent;  /* code: columns before each line that are no part of it */
    uint8_t type;     /* peg__md_type */
    uint8_t depth;    /* headings: 1 to 6 */
    uint8_t n_quotes; /* block quotes around it */
    char marker;      /* '#', '=', '-' of headings; '`', '~'; '-', '+', '*', '.', ')'; '-', '+' */
};

struct peg__md_definition {
    peg_str url;   /* as written, escapes and all */
    peg_str title; /* ptr NULL: none */
};

/* Owned; immutable once made. */
struct peg__md {
    peg_str text; /* borrowed */
    size_t n_lines;
    struct peg__md_block *blocks;
    size_t n_blocks;
    size_t capacity;
    struct peg__map definitions; /* label -> struct peg__md_definition */
    struct peg__arena strings;
    size_t n_steps; /* how much work it was, for tests */
};

/* The text stays the caller's and outlives the index. PEG_ELIMIT (E_TEXT_TOO_LARGE) if it has
 * too many bytes or blocks; PEG_ENOMEM. Any bytes are Markdown. */
peg_status peg__md_new(peg_str text, struct peg__md **ret_md, peg_error *reterr) PEG_MUST_USE;
struct peg__md *peg__md_free(struct peg__md *md);

/* The language of a fence: the first word behind it, "" if there is none. */
peg_str peg__md_info(const struct peg__md *md, const struct peg__md_block *fence);
peg_str peg__md_lang(const struct peg__md *md, const struct peg__md_block *fence);

/* The lines of a block without what its containers put before them; no LF, no CR at the end.
 * Requires a block that is no container. */
struct peg__md_lines {
    const struct peg__md *md;
    const struct peg__md_block *block;
    size_t at;
    size_t line;     /* number of the next one */
    size_t end_line; /* where to stop; may be set to less */
    bool is_first;
};

struct peg__md_lines peg__md_lines_of(const struct peg__md *md, const struct peg__md_block *block);
/* False at the end. */
bool peg__md_next_line(struct peg__md_lines *lines, peg_str *ret_line);
/* Appends lines joined by LF until the buffer holds max bytes, or cuts one that alone is longer;
 * false if there were none left. *ret_first_line is the number of the first one. */
bool peg__md_gather(struct peg__md_lines *lines, size_t max, struct peg__buf *out,
                    size_t *ret_first_line);

/* Label of a link in the form in which definitions are found; `out` is cleared first. */
void peg__md_normalize(peg_str label, struct peg__buf *out);

/* ---- inline ----------------------------------------------------------------------------- */

enum peg__md_link_kind { PEG__MD_INLINE, PEG__MD_REFERENCE, PEG__MD_AUTOLINK };

struct peg__md_link {
    uint8_t kind; /* peg__md_link_kind */
    bool is_image;
    bool is_dropped; /* an autolink inside the text of a link */
    bool is_email;   /* its URL starts with mailto: */
    uint32_t at;     /* of its first byte */
    uint32_t text;   /* where its text, or an image's description, starts and ends */
    uint32_t text_end;
    peg_str url;   /* as written; of the text or of a definition */
    peg_str title; /* ptr NULL: none */
};

/* Bytes that are markup, or were looked at as if they were. In the order of the text. */
struct peg__md_token {
    uint32_t at;
    uint32_t len;
    uint32_t n_markup; /* how many of them are */
    uint32_t before;   /* the opener that was open before this one */
    uint32_t link;     /* that starts here, or PEG__MD_NONE */
    uint8_t kind;
    uint8_t height;   /* openers: how deep links nest inside */
    bool has_bracket; /* openers: there is another one inside */
};

#define PEG__MD_NONE UINT32_MAX

/* The inline content of one block; used again for the next one. Owned: set to zero first, free at
 * the end. */
struct peg__md_inline {
    const struct peg__md *md; /* for definitions; NULL: none */
    peg_str text;
    struct peg__md_token *tokens;
    size_t n_tokens;
    size_t tokens_capacity;
    struct peg__md_link *links; /* in the order in which they end */
    size_t n_links;
    size_t links_capacity;
    struct peg__buf label;
    size_t n_steps; /* how much work it was, for tests */
};

/* PEG_ENOMEM only. The text stays the caller's. */
peg_status peg__md_inline_read(struct peg__md_inline *in, peg_str text) PEG_MUST_USE;
/* Appends the bytes from `from` to `to` without markup. */
void peg__md_inline_text(const struct peg__md_inline *in, size_t from, size_t to,
                         struct peg__buf *out);
void peg__md_inline_free(struct peg__md_inline *in);

/* ---- answers ---------------------------------------------------------------------------- */

/* What a question is about. */
struct peg__md_scope {
    size_t start_line;
    size_t end_line;                /* exclusive; SIZE_MAX: all */
    const struct peg__query *query; /* asked now and then whether to stop; may be NULL */
};

/*
 * Each makes a document; markdown_answer.c says of what. One that would be far longer than an
 * answer may be ends early, so that it is cut where it is rendered. What is not UTF-8 becomes
 * U+FFFD. PEG_ENOMEM; what peg__query_check() says.
 */
/* *ret_doc is NULL if there is none. */
peg_status peg__md_frontmatter(const struct peg__md *md, peg_json_doc **ret_doc, peg_error *reterr);
/* depth 0: all. */
peg_status peg__md_headings(const struct peg__md *md, unsigned depth, peg_json_doc **ret_doc,
                            peg_error *reterr);
peg_status peg__md_sections(const struct peg__md *md, unsigned depth, peg_json_doc **ret_doc,
                            peg_error *reterr);
/* lang.ptr NULL: all. */
peg_status peg__md_code_blocks(const struct peg__md *md, peg_str lang, peg_json_doc **ret_doc,
                               peg_error *reterr);
peg_status peg__md_links(const struct peg__md *md, const struct peg__md_scope *scope,
                         bool are_images, peg_json_doc **ret_doc, peg_error *reterr);
peg_status peg__md_ast(const struct peg__md *md, const struct peg__md_scope *scope,
                       peg_json_doc **ret_doc, peg_error *reterr);
/* Appends; the buffer's status is PEG_ELIMIT if it does not fit. */
peg_status peg__md_text(const struct peg__md *md, const struct peg__md_scope *scope,
                        struct peg__buf *out, peg_error *reterr);

/* ---- answers --------------------------------------------------------------- */

/* An answer being written, for the files that write some. The first failure sticks. */

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
