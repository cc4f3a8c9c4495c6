/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_MARKDOWN_INTERNAL_H
#define PEG_CORE_MARKDOWN_INTERNAL_H

/* One line of Markdown: how far it is read, and what can start there. */

#include "base/buf.h"
#include "core/markdown/markdown.h"
#include "pegboard/common.h"

/* A value. Tabs reach to columns that are multiples of 4; one may be used in part. */
struct peg__md_cursor {
    const char *text; /* of the document */
    size_t start;     /* of the line */
    size_t at;
    size_t end;      /* of the line, without LF and spaces before it */
    unsigned column; /* of `at` */
    unsigned spare;  /* columns before `at` that are left of a tab */
    unsigned quote;  /* column behind the last block quote marker */
};

static inline bool peg__md_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* Columns of spaces and tabs from here. */
unsigned peg__md_indent(const struct peg__md_cursor *cursor);
/* Goes on by so many columns, no farther than the spaces and tabs there are. */
void peg__md_skip_columns(struct peg__md_cursor *cursor, unsigned n);
/* What is left of the line, without spaces at either end. */
peg_str peg__md_rest(const struct peg__md_cursor *cursor);

/* ---- what starts here: `rest` is the line without indentation -------------------------- */

/* The depth of a heading with #, 0 if it is none; *ret_content is its text. */
unsigned peg__md_atx(peg_str rest, peg_str *ret_content);
/* '=' or '-' if the line underlines a heading, else 0. */
char peg__md_underline(peg_str rest);
/* Length of an opening fence, 0 if it is none. */
size_t peg__md_fence(peg_str rest);
bool peg__md_is_closing_fence(peg_str rest, char marker, size_t len);
bool peg__md_is_break(peg_str rest);
/* Cells of a table's delimiter row such as |---|:-:|, 0 if it is none. */
size_t peg__md_delimiter_row(peg_str rest);
/* Cells of a row. */
size_t peg__md_cells(peg_str rest);

struct peg__md_marker {
    char type; /* '-', '+', '*', '.' or ')' */
    size_t len;
    uint32_t number;
};

/* Bytes of a list marker, 0 if there is none. */
size_t peg__md_list_marker(peg_str rest, struct peg__md_marker *ret_marker);

/* Which of the seven kinds of HTML blocks of CommonMark starts here, 0 if none. */
unsigned peg__md_html(peg_str rest);
/* Does it end in this line? Kinds 6 and 7 end before a blank line instead. */
bool peg__md_html_ends(peg_str rest, unsigned kind);

/* ---- links ----------------------------------------------------------------- */

/*
 * The parts of links, and what stands between < and >. Each function reads what starts at s->at
 * and moves behind it, or returns false and stays. How far a failure looks ahead is bounded by what
 * made it look, so that many of them together stay linear; n_steps counts.
 */

struct peg__md_scan {
    peg_str text;
    size_t at;
    size_t n_steps;
    unsigned lacks; /* a bit for each kind of HTML whose end does not come any more */
};

/* [label]: up to 999 bytes, no bracket inside, not only spaces. */
bool peg__md_scan_label(struct peg__md_scan *s, peg_str *ret_label);
/* (url "title"); *ret_title has ptr NULL if there is none. */
bool peg__md_scan_target(struct peg__md_scan *s, peg_str *ret_url, peg_str *ret_title);
/* [label]: url "title", with the end of its line. */
bool peg__md_scan_definition(struct peg__md_scan *s, peg_str *ret_label, peg_str *ret_url,
                             peg_str *ret_title);
/* <https://...> or <somebody@...>; *ret_url is what is inside. */
bool peg__md_scan_autolink(struct peg__md_scan *s, peg_str *ret_url, bool *ret_is_email);
/* http://, https:// or www. and what follows, as GitHub finds it. */
bool peg__md_scan_bare_url(struct peg__md_scan *s, peg_str *ret_url);
/* A tag, a comment, a processing instruction, a declaration, CDATA. */
bool peg__md_scan_html(struct peg__md_scan *s);

/* `\*` and `&amp;` as what they stand for. */
void peg__md_unescape(peg_str s, struct peg__buf *out);
/* Bytes of the character reference that starts here (at '&'), 0 if there is none; appends what it
 * stands for unless out is NULL. */
size_t peg__md_entity(peg_str s, struct peg__buf *out);

static inline bool peg__md_is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static inline bool peg__md_is_alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* ---- blocks ---------------------------------------------------------------- */

/* Between the index and the reading of blocks. */

/* Reads the blocks of md->text from the line that starts at `at` on. PEG_ELIMIT, PEG_ENOMEM. */
peg_status peg__md_read_blocks(struct peg__md *md, size_t at, size_t line,
                               peg_error *reterr) PEG_MUST_USE;

/* Appends a copy. PEG_ELIMIT (PEG_LIMIT_MARKDOWN_BLOCKS), PEG_ENOMEM. */
peg_status peg__md_add_block(struct peg__md *md, const struct peg__md_block *block,
                             peg_error *reterr) PEG_MUST_USE;

/*
 * Takes the definitions of links from the start of a paragraph that is the last block: each becomes
 * a block, and what is left, if anything, stays a paragraph. *ret_is_left tells.
 */
peg_status peg__md_take_definitions(struct peg__md *md, bool *ret_is_left,
                                    peg_error *reterr) PEG_MUST_USE;

#endif
