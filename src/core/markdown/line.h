/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_MARKDOWN_LINE_H
#define PEG_CORE_MARKDOWN_LINE_H

/* One line of Markdown: how far it is read, and what can start there. */

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

#endif
