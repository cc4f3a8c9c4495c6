/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: any bytes as Markdown. Blocks stand in order and inside each other, every answer is JSON
 * that holds together with lines of the document, and the work is linear in the bytes.
 */

#include "core/markdown/markdown.h"

#include "base/text/str.h"
#include "fuzz.h"

enum { STEPS_PER_BYTE = 64 };

static const struct peg__md_scope everything = {.end_line = SIZE_MAX};

/* ---- the index ------------------------------------------------------------------------------ */

static void check_block(const struct peg__md *md, const struct peg__md_block *block)
{
    const size_t i = (size_t)(block - md->blocks);

    REQUIRE(block->first_line < block->end_line, "block %zu has lines", i);
    REQUIRE(block->end_line <= md->n_lines, "block %zu ends in the document", i);
    REQUIRE(block->start <= md->text.len && block->end <= md->text.len, "block %zu", i);
    REQUIRE(block->extent >= 1 && i + block->extent <= md->n_blocks, "block %zu nests", i);
    REQUIRE(block->extent == 1 || block->type >= PEG__MD_QUOTE, "block %zu contains", i);
}

/* What a container contains lies within its lines, one behind the other. */
static void check_children(const struct peg__md *md, const struct peg__md_block *container)
{
    const struct peg__md_block *end = container + container->extent;
    size_t line = container->first_line;

    for (const struct peg__md_block *child = container + 1; child < end; child += child->extent) {
        REQUIRE(child->first_line >= line, "block %td begins at line %u", child - md->blocks,
                child->first_line);
        REQUIRE(child->end_line <= container->end_line, "block %td ends", child - md->blocks);
        line = child->end_line;
    }
}

static void check_index(const struct peg__md *md)
{
    size_t line = 0;

    for (size_t i = 0; i < md->n_blocks; i++) {
        check_block(md, &md->blocks[i]);
        check_children(md, &md->blocks[i]);
    }
    for (size_t i = 0; i < md->n_blocks; i += md->blocks[i].extent) {
        REQUIRE(md->blocks[i].first_line >= line, "block %zu comes too early", i);
        line = md->blocks[i].end_line;
    }
    REQUIRE(md->n_steps <= STEPS_PER_BYTE * (md->text.len + 1), "%zu steps for %zu bytes",
            md->n_steps, md->text.len);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static void check_line(const struct peg__md *md, const peg_json *item, const char *name)
{
    const peg_json *line = peg_json_get(item, name);

    REQUIRE(!line || (line->u.number >= 0 && (size_t)line->u.number <= md->n_lines), "%s %lld",
            name, (long long)line->u.number);
}

static void check_answer(const struct peg__md *md, peg_status status, peg_json_doc *doc)
{
    const peg_json *root;

    REQUIRE(status == PEG_OK, "status %d", status);
    if (!doc)
        return;
    root = peg_json_root(doc);
    fuzz_check_form(root);
    for (const peg_json *value = root; value < peg_json_next(root); value++) {
        check_line(md, value, "line");
        check_line(md, value, "startLine");
        check_line(md, value, "endLine");
    }
    peg_json_doc_free(doc);
}

static void check_text(const struct peg__md *md)
{
    struct peg__buf out = PEG__BUF(64 << 20);

    REQUIRE(peg__md_text(md, &everything, &out, NULL) == PEG_OK && !out.status, "text");
    REQUIRE(peg__utf8_is_valid(peg__buf_view(&out)), "text is UTF-8");
    peg__buf_free(&out);
}

static void check_answers(const struct peg__md *md)
{
    peg_json_doc *doc = NULL;
    peg_status status = peg__md_headings(md, 0, &doc, NULL);

    check_answer(md, status, doc);
    status = peg__md_sections(md, 0, &doc, NULL);
    check_answer(md, status, doc);
    status = peg__md_code_blocks(md, (peg_str){NULL, 0}, &doc, NULL);
    check_answer(md, status, doc);
    status = peg__md_links(md, &everything, false, &doc, NULL);
    check_answer(md, status, doc);
    status = peg__md_links(md, &everything, true, &doc, NULL);
    check_answer(md, status, doc);
    status = peg__md_ast(md, &everything, &doc, NULL);
    check_answer(md, status, doc);
    check_text(md);
}

/* The author's own names may be called like ours, so there is nothing to check about lines. */
static void check_frontmatter(const struct peg__md *md)
{
    peg_json_doc *doc = NULL;

    REQUIRE(peg__md_frontmatter(md, &doc, NULL) == PEG_OK, "front matter");
    if (doc)
        fuzz_check_form(peg_json_root(doc));
    peg_json_doc_free(doc);
}

static void check_inline(const struct peg__md *md)
{
    struct peg__md_inline in = {.md = md};
    size_t at = 0;

    REQUIRE(peg__md_inline_read(&in, md->text) == PEG_OK, "inline");
    REQUIRE(in.n_steps <= STEPS_PER_BYTE * (md->text.len + 1), "%zu steps for %zu bytes",
            in.n_steps, md->text.len);
    for (size_t i = 0; i < in.n_tokens; i++) {
        REQUIRE(in.tokens[i].at >= at, "token %zu overlaps", i);
        REQUIRE(in.tokens[i].n_markup <= in.tokens[i].len, "token %zu", i);
        at = in.tokens[i].at + in.tokens[i].len;
        REQUIRE(at <= md->text.len, "token %zu ends in the text", i);
    }
    peg__md_inline_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of its own, so that reading beyond it is noticed. */
    char *copy = malloc(size ? size : 1);
    struct peg__md *md = NULL;

    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    REQUIRE(peg__md_new(peg__strn(copy, size), &md, NULL) == PEG_OK, "any bytes are Markdown");
    check_index(md);
    check_answers(md);
    check_frontmatter(md);
    check_inline(md);
    peg__md_free(md);
    free(copy);
    return 0;
}
