/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers from the index of a Markdown document, as JSON that a model can go on with: line numbers
 * are those of artifact_cat, and an endLine is its `end`.
 */

#include "core/markdown/markdown.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "core/markdown/internal.h"
#include "pegboard/cleanup.h"
#include "pegboard/yaml.h"
#include "json/json.h"

/* ---- an answer being written --------------------------------------------------------------- */

/* Strings that are longer than an answer may be are not copied whole. */
void peg__md_begin(struct peg__md_answer *a, const struct peg__md *md,
                   const struct peg__md_scope *scope, peg_error *reterr)
{
    *a = (struct peg__md_answer){
        .md = md,
        .scope = scope,
        .b = peg_json_builder_new(),
        .text = PEG__BUF(PEG_LIMIT_QUERY_BYTES),
        .content = PEG__BUF(PEG_LIMIT_MARKDOWN_INLINE_BYTES + 1),
        .reterr = reterr,
    };
}

peg_status peg__md_finish(struct peg__md_answer *a, peg_json_doc **ret_doc)
{
    peg__buf_free(&a->text);
    peg__buf_free(&a->content);
    if (!a->status)
        return peg_json_builder_finish(a->b, ret_doc, a->reterr);
    peg_json_builder_free(a->b);
    return a->status;
}

/* More would be cut off. */
bool peg__md_is_full(const struct peg__md_answer *a)
{
    return a->status || a->size > PEG_LIMIT_QUERY_BYTES;
}

void peg__md_fail_nomem(struct peg__md_answer *a)
{
    if (!a->status)
        a->status = peg__fail_nomem(a->reterr);
}

static void put_key(struct peg__md_answer *a, const char *name)
{
    peg_json_add_key(a->b, peg__str(name));
    a->size += strlen(name) + 4;
}

void peg__md_put_number(struct peg__md_answer *a, const char *name, size_t number)
{
    put_key(a, name);
    peg_json_add_integer(a->b, (int64_t)number);
}

/* a->text as a string. */
static void put_scratch(struct peg__md_answer *a, const char *name)
{
    if (a->text.status == PEG_ENOMEM) {
        peg__md_fail_nomem(a);
        return;
    }
    put_key(a, name);
    peg_json_add_string(a->b, peg__buf_view(&a->text));
    a->size += a->text.len;
    /* What did not fit would be cut off with what follows. */
    a->size += a->text.status ? PEG_LIMIT_QUERY_BYTES : 0;
}

void peg__md_put_text(struct peg__md_answer *a, const char *name, peg_str bytes)
{
    peg__buf_clear(&a->text);
    peg__query_put(&a->text, bytes);
    put_scratch(a, name);
}

/* The same with escapes and character references as what they stand for. */
void peg__md_put_unescaped(struct peg__md_answer *a, const char *name, const char *prefix,
                           peg_str written)
{
    struct peg__buf plain = PEG__BUF(PEG_LIMIT_QUERY_BYTES);

    peg__buf_puts(&plain, prefix);
    peg__md_unescape(written, &plain);
    if (plain.status == PEG_ENOMEM)
        peg__md_fail_nomem(a);
    else
        peg__md_put_text(a, name, peg__buf_view(&plain));
    peg__buf_free(&plain);
}

static void put_lines(struct peg__md_answer *a, const struct peg__md_block *block)
{
    peg__md_put_number(a, "startLine", block->first_line);
    peg__md_put_number(a, "endLine", block->end_line);
}

/* The content of a block as it is written, without what its containers put before each line. */
static void put_content(struct peg__md_answer *a, const char *name,
                        const struct peg__md_block *block)
{
    struct peg__md_lines lines = peg__md_lines_of(a->md, block);
    bool is_first = true;
    peg_str line;

    peg__buf_clear(&a->text);
    while (!a->text.status && peg__md_next_line(&lines, &line)) {
        if (!is_first)
            peg__buf_putc(&a->text, '\n');
        peg__query_put(&a->text, line);
        is_first = false;
    }
    put_scratch(a, name);
}

/* ---- front matter -------------------------------------------------------------------------- */

/* [{format, startLine, endLine, data}], or text and error where it is no YAML. */
static void put_frontmatter(struct peg__md_answer *a, const struct peg__md_block *block)
{
    static const peg_json_options options = {PEG_JSON_OPTIONS_INIT,
                                             .max_bytes = PEG_LIMIT_FRONTMATTER_BYTES};
    const peg_str text = {a->md->text.ptr + block->start, block->end - block->start};
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    peg_error why;
    peg_status status;

    peg__md_put_text(a, "format", peg__str(block->marker == '-' ? "yaml" : "toml"));
    put_lines(a, block);
    if (block->marker != '-') {
        put_content(a, "text", block);
        return;
    }
    status = peg_yaml_parse(text, &options, &doc, &why);
    if (status == PEG_OK) {
        put_key(a, "data");
        peg_json_add_copy(a->b, peg_json_root(doc));
    } else if (status == PEG_ENOMEM) {
        peg__md_fail_nomem(a);
    } else {
        peg__md_put_text(a, "error", peg__str(why.message));
        put_content(a, "text", block);
    }
}

peg_status peg__md_frontmatter(const struct peg__md *md, peg_json_doc **ret_doc, peg_error *reterr)
{
    struct peg__md_answer a;

    if (md->n_blocks == 0 || md->blocks[0].type != PEG__MD_FRONTMATTER) {
        *ret_doc = NULL;
        return PEG_OK;
    }
    peg__md_begin(&a, md, NULL, reterr);
    peg_json_open_object(a.b);
    put_frontmatter(&a, &md->blocks[0]);
    peg_json_close(a.b);
    return peg__md_finish(&a, ret_doc);
}

/* ---- headings and sections ----------------------------------------------------------------- */

/* Those with # that are in no container. */
static bool is_indexed(const struct peg__md_block *block, unsigned depth)
{
    return block->type == PEG__MD_HEADING && block->marker == '#' &&
           (depth == 0 || block->depth == depth);
}

/* [{line, depth, text}] */
peg_status peg__md_headings(const struct peg__md *md, unsigned depth, peg_json_doc **ret_doc,
                            peg_error *reterr)
{
    struct peg__md_answer a;

    peg__md_begin(&a, md, NULL, reterr);
    peg_json_open_array(a.b);
    for (size_t i = 0; i < md->n_blocks && !peg__md_is_full(&a); i += md->blocks[i].extent) {
        const struct peg__md_block *block = &md->blocks[i];

        if (!is_indexed(block, depth))
            continue;
        peg_json_open_object(a.b);
        peg__md_put_number(&a, "line", block->first_line);
        peg__md_put_number(&a, "depth", block->depth);
        put_content(&a, "text", block);
        peg_json_close(a.b);
    }
    peg_json_close(a.b);
    return peg__md_finish(&a, ret_doc);
}

/* Where the section of each heading ends: before the next heading that is not deeper. One walk from
 * the end; `ends` has an entry for each block. */
static void find_section_ends(const struct peg__md *md, const uint32_t *tops, size_t n_tops,
                              uint32_t *ends)
{
    uint32_t next[7];

    for (size_t depth = 0; depth < 7; depth++)
        next[depth] = (uint32_t)md->n_lines;
    for (size_t i = n_tops; i > 0; i--) {
        const struct peg__md_block *heading = &md->blocks[tops[i - 1]];

        ends[i - 1] = next[heading->depth];
        for (size_t depth = heading->depth; depth < 7; depth++)
            next[depth] = heading->first_line;
    }
}

static void put_section(struct peg__md_answer *a, const struct peg__md_block *heading, uint32_t end)
{
    peg_json_open_object(a->b);
    put_content(a, "heading", heading);
    peg__md_put_number(a, "depth", heading->depth);
    peg__md_put_number(a, "startLine", heading->first_line);
    peg__md_put_number(a, "endLine", end);
    peg_json_close(a->b);
}

/* [{heading, depth, startLine, endLine}] */
peg_status peg__md_sections(const struct peg__md *md, unsigned depth, peg_json_doc **ret_doc,
                            peg_error *reterr)
{
    uint32_t *tops = peg__alloc(2 * (md->n_blocks + 1) * sizeof(*tops));
    uint32_t *ends = tops ? tops + md->n_blocks : NULL;
    size_t n_tops = 0;
    struct peg__md_answer a;

    if (!tops)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < md->n_blocks; i += md->blocks[i].extent)
        if (is_indexed(&md->blocks[i], 0))
            tops[n_tops++] = (uint32_t)i;
    find_section_ends(md, tops, n_tops, ends);
    peg__md_begin(&a, md, NULL, reterr);
    peg_json_open_array(a.b);
    for (size_t i = 0; i < n_tops && !peg__md_is_full(&a); i++)
        if (is_indexed(&md->blocks[tops[i]], depth))
            put_section(&a, &md->blocks[tops[i]], ends[i]);
    peg_json_close(a.b);
    peg__free(tops);
    return peg__md_finish(&a, ret_doc);
}

/* ---- code ---------------------------------------------------------------------------------- */

static bool has_lang(const struct peg__md *md, const struct peg__md_block *fence, peg_str wanted)
{
    const peg_str lang = peg__md_lang(md, fence);

    return !wanted.ptr ||
           (lang.len == wanted.len && strncasecmp(lang.ptr, wanted.ptr, lang.len) == 0);
}

static void put_code_block(struct peg__md_answer *a, const struct peg__md_block *fence,
                           size_t *n_code)
{
    const peg_str lang = peg__md_lang(a->md, fence);
    const peg_str info = peg__md_info(a->md, fence);
    const size_t len = fence->end > fence->start ? fence->end - fence->start : 0;

    peg_json_open_object(a->b);
    peg__md_put_text(a, "lang", lang);
    if (info.len > lang.len)
        peg__md_put_text(a, "info", info);
    put_lines(a, fence);
    if (len <= *n_code) {
        *n_code -= len;
        put_content(a, "code", fence);
    }
    peg_json_close(a->b);
}

/* [{lang, info?, startLine, endLine, code?}] */
peg_status peg__md_code_blocks(const struct peg__md *md, peg_str lang, peg_json_doc **ret_doc,
                               peg_error *reterr)
{
    size_t n_code = PEG_LIMIT_MARKDOWN_CODE_BYTES;
    struct peg__md_answer a;

    peg__md_begin(&a, md, NULL, reterr);
    peg_json_open_array(a.b);
    for (size_t i = 0; i < md->n_blocks && !peg__md_is_full(&a); i++)
        if (md->blocks[i].type == PEG__MD_FENCE && has_lang(md, &md->blocks[i], lang))
            put_code_block(&a, &md->blocks[i], &n_code);
    peg_json_close(a.b);
    return peg__md_finish(&a, ret_doc);
}

/* ---- the tree ------------------------------------------------------------------------------ */

static void put_definition(struct peg__md_answer *a, const struct peg__md_block *block)
{
    struct peg__md_lines lines = peg__md_lines_of(a->md, block);
    struct peg__md_scan scan = {0};
    peg_str label;
    peg_str url;
    peg_str title;
    size_t line;

    peg__buf_clear(&a->content);
    peg__md_gather(&lines, PEG_LIMIT_MARKDOWN_INLINE_BYTES, &a->content, &line);
    if (a->content.status) {
        peg__md_fail_nomem(a);
        return;
    }
    scan.text = peg__buf_view(&a->content);
    if (!peg__md_scan_definition(&scan, &label, &url, &title))
        return;
    peg__md_put_text(a, "label", label);
    peg__md_put_unescaped(a, "url", "", url);
}

static void put_properties(struct peg__md_answer *a, const struct peg__md_block *block)
{
    switch (block->type) {
    case PEG__MD_HEADING:
        peg__md_put_number(a, "depth", block->depth);
        put_content(a, "text", block);
        break;
    case PEG__MD_FENCE:
        peg__md_put_text(a, "lang", peg__md_lang(a->md, block));
        break;
    case PEG__MD_DEFINITION:
        put_definition(a, block);
        break;
    case PEG__MD_LIST:
        put_key(a, "ordered");
        peg_json_add_bool(a->b, block->marker == '.' || block->marker == ')');
        if (block->marker == '.' || block->marker == ')')
            peg__md_put_number(a, "start", block->info);
        break;
    default:
        break;
    }
}

/* Begins a node; the caller ends it, and its children if it is a container. */
static void put_node(struct peg__md_answer *a, const struct peg__md_block *block)
{
    static const char *const names[] = {
        [PEG__MD_FRONTMATTER] = "frontmatter",
        [PEG__MD_HEADING] = "heading",
        [PEG__MD_PARAGRAPH] = "paragraph",
        [PEG__MD_FENCE] = "code",
        [PEG__MD_INDENTED] = "code",
        [PEG__MD_HTML] = "html",
        [PEG__MD_TABLE] = "table",
        [PEG__MD_BREAK] = "thematicBreak",
        [PEG__MD_DEFINITION] = "definition",
        [PEG__MD_QUOTE] = "blockquote",
        [PEG__MD_LIST] = "list",
        [PEG__MD_ITEM] = "listItem",
    };

    peg_json_open_object(a->b);
    peg__md_put_text(a, "type", peg__str(names[block->type]));
    put_lines(a, block);
    put_properties(a, block);
    if (block->type >= PEG__MD_QUOTE) {
        put_key(a, "children");
        peg_json_open_array(a->b);
    } else {
        peg_json_close(a->b);
    }
}

static void end_container(struct peg__md_answer *a)
{
    peg_json_close(a->b);
    peg_json_close(a->b);
}

/* {type, startLine, endLine, depth | lang | ..., children?}, of the blocks within the range. */
peg_status peg__md_ast(const struct peg__md *md, const struct peg__md_scope *scope,
                       peg_json_doc **ret_doc, peg_error *reterr)
{
    const struct peg__md_block *open[PEG_LIMIT_MARKDOWN_DEPTH];
    size_t n_open = 0;
    struct peg__md_answer a;

    peg__md_begin(&a, md, scope, reterr);
    peg_json_open_object(a.b);
    peg__md_put_text(&a, "type", peg__str("root"));
    peg__md_put_number(&a, "startLine",
                       scope->start_line < md->n_lines ? scope->start_line : md->n_lines);
    peg__md_put_number(&a, "endLine",
                       scope->end_line < md->n_lines ? scope->end_line : md->n_lines);
    put_key(&a, "children");
    peg_json_open_array(a.b);
    for (size_t i = 0; i < md->n_blocks && !peg__md_is_full(&a); i = peg__md_next_block(&a, i)) {
        const struct peg__md_block *block = &md->blocks[i];

        for (; n_open && block >= open[n_open - 1] + open[n_open - 1]->extent; n_open--)
            end_container(&a);
        if (!peg__md_is_within(&a, block))
            continue;
        put_node(&a, block);
        if (block->type >= PEG__MD_QUOTE)
            open[n_open++] = block;
    }
    for (; n_open; n_open--)
        end_container(&a);
    end_container(&a);
    return peg__md_finish(&a, ret_doc);
}
