/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines become blocks in one pass, by the strategy of CommonMark's appendix. For each line:
 *
 *   match_containers   which of the open quotes and list items go on?
 *   continue_leaf      code and HTML take the line as it is
 *   start_block        again and again: a quote, an item, a heading... starts here
 *   add_text           what is left belongs to a paragraph
 *
 * Open containers are on a stack of PEG_LIMIT_MARKDOWN_DEPTH; beyond it markers are text. A line
 * costs its bytes and as many containers as its indentation and markers pay for.
 */

#include "core/markdown/internal.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

enum { MAX_DEPTH = PEG_LIMIT_MARKDOWN_DEPTH, CODE_INDENT = 4 };

struct container {
    uint32_t block;
    uint8_t type;
    char marker;     /* lists */
    unsigned indent; /* items: columns of what belongs to them */
};

struct reader {
    struct peg__md *md;
    struct peg__md_cursor cursor; /* in the line */
    uint32_t line;
    struct container open[MAX_DEPTH];
    size_t n_open;
    size_t n_quotes; /* among them */
    bool has_leaf;   /* the last block is a leaf and may go on */
    unsigned html;   /* which kind, while that leaf is HTML */
    size_t fence;    /* length, while that leaf is a fence */
    peg_status status;
    peg_error *reterr;
};

/* What became of the line. */
enum outcome { GOES_ON, IS_READ, IS_TEXT };

/* ---- blocks -------------------------------------------------------------------------------- */

static struct peg__md_block *last_block(const struct reader *r)
{
    return &r->md->blocks[r->md->n_blocks - 1];
}

static bool has_leaf_of(const struct reader *r, enum peg__md_type type)
{
    return r->has_leaf && last_block(r)->type == type;
}

/* Requires one that is open. */
static struct container *innermost(struct reader *r)
{
    return &r->open[r->n_open - 1];
}

/* A container reaches as far as what is in it. */
static void stretch_container(struct reader *r, uint32_t end_line)
{
    if (r->n_open) {
        struct peg__md_block *container = &r->md->blocks[innermost(r)->block];

        if (container->end_line < end_line)
            container->end_line = end_line;
    }
}

static void close_leaf(struct reader *r)
{
    bool is_left;

    if (!r->has_leaf)
        return;
    if (last_block(r)->type == PEG__MD_PARAGRAPH && !r->status)
        r->status = peg__md_take_definitions(r->md, &is_left, r->reterr);
    r->has_leaf = false;
    r->html = 0;
    stretch_container(r, last_block(r)->end_line);
}

static void close_container(struct reader *r)
{
    struct peg__md_block *block;

    close_leaf(r);
    block = &r->md->blocks[innermost(r)->block];
    block->extent = (uint32_t)(r->md->n_blocks - innermost(r)->block);
    r->n_quotes -= block->type == PEG__MD_QUOTE;
    r->n_open--;
    stretch_container(r, block->end_line);
}

static void close_to(struct reader *r, size_t n)
{
    while (r->n_open > n)
        close_container(r);
}

/* A block that starts in this line, in the innermost container. */
static struct peg__md_block *add_block(struct reader *r, enum peg__md_type type)
{
    const peg_str rest = peg__md_rest(&r->cursor);
    const struct peg__md_block block = {
        .type = (uint8_t)type,
        .first_line = r->line,
        .end_line = r->line + 1,
        .start = (uint32_t)(rest.ptr - r->md->text.ptr),
        .end = (uint32_t)r->cursor.end,
        .extent = 1,
        .n_quotes = (uint8_t)r->n_quotes,
    };

    close_leaf(r);
    if (!r->status)
        r->status = peg__md_add_block(r->md, &block, r->reterr);
    if (r->status)
        return NULL;
    stretch_container(r, r->line + 1);
    return last_block(r);
}

static void stretch_leaf(struct reader *r)
{
    struct peg__md_block *leaf = last_block(r);

    leaf->end_line = r->line + 1;
    leaf->end = (uint32_t)r->cursor.end;
}

/* A block in the innermost container that nothing follows in the line. */
static struct peg__md_block *add_leaf(struct reader *r, enum peg__md_type type)
{
    struct peg__md_block *block = add_block(r, type);

    r->has_leaf = block;
    return block;
}

static void push(struct reader *r, enum peg__md_type type, char marker, unsigned indent)
{
    struct peg__md_block *block = add_block(r, type);

    if (!block)
        return;
    block->marker = marker;
    r->open[r->n_open++] = (struct container){
        .block = (uint32_t)(block - r->md->blocks),
        .type = (uint8_t)type,
        .marker = marker,
        .indent = indent,
    };
    r->n_quotes += type == PEG__MD_QUOTE;
}

/* ---- containers that go on ----------------------------------------------------------------- */

static bool skip_quote_marker(struct peg__md_cursor *cursor)
{
    if (peg__md_indent(cursor) >= CODE_INDENT || peg__md_rest(cursor).len == 0 ||
        *peg__md_rest(cursor).ptr != '>')
        return false;
    peg__md_skip_columns(cursor, CODE_INDENT);
    cursor->at++;
    cursor->column++;
    cursor->spare = 0;
    peg__md_skip_columns(cursor, 1);
    cursor->quote = cursor->column - cursor->spare;
    return true;
}

static bool matches(struct reader *r, const struct container *container)
{
    if (container->type == PEG__MD_LIST)
        return true;
    if (container->type == PEG__MD_QUOTE)
        return skip_quote_marker(&r->cursor);
    if (peg__md_indent(&r->cursor) < container->indent)
        return false;
    peg__md_skip_columns(&r->cursor, container->indent);
    return true;
}

/* A blank line goes on with items, from the n-th container on, but a quote ends there; so does an
 * item that began with a blank line. */
static size_t match_blank(const struct reader *r, size_t n)
{
    const struct container *last = r->n_open ? &r->open[r->n_open - 1] : NULL;

    /* No loop without quotes: blank lines pay for nothing. */
    for (; r->n_quotes && n < r->n_open; n++)
        if (r->open[n].type == PEG__MD_QUOTE)
            return n;
    if (last && last->type == PEG__MD_ITEM && last->block + 1 == r->md->n_blocks)
        return r->n_open - 1;
    return r->n_open;
}

/* How many of the open containers go on. */
static size_t match_containers(struct reader *r)
{
    for (size_t n = 0; n < r->n_open; n++) {
        r->md->n_steps++;
        /* At the start, or behind a marker. */
        if (peg__md_rest(&r->cursor).len == 0)
            return match_blank(r, n);
        if (!matches(r, &r->open[n]))
            return n;
        if (r->open[n].type == PEG__MD_QUOTE)
            r->md->blocks[r->open[n].block].end_line = r->line + 1;
    }
    return r->n_open;
}

/* ---- leaves that take lines as they are ---------------------------------------------------- */

static bool continue_fence(struct reader *r)
{
    struct peg__md_block *leaf = last_block(r);

    if (peg__md_indent(&r->cursor) < CODE_INDENT &&
        peg__md_is_closing_fence(peg__md_rest(&r->cursor), leaf->marker, r->fence)) {
        leaf->end_line = r->line + 1;
        leaf->end = (uint32_t)r->cursor.start;
        close_leaf(r);
        return true;
    }
    stretch_leaf(r);
    return true;
}

static bool continue_html(struct reader *r)
{
    const peg_str rest = peg__md_rest(&r->cursor);

    if (r->html >= 6 && rest.len == 0)
        return false;
    stretch_leaf(r);
    if (peg__md_html_ends(rest, r->html))
        close_leaf(r);
    return true;
}

static bool continue_indented(struct reader *r)
{
    if (peg__md_rest(&r->cursor).len == 0)
        return true; /* its own only if more of it follows */
    if (peg__md_indent(&r->cursor) < CODE_INDENT)
        return false;
    stretch_leaf(r);
    return true;
}

/* All containers go on; does the leaf take the line? */
static bool continue_leaf(struct reader *r)
{
    if (!r->has_leaf)
        return false;
    switch (last_block(r)->type) {
    case PEG__MD_FENCE:
        return continue_fence(r);
    case PEG__MD_HTML:
        return continue_html(r);
    case PEG__MD_INDENTED:
        return continue_indented(r);
    default:
        return false;
    }
}

/* ---- what starts --------------------------------------------------------------------------- */

static enum outcome start_heading(struct reader *r, unsigned depth, peg_str content)
{
    struct peg__md_block *block = add_block(r, PEG__MD_HEADING);

    if (block) {
        block->depth = (uint8_t)depth;
        block->marker = '#';
        block->start = (uint32_t)(content.ptr - r->md->text.ptr);
        block->end = block->start + (uint32_t)content.len;
    }
    return IS_READ;
}

static enum outcome start_fence(struct reader *r, peg_str rest, size_t len)
{
    const unsigned column = r->cursor.column + peg__md_indent(&r->cursor);
    const unsigned indent = column - r->cursor.spare - r->cursor.quote;
    struct peg__md_block *block = add_leaf(r, PEG__MD_FENCE);

    if (!block)
        return IS_READ;
    block->marker = rest.ptr[0];
    block->indent = (uint16_t)(indent < UINT16_MAX ? indent : UINT16_MAX);
    block->info = (uint32_t)(rest.ptr + len - r->md->text.ptr);
    r->fence = len;
    return IS_READ;
}

static enum outcome start_html(struct reader *r, peg_str rest, unsigned kind)
{
    if (add_leaf(r, PEG__MD_HTML)) {
        r->html = kind;
        if (peg__md_html_ends(rest, kind))
            close_leaf(r);
    }
    return IS_READ;
}

/* The paragraph so far is a heading. */
static enum outcome start_underlined(struct reader *r, char marker)
{
    bool is_left = false;

    if (!r->status)
        r->status = peg__md_take_definitions(r->md, &is_left, r->reterr);
    if (r->status || !is_left) {
        r->has_leaf = false;
        return r->status ? IS_READ : IS_TEXT;
    }
    last_block(r)->type = PEG__MD_HEADING;
    last_block(r)->marker = marker;
    last_block(r)->depth = marker == '=' ? 1 : 2;
    last_block(r)->end_line = r->line + 1;
    r->has_leaf = false;
    stretch_container(r, r->line + 1);
    return IS_READ;
}

static enum outcome start_item(struct reader *r, const struct peg__md_marker *marker)
{
    const unsigned before = peg__md_indent(&r->cursor);
    const bool goes_on =
        r->n_open && innermost(r)->type == PEG__MD_LIST && innermost(r)->marker == marker->type;
    unsigned indent;
    unsigned after;

    if (!goes_on) {
        if (r->n_open && innermost(r)->type == PEG__MD_LIST)
            close_to(r, r->n_open - 1);
        push(r, PEG__MD_LIST, marker->type, 0);
        if (r->status)
            return IS_READ;
        last_block(r)->info = marker->number;
    }
    push(r, PEG__MD_ITEM, marker->type, 0);
    if (r->status)
        return IS_READ;
    peg__md_skip_columns(&r->cursor, before);
    r->cursor.at += marker->len;
    r->cursor.column += (unsigned)marker->len;
    after = peg__md_indent(&r->cursor);
    /* Nothing behind it, or code, which is indented by itself. */
    if (peg__md_rest(&r->cursor).len == 0 || after > CODE_INDENT)
        after = 1;
    peg__md_skip_columns(&r->cursor, after);
    indent = before + (unsigned)marker->len + after;
    innermost(r)->indent = indent;
    return GOES_ON;
}

static bool may_start_item(const struct reader *r, size_t n_matched, peg_str rest,
                           struct peg__md_marker *ret_marker)
{
    const size_t len = peg__md_list_marker(rest, ret_marker);

    if (len == 0 || n_matched + 2 > MAX_DEPTH)
        return false;
    /* A number in a paragraph that happens to begin a line starts no list. Bullets have length 1.
     */
    if (n_matched == r->n_open && has_leaf_of(r, PEG__MD_PARAGRAPH))
        return len < rest.len && (ret_marker->number == 1 || ret_marker->len == 1);
    return true;
}

static bool is_table(const struct reader *r, peg_str rest)
{
    const struct peg__md_block *leaf = last_block(r);
    const size_t n = peg__md_delimiter_row(rest);

    return n && leaf->end_line == leaf->first_line + 1 &&
           n == peg__md_cells(peg__strn(r->md->text.ptr + leaf->start, leaf->end - leaf->start));
}

/* What can only follow a paragraph in the same container. */
static enum outcome turn_paragraph(struct reader *r, peg_str rest)
{
    const char marker = peg__md_underline(rest);

    if (marker)
        return start_underlined(r, marker);
    if (is_table(r, rest)) {
        last_block(r)->type = PEG__MD_TABLE;
        stretch_leaf(r);
        return IS_READ;
    }
    return IS_TEXT;
}

/* Leaves a list whose last item does not go on: only items are in a list. */
static void close_unmatched(struct reader *r, size_t n_matched)
{
    if (n_matched && r->open[n_matched - 1].type == PEG__MD_LIST)
        n_matched--;
    close_to(r, n_matched);
}

static enum outcome start_leaf(struct reader *r, size_t n_matched, peg_str rest)
{
    const size_t fence = peg__md_fence(rest);
    const unsigned html = peg__md_html(rest);
    peg_str content;
    const unsigned depth = peg__md_atx(rest, &content);

    if (depth || fence || (html && (html < 7 || !has_leaf_of(r, PEG__MD_PARAGRAPH))))
        close_unmatched(r, n_matched);
    else
        return IS_TEXT;
    if (depth)
        return start_heading(r, depth, content);
    return fence ? start_fence(r, rest, fence) : start_html(r, rest, html);
}

static enum outcome start_indented(struct reader *r, size_t n_matched)
{
    struct peg__md_block *block;
    unsigned indent;

    if (has_leaf_of(r, PEG__MD_PARAGRAPH))
        return IS_TEXT;
    close_unmatched(r, n_matched);
    peg__md_skip_columns(&r->cursor, CODE_INDENT);
    indent = r->cursor.column - r->cursor.spare - r->cursor.quote;
    block = add_leaf(r, PEG__MD_INDENTED);
    if (block) {
        block->start = (uint32_t)r->cursor.at;
        block->indent = (uint16_t)(indent < UINT16_MAX ? indent : UINT16_MAX);
    }
    return IS_READ;
}

/* One block that starts where the line is read; *n_matched containers go on. */
static enum outcome start_block(struct reader *r, size_t *n_matched)
{
    const peg_str rest = peg__md_rest(&r->cursor);
    struct peg__md_marker marker;
    enum outcome outcome = IS_TEXT;

    if (rest.len == 0)
        return IS_TEXT;
    if (peg__md_indent(&r->cursor) >= CODE_INDENT)
        return start_indented(r, *n_matched);
    if (rest.ptr[0] == '>' && *n_matched < MAX_DEPTH) {
        close_unmatched(r, *n_matched);
        push(r, PEG__MD_QUOTE, '>', 0);
        skip_quote_marker(&r->cursor);
        outcome = GOES_ON;
    } else if (*n_matched == r->n_open && has_leaf_of(r, PEG__MD_PARAGRAPH)) {
        outcome = turn_paragraph(r, rest);
    }
    if (outcome == IS_TEXT)
        outcome = start_leaf(r, *n_matched, rest);
    if (outcome == IS_TEXT && peg__md_is_break(rest)) {
        close_unmatched(r, *n_matched);
        add_block(r, PEG__MD_BREAK);
        outcome = IS_READ;
    }
    if (outcome == IS_TEXT && may_start_item(r, *n_matched, rest, &marker)) {
        close_to(r, *n_matched);
        outcome = start_item(r, &marker);
    }
    *n_matched = outcome == IS_TEXT ? *n_matched : r->n_open;
    return outcome;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* What is left of the line. */
static void add_text_line(struct reader *r, size_t n_matched)
{
    if (peg__md_rest(&r->cursor).len == 0) {
        close_to(r, n_matched);
        if (has_leaf_of(r, PEG__MD_PARAGRAPH) || has_leaf_of(r, PEG__MD_TABLE) ||
            has_leaf_of(r, PEG__MD_HTML))
            close_leaf(r);
        return;
    }
    /* A paragraph goes on even where the line does not mark all of its containers. */
    if (has_leaf_of(r, PEG__MD_PARAGRAPH)) {
        stretch_leaf(r);
        return;
    }
    close_unmatched(r, n_matched);
    if (has_leaf_of(r, PEG__MD_TABLE))
        stretch_leaf(r);
    else
        add_leaf(r, PEG__MD_PARAGRAPH);
}

static void read_line(struct reader *r)
{
    const size_t n_steps = r->cursor.end - r->cursor.at + 1;
    size_t n_matched = match_containers(r);
    enum outcome outcome = GOES_ON;

    r->md->n_steps += n_steps;
    if (n_matched == r->n_open && continue_leaf(r))
        return;
    while (outcome == GOES_ON && !r->status) {
        outcome = start_block(r, &n_matched);
        r->md->n_steps += r->n_open;
    }
    if (outcome == IS_TEXT && !r->status)
        add_text_line(r, n_matched);
}

/* The line that starts at `at`; tells where the next one does, SIZE_MAX if there is none. */
static size_t begin_line(struct reader *r, size_t at)
{
    const peg_str text = r->md->text;
    const char *lf = memchr(text.ptr + at, '\n', text.len - at);
    size_t end = lf ? (size_t)(lf - text.ptr) : text.len;
    const size_t next = lf ? end + 1 : SIZE_MAX;

    while (end > at && peg__md_is_space(text.ptr[end - 1]))
        end--;
    r->cursor = (struct peg__md_cursor){.text = text.ptr, .start = at, .at = at, .end = end};
    return next;
}

peg_status peg__md_read_blocks(struct peg__md *md, size_t at, size_t line, peg_error *reterr)
{
    struct reader r = {.md = md, .line = (uint32_t)line, .reterr = reterr};

    while (at < md->text.len && !r.status) {
        const size_t next = begin_line(&r, at);

        read_line(&r);
        /* The code of a fence starts in the line after it. */
        if (has_leaf_of(&r, PEG__MD_FENCE) && last_block(&r)->first_line == r.line) {
            last_block(&r)->start = (uint32_t)(next < md->text.len ? next : md->text.len);
            last_block(&r)->end = last_block(&r)->start;
        }
        at = next;
        r.line++;
    }
    /* What is never closed takes all, the last line included, though it may be empty. */
    if (has_leaf_of(&r, PEG__MD_FENCE) && r.n_open == 0)
        last_block(&r)->end_line = (uint32_t)md->n_lines;
    close_to(&r, 0);
    close_leaf(&r);
    return r.status;
}
