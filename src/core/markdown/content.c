/* SPDX-License-Identifier: Apache-2.0 */

/* Answers from what blocks say: links, images, the text without markup. */

#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "core/markdown/markdown.h"

/* Between two looks at the clock: bytes, and as many for each piece. */
enum { WORK_PER_CHECK = 1 << 20, WORK_PER_PIECE = 64 };

struct content {
    struct peg__md_answer a;
    struct peg__md_inline in;
    size_t work; /* since the last look at the clock */
    bool are_images;
};

static void begin(struct content *c, const struct peg__md *md, const struct peg__md_scope *scope,
                  peg_error *reterr)
{
    *c = (struct content){.in = {.md = md}};
    peg__md_begin(&c->a, md, scope, reterr);
}

/* ---- pieces of blocks ---------------------------------------------------------------------- */

/* The next part of a block that is read for links and emphasis at once: rows of a table one by one,
 * anything else whole unless it is very long. */
static bool next_piece(struct content *c, struct peg__md_lines *lines, size_t *ret_first_line)
{
    const size_t delimiter_row = lines->block->first_line + (size_t)1;
    struct peg__buf *content = &c->a.content;
    peg_str line;

    peg__buf_clear(content);
    if (lines->block->type != PEG__MD_TABLE)
        return peg__md_gather(lines, PEG_LIMIT_MARKDOWN_INLINE_BYTES, content, ret_first_line);
    *ret_first_line = lines->line;
    if (!peg__md_next_line(lines, &line))
        return false;
    if (*ret_first_line != delimiter_row)
        peg__buf_add(content, line.ptr, line.len < content->max ? line.len : content->max);
    return true;
}

static bool read_content_piece(struct content *c)
{
    struct peg__md_answer *a = &c->a;

    c->work += a->content.len + WORK_PER_PIECE;
    if (c->work >= WORK_PER_CHECK && a->scope->query && !a->status)
        a->status = peg__query_check(a->scope->query, a->reterr);
    c->work %= WORK_PER_CHECK;
    if (a->content.status || peg__md_inline_read(&c->in, peg__buf_view(&a->content)) != PEG_OK)
        peg__md_fail_nomem(a);
    return !a->status;
}

/* ---- links and images ---------------------------------------------------------------------- */

static void put_link(struct content *c, const struct peg__md_link *link, size_t line)
{
    static const peg_str www = PEG_LIT("www.");
    static const char *const kinds[] = {"inline", "reference", "autolink"};
    struct peg__md_answer *a = &c->a;
    struct peg__buf plain = PEG__BUF(PEG_LIMIT_MARKDOWN_INLINE_BYTES);
    const bool is_www = link->kind == PEG__MD_AUTOLINK && peg__str_starts(link->url, www);

    peg_json_open_object(a->b);
    peg__md_put_number(a, "line", line);
    peg__md_put_text(a, "kind", peg__str(kinds[link->kind]));
    peg__md_inline_text(&c->in, link->text, link->text_end, &plain);
    if (plain.status == PEG_ENOMEM)
        peg__md_fail_nomem(a);
    else
        peg__md_put_text(a, c->are_images ? "alt" : "text", peg__buf_view(&plain));
    peg__buf_free(&plain);
    peg__md_put_unescaped(a, "url",
                          link->is_email ? "mailto:"
                          : is_www       ? "http://"
                                         : "",
                          link->url);
    if (link->title.ptr)
        peg__md_put_unescaped(a, "title", "", link->title);
    peg_json_close(a->b);
}

/* Those that start in the range, in the order of the text. */
static void put_links(struct content *c, size_t line)
{
    const struct peg__md_scope *scope = c->a.scope;
    size_t at = 0;

    for (size_t i = 0; i < c->in.n_tokens && c->in.n_links && !peg__md_is_full(&c->a); i++) {
        const uint32_t index = c->in.tokens[i].link;
        const struct peg__md_link *link = &c->in.links[index == PEG__MD_NONE ? 0 : index];

        if (index == PEG__MD_NONE || link->is_dropped || link->is_image != c->are_images)
            continue;
        for (; at < link->at; at++)
            line += c->in.text.ptr[at] == '\n';
        if (line >= scope->start_line && line < scope->end_line)
            put_link(c, link, line);
    }
}

static bool has_inline(const struct peg__md_block *block)
{
    return block->type == PEG__MD_HEADING || block->type == PEG__MD_PARAGRAPH ||
           block->type == PEG__MD_TABLE;
}

/* [{line, kind, text | alt, url, title?}] */
peg_status peg__md_links(const struct peg__md *md, const struct peg__md_scope *scope,
                         bool are_images, peg_json_doc **ret_doc, peg_error *reterr)
{
    struct content c;
    size_t line;

    begin(&c, md, scope, reterr);
    c.are_images = are_images;
    peg_json_open_array(c.a.b);
    for (size_t i = 0; i < md->n_blocks && !peg__md_is_full(&c.a);
         i = peg__md_next_block(&c.a, i)) {
        struct peg__md_lines lines = peg__md_lines_of(md, &md->blocks[i]);

        if (!has_inline(&md->blocks[i]) || !peg__md_is_within(&c.a, &md->blocks[i]))
            continue;
        while (!peg__md_is_full(&c.a) && next_piece(&c, &lines, &line))
            if (read_content_piece(&c))
                put_links(&c, line);
    }
    peg_json_close(c.a.b);
    peg__md_inline_free(&c.in);
    return peg__md_finish(&c.a, ret_doc);
}

/* ---- text without markup ------------------------------------------------------------------- */

/* A row without the pipes at its ends. */
static void trim_row(struct peg__buf *content)
{
    size_t start = 0;

    while (content->len && strchr("| \t", content->ptr[content->len - 1]))
        content->len--;
    while (start < content->len && strchr("| \t", content->ptr[start]))
        start++;
    if (start)
        memmove(content->ptr, content->ptr + start, content->len - start);
    content->len -= start;
}

static void put_inline_text(struct content *c, struct peg__md_lines *lines, struct peg__buf *out)
{
    const bool is_table = lines->block->type == PEG__MD_TABLE;
    struct peg__md_answer *a = &c->a;
    bool is_first = true;
    size_t line;

    while (!a->status && !out->status && next_piece(c, lines, &line)) {
        if (is_table)
            trim_row(&a->content);
        if (a->content.len == 0 || !read_content_piece(c))
            continue;
        if (!is_first && is_table)
            peg__buf_putc(out, '\n');
        is_first = false;
        peg__buf_clear(&a->text);
        peg__md_inline_text(&c->in, 0, c->in.text.len, &a->text);
        if (a->text.status)
            peg__md_fail_nomem(a);
        peg__query_put(out, peg__buf_view(&a->text));
    }
}

static void put_code_text(struct peg__md_lines *lines, struct peg__buf *out)
{
    bool is_first = true;
    peg_str line;

    while (!out->status && peg__md_next_line(lines, &line)) {
        if (!is_first)
            peg__buf_putc(out, '\n');
        peg__query_put(out, line);
        is_first = false;
    }
}

static bool starts_nocase(peg_str s, peg_str prefix)
{
    return s.len >= prefix.len && strncasecmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static bool has_text(const struct peg__md *md, const struct peg__md_block *block)
{
    static const peg_str script = PEG_LIT("<script");
    static const peg_str style = PEG_LIT("<style");
    const peg_str start = peg__str_from(md->text, block->start);

    switch (block->type) {
    case PEG__MD_HEADING:
    case PEG__MD_PARAGRAPH:
    case PEG__MD_TABLE:
    case PEG__MD_FENCE:
    case PEG__MD_INDENTED:
        return true;
    case PEG__MD_HTML:
        return !starts_nocase(start, script) && !starts_nocase(start, style);
    default:
        return false;
    }
}

/* The lines of the block that are in the range. */
static struct peg__md_lines clip(const struct peg__md *md, const struct peg__md_block *block,
                                 const struct peg__md_scope *scope)
{
    struct peg__md_lines lines = peg__md_lines_of(md, block);
    peg_str line;

    lines.end_line = scope->end_line;
    while (lines.line < scope->start_line && peg__md_next_line(&lines, &line))
        ;
    return lines;
}

/* A block with what separates it from the one before; neither if it turns out to be empty. */
static void put_block_text(struct content *c, const struct peg__md_block *block,
                           const char *separator, struct peg__buf *out)
{
    struct peg__md_lines lines = clip(c->a.md, block, c->a.scope);
    const size_t before = out->len;
    size_t after;

    if (before)
        peg__buf_puts(out, separator);
    after = out->len;
    if (block->type == PEG__MD_FENCE || block->type == PEG__MD_INDENTED)
        put_code_text(&lines, out);
    else
        put_inline_text(c, &lines, out);
    if (out->len == after && !out->status && before) {
        out->len = before;
        out->ptr[before] = '\0';
    }
}

peg_status peg__md_text(const struct peg__md *md, const struct peg__md_scope *scope,
                        struct peg__buf *out, peg_error *reterr)
{
    const char *separator = "\n\n";
    struct content c;
    peg_json_doc *nothing = NULL;
    peg_status status;

    begin(&c, md, scope, reterr);
    for (size_t i = 0; i < md->n_blocks && !c.a.status && !out->status;
         i = peg__md_next_block(&c.a, i)) {
        const struct peg__md_block *block = &md->blocks[i];

        if (block->type == PEG__MD_ITEM)
            separator = "\n"; /* items stand one below the other */
        if (!has_text(md, block) || !peg__md_is_within(&c.a, block))
            continue;
        put_block_text(&c, block, separator, out);
        separator = "\n\n";
    }
    peg_json_add_null(c.a.b);
    peg__md_inline_free(&c.in);
    status = peg__md_finish(&c.a, &nothing);
    peg_json_doc_free(nothing);
    return status;
}
