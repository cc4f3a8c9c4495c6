/* SPDX-License-Identifier: Apache-2.0 */

/* The index of a Markdown document: front matter, then blocks; definitions of links by label. */

#include "core/markdown/markdown.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/markdown/internal.h"

/* ---- blocks -------------------------------------------------------------------------------- */

peg_status peg__md_add_block(struct peg__md *md, const struct peg__md_block *block,
                             peg_error *reterr)
{
    if (md->n_blocks == PEG_LIMIT_MARKDOWN_BLOCKS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "the document has more than %d blocks; read "
                         "it with artifact_grep and artifact_cat",
                         PEG_LIMIT_MARKDOWN_BLOCKS);
    if (!PEG__RESERVE(md->blocks, md->n_blocks + 1, md->capacity))
        return peg__fail_nomem(reterr);
    md->blocks[md->n_blocks++] = *block;
    return PEG_OK;
}

peg_str peg__md_info(const struct peg__md *md, const struct peg__md_block *fence)
{
    const peg_str rest = peg__str_from(md->text, fence->info);
    const char *lf = memchr(rest.ptr, '\n', rest.len);
    peg_str info = {rest.ptr, lf ? (size_t)(lf - rest.ptr) : rest.len};

    while (info.len && peg__md_is_space(info.ptr[0]))
        info = peg__str_from(info, 1);
    while (info.len && peg__md_is_space(info.ptr[info.len - 1]))
        info.len--;
    return info;
}

peg_str peg__md_lang(const struct peg__md *md, const struct peg__md_block *fence)
{
    peg_str info = peg__md_info(md, fence);
    size_t len = 0;

    while (len < info.len && !peg__md_is_space(info.ptr[len]))
        len++;
    info.len = len;
    return info;
}

/* ---- the lines of a block ------------------------------------------------------------------ */

struct peg__md_lines peg__md_lines_of(const struct peg__md *md, const struct peg__md_block *block)
{
    const bool is_fenced = block->type == PEG__MD_FENCE || block->type == PEG__MD_FRONTMATTER;

    return (struct peg__md_lines){
        .md = md,
        .block = block,
        .at = block->start,
        .line = block->first_line + (size_t)is_fenced,
        .end_line = SIZE_MAX,
        .is_first = !is_fenced,
    };
}

/* Goes behind what the containers put before a line, and what is no part of the block itself. */
static void skip_prefix(const struct peg__md_block *block, struct peg__md_cursor *cursor)
{
    for (unsigned i = 0; i < block->n_quotes; i++) {
        const peg_str rest = peg__md_rest(cursor);

        if (rest.len == 0 || rest.ptr[0] != '>')
            break;
        peg__md_skip_columns(cursor, UINT16_MAX);
        cursor->at++;
        cursor->column++;
        peg__md_skip_columns(cursor, 1);
    }
    if (block->type == PEG__MD_FENCE || block->type == PEG__MD_INDENTED)
        peg__md_skip_columns(cursor, block->indent);
    else if (block->type != PEG__MD_FRONTMATTER)
        cursor->at = (size_t)(peg__md_rest(cursor).ptr - cursor->text);
}

bool peg__md_next_line(struct peg__md_lines *lines, peg_str *ret_line)
{
    const struct peg__md_block *block = lines->block;
    const char *text = lines->md->text.ptr;
    const char *lf;
    struct peg__md_cursor cursor;

    if (lines->at >= block->end || lines->line >= lines->end_line)
        return false;
    lf = memchr(text + lines->at, '\n', block->end - lines->at);
    cursor = (struct peg__md_cursor){
        .text = text,
        .at = lines->at,
        .end = lf ? (size_t)(lf - text) : block->end,
    };
    lines->at = cursor.end + 1;
    lines->line++;
    if (!lines->is_first)
        skip_prefix(block, &cursor);
    lines->is_first = false;
    if (cursor.end > cursor.at && text[cursor.end - 1] == '\r')
        cursor.end--;
    *ret_line = peg__strn(text + cursor.at, cursor.end - cursor.at);
    return true;
}

/* Puts back what did not fit: the line goes on there. */
static void put_back(struct peg__md_lines *lines, peg_str line, size_t used)
{
    lines->at = (size_t)(line.ptr - lines->md->text.ptr) + used;
    lines->line--;
    lines->is_first = true;
}

bool peg__md_gather(struct peg__md_lines *lines, size_t max, struct peg__buf *out,
                    size_t *ret_first_line)
{
    const size_t first = lines->line;
    bool has_any = false;
    peg_str line;

    while (peg__md_next_line(lines, &line)) {
        const size_t room = max > out->len ? max - out->len : 0;

        if (line.len > room && has_any) {
            put_back(lines, line, 0);
            break;
        }
        if (has_any)
            peg__buf_putc(out, '\n');
        has_any = true;
        if (line.len > room) {
            const size_t cut = peg__utf8_cut(line.ptr, room);

            /* Bytes that are no UTF-8 are cut anywhere. */
            line.len = cut ? cut : room;
            put_back(lines, line, line.len);
            peg__buf_str(out, line);
            break;
        }
        peg__buf_str(out, line);
    }
    if (has_any)
        *ret_first_line = first;
    return has_any;
}

/* ---- definitions of links ------------------------------------------------------------------ */

void peg__md_normalize(peg_str label, struct peg__buf *out)
{
    bool is_gap = false;

    peg__buf_clear(out);
    for (size_t i = 0; i < label.len; i++) {
        const char c = label.ptr[i];

        if (peg__md_is_space(c) || c == '\n') {
            is_gap = true;
            continue;
        }
        if (is_gap && out->len)
            peg__buf_putc(out, ' ');
        is_gap = false;
        peg__buf_putc(out, peg__to_lower(c));
    }
}

static peg_status keep_definition(struct peg__md *md, peg_str label, peg_str url, peg_str title)
{
    struct peg__buf name = PEG__BUF(PEG_LIMIT_MARKDOWN_INLINE_BYTES);
    struct peg__md_definition *definition;
    char *copy;
    peg_status status;

    peg__md_normalize(label, &name);
    if (name.status || peg__map_find(&md->definitions, peg__buf_view(&name))) {
        status = name.status; /* the first one counts */
        peg__buf_free(&name);
        return status;
    }
    definition = peg__arena_alloc(&md->strings, sizeof(*definition));
    copy = peg__arena_copy(&md->strings, url);
    if (definition && copy) {
        *definition = (struct peg__md_definition){.url = {copy, url.len}};
        if (title.ptr) {
            copy = peg__arena_copy(&md->strings, title);
            definition->title = peg__strn(copy, title.len);
        }
    }
    status = definition && copy ? peg__map_add(&md->definitions, peg__buf_view(&name), definition)
                                : PEG_ENOMEM;
    peg__buf_free(&name);
    return status;
}

static size_t count_lines(peg_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n';
    return n;
}

/* The first n_lines of the paragraph that is the last block are a definition. What follows, if
 * anything, becomes a paragraph of its own. */
static peg_status split_paragraph(struct peg__md *md, size_t n_lines, bool *ret_is_left,
                                  peg_error *reterr)
{
    struct peg__md_block *block = &md->blocks[md->n_blocks - 1];
    struct peg__md_block rest = *block;
    struct peg__md_lines lines = peg__md_lines_of(md, &rest);
    peg_str line = {md->text.ptr + block->start, 0};

    block->type = PEG__MD_DEFINITION;
    *ret_is_left = false;
    for (size_t i = 0; i < n_lines; i++)
        if (!peg__md_next_line(&lines, &line))
            return PEG_OK;
    block->end = (uint32_t)(line.ptr + line.len - md->text.ptr);
    block->end_line = (uint32_t)lines.line;
    rest.first_line = block->end_line;
    if (!peg__md_next_line(&lines, &line))
        return PEG_OK;
    rest.start = (uint32_t)(line.ptr - md->text.ptr);
    *ret_is_left = true;
    return peg__md_add_block(md, &rest, reterr);
}

/* Takes what definitions there are in a piece of the paragraph. *ret_n: how many. */
static peg_status take_from(struct peg__md *md, peg_str piece, size_t *ret_n, bool *ret_is_left,
                            peg_error *reterr)
{
    struct peg__md_scan scan = {.text = piece};
    peg_str label;
    peg_str url;
    peg_str title;
    size_t n = 0;
    peg_status status = PEG_OK;

    *ret_is_left = true;
    while (!status && *ret_is_left) {
        const size_t start = scan.at;
        size_t n_lines;

        if (!peg__md_scan_definition(&scan, &label, &url, &title))
            break;
        n++;
        if (keep_definition(md, label, url, title))
            return peg__fail_nomem(reterr);
        n_lines = count_lines(peg__strn(piece.ptr + start, scan.at - start));
        /* At the end of the piece there is no LF. */
        n_lines += piece.ptr[scan.at - 1] != '\n';
        status = split_paragraph(md, n_lines, ret_is_left, reterr);
    }
    md->n_steps += scan.n_steps;
    *ret_n = n;
    return status;
}

peg_status peg__md_take_definitions(struct peg__md *md, bool *ret_is_left, peg_error *reterr)
{
    struct peg__buf piece = PEG__BUF(PEG_LIMIT_MARKDOWN_INLINE_BYTES + 1);
    bool is_left = true;
    peg_status status = PEG_OK;
    size_t n = 1;

    while (n && is_left && !status && md->text.ptr[md->blocks[md->n_blocks - 1].start] == '[') {
        const struct peg__md_block block = md->blocks[md->n_blocks - 1];
        struct peg__md_lines lines = peg__md_lines_of(md, &block);
        size_t first_line;

        peg__buf_clear(&piece);
        peg__md_gather(&lines, PEG_LIMIT_MARKDOWN_INLINE_BYTES, &piece, &first_line);
        status = piece.status ? peg__fail_nomem(reterr)
                              : take_from(md, peg__buf_view(&piece), &n, &is_left, reterr);
    }
    peg__buf_free(&piece);
    if (!status)
        *ret_is_left = is_left;
    return status;
}

/* ---- front matter -------------------------------------------------------------------------- */

/* The line at `at` without spaces at its end; *ret_next is where the next one starts. */
static peg_str line_at(peg_str text, size_t at, size_t *ret_next)
{
    const char *lf = memchr(text.ptr + at, '\n', text.len - at);
    peg_str line = {text.ptr + at, lf ? (size_t)(lf - text.ptr) - at : text.len - at};

    *ret_next = lf ? at + line.len + 1 : text.len;
    while (line.len && peg__md_is_space(line.ptr[line.len - 1]))
        line.len--;
    return line;
}

/* A first line of --- or +++ and, not too far down, the same again. YAML may end with ... too. */
static bool find_frontmatter(peg_str text, struct peg__md_block *ret_block, size_t *ret_end)
{
    static const peg_str bom = PEG_LIT("\uFEFF");
    const size_t start = peg__str_starts(text, bom) ? bom.len : 0;
    size_t next;
    const peg_str first = line_at(text, start, &next);
    struct peg__md_block block = {.type = PEG__MD_FRONTMATTER, .extent = 1};

    if (!peg__str_is(first, "---") && !peg__str_is(first, "+++"))
        return false;
    block.marker = first.ptr[0];
    block.start = (uint32_t)next;
    for (size_t i = 1; i < PEG_LIMIT_FRONTMATTER_LINES && next < text.len; i++) {
        const size_t at = next;
        const peg_str line = line_at(text, at, &next);

        if (!peg__str_eq(line, first) && (block.marker != '-' || !peg__str_is(line, "...")))
            continue;
        block.end = (uint32_t)at;
        block.end_line = (uint32_t)(i + 1);
        *ret_block = block;
        *ret_end = next;
        return true;
    }
    return false;
}

/* ---- the index ----------------------------------------------------------------------------- */

static peg_status read_document(struct peg__md *md, peg_error *reterr)
{
    struct peg__md_block frontmatter;
    size_t at = 0;
    size_t line = 0;

    if (md->text.len && find_frontmatter(md->text, &frontmatter, &at)) {
        const peg_status status = peg__md_add_block(md, &frontmatter, reterr);

        if (status)
            return status;
        line = frontmatter.end_line;
    }
    return peg__md_read_blocks(md, at, line, reterr);
}

peg_status peg__md_new(peg_str text, struct peg__md **ret_md, peg_error *reterr)
{
    struct peg__md *md;
    peg_status status;

    if (text.len > PEG_LIMIT_ARTIFACT_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "the document has %zu bytes, more than %d; "
                         "store it in parts",
                         text.len, PEG_LIMIT_ARTIFACT_BYTES);
    md = peg__alloc_zero(1, sizeof(*md));
    if (!md)
        return peg__fail_nomem(reterr);
    md->text = peg__strn(text.len ? text.ptr : "", text.len);
    md->n_lines = text.len ? count_lines(text) + 1 : 0;
    md->definitions = (struct peg__map)PEG__MAP(PEG_LIMIT_MARKDOWN_BLOCKS);
    status = read_document(md, reterr);
    if (status)
        peg__md_free(md);
    else
        *ret_md = md;
    return status;
}

struct peg__md *peg__md_free(struct peg__md *md)
{
    if (!md)
        return NULL;
    peg__map_free(&md->definitions);
    peg__arena_free(&md->strings);
    peg__free(md->blocks);
    peg__free(md);
    return NULL;
}
