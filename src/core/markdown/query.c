/* SPDX-License-Identifier: Apache-2.0 */

/* What a Markdown artifact can be asked. The answers are made in markdown_answer.c and
 * markdown_content.c from the index, which is the artifact's parsed form. */

#include "core/artifact/query.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/markdown/markdown.h"
#include "json/json.h"

static const char fewer_lines[] = "ask again with startLine and endLine";
static const char one_depth[] = "ask again for one depth";
static const char one_lang[] = "ask again for one lang";

/* ---- between the index and the answer ------------------------------------------------------ */

static peg_status index_of(const struct peg__query *query, const struct peg__md **ret_md,
                           peg_error *reterr)
{
    void *parsed;
    const peg_status status = peg_artifact_parsed(query->artifact, &parsed, reterr);

    if (status == PEG_OK)
        *ret_md = parsed;
    return status;
}

static struct peg__md_scope scope_of(const struct peg__query *query)
{
    return (struct peg__md_scope){
        .start_line = peg__query_size(query, "startLine", 0),
        .end_line = peg__query_size(query, "endLine", SIZE_MAX),
        .query = query,
    };
}

/* Renders a document and frees it. An answer that is too long ends with the advice. */
static void render(peg_json_doc *doc, const char *instead, struct peg__buf *out)
{
    const peg_json *root = doc ? peg_json_root(doc) : NULL;

    if (root && peg_json_len(root) > 0) {
        peg__json_write(root, PEG_JSON_PRETTY, out);
        peg__query_finish(out, instead);
    } else {
        peg__query_render(root, out);
    }
    peg_json_doc_free(doc);
}

/* ---- queries ----------------------------------------------------------------------------------
 */

static peg_status frontmatter(const struct peg__query *query, struct peg__buf *out,
                              peg_error *reterr)
{
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_frontmatter(md, &doc, reterr);
    if (!status)
        render(doc, "read its lines with artifact_cat", out);
    return status;
}

static peg_status headings(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_headings(md, (unsigned)peg__query_size(query, "depth", 0), &doc, reterr);
    if (!status)
        render(doc, one_depth, out);
    return status;
}

static peg_status sections(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_sections(md, (unsigned)peg__query_size(query, "depth", 0), &doc, reterr);
    if (!status)
        render(doc, one_depth, out);
    return status;
}

static peg_status code_blocks(const struct peg__query *query, struct peg__buf *out,
                              peg_error *reterr)
{
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_code_blocks(md, peg__query_string(query, "lang"), &doc, reterr);
    if (!status)
        render(doc, one_lang, out);
    return status;
}

static peg_status links_or_images(const struct peg__query *query, bool are_images,
                                  struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md_scope scope = scope_of(query);
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_links(md, &scope, are_images, &doc, reterr);
    if (!status)
        render(doc, fewer_lines, out);
    return status;
}

static peg_status links(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    return links_or_images(query, false, out, reterr);
}

static peg_status images(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    return links_or_images(query, true, out, reterr);
}

static peg_status text(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md_scope scope = scope_of(query);
    const struct peg__md *md;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_text(md, &scope, out, reterr);
    if (!status)
        peg__query_finish(out, fewer_lines);
    return status;
}

static peg_status ast(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md_scope scope = scope_of(query);
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_ast(md, &scope, &doc, reterr);
    if (!status)
        render(doc, fewer_lines, out);
    return status;
}

/* ---- the kind
 * ------------------------------------------------------------------------------------ */

static void run_frontmatter(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, frontmatter);
}

static void run_headings(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, headings);
}

static void run_sections(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, sections);
}

static void run_code_blocks(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, code_blocks);
}

static void run_links(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, links);
}

static void run_images(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, images);
}

static void run_text(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, text);
}

static void run_ast(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    peg__query_answer(call, artifact, args, ast);
}

#define LINES                                                                                      \
    "{\"startLine\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"First line, counted "    \
    "from 0. Left out: from the first line.\"},"                                                   \
    "\"endLine\":{\"type\":\"integer\",\"minimum\":0,\"description\":\"Line to stop before. Left " \
    "out, or beyond the last line: to the end.\"}}"

#define DEPTH(of_what)                                                                             \
    "{\"depth\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":6,\"description\":\"Only " of_what \
    " of this depth, such as 2 for ##. Left out: all of them.\"}}"

static const peg_artifact_query queries[] = {
    {
        .name = "artifact_md_frontmatter",
        .description =
            "Return the front matter of a Markdown artifact as {format, startLine, endLine, data}: "
            "data is what its YAML says. Where it is no valid YAML, or TOML between +++, there is "
            "text instead of data. \"(undefined)\" means that the artifact has none.",
        .run = run_frontmatter,
    },
    {
        .name = "artifact_md_headings",
        .description =
            "Return the headings of a Markdown artifact, in order, as a list of {line, depth, "
            "text}. Start here to see what a long document has. Lines are counted from 0. Only "
            "headings written with # count.",
        .properties = DEPTH("headings"),
        .run = run_headings,
    },
    {
        .name = "artifact_md_code_blocks",
        .description =
            "Return the fenced code blocks of a Markdown artifact as a list of {lang, startLine, "
            "endLine, code}, with info where more than the language stands behind the fence. "
            "The lines include the fences. In a long list the last blocks come without code: read "
            "them with artifact_cat, start startLine and end endLine.",
        .properties = "{\"lang\":{\"type\":\"string\",\"description\":\"Only blocks of this "
                      "language, such as python; \\\"\\\" means those without one. Left out: all "
                      "of them.\"}}",
        .run = run_code_blocks,
    },
    {
        .name = "artifact_md_sections",
        .description =
            "Return the sections of a Markdown artifact as a list of {heading, depth, startLine, "
            "endLine}. A section reaches from its heading to before the next one of the same or a "
            "smaller depth. Read it with artifact_cat, start startLine and end endLine.",
        .properties = DEPTH("sections"),
        .run = run_sections,
    },
    {
        .name = "artifact_md_links",
        .description =
            "Return the links of a Markdown artifact, or of a range of its lines, as a list of "
            "{line, kind, text, url} and title where there is one. The kind is inline, reference "
            "(its url stands elsewhere in the document) or autolink (a bare url).",
        .properties = LINES,
        .run = run_links,
    },
    {
        .name = "artifact_md_images",
        .description =
            "Return the images of a Markdown artifact, or of a range of its lines, as a list of "
            "{line, kind, alt, url} and title where there is one. The kind is inline or "
            "reference.",
        .properties = LINES,
        .run = run_images,
    },
    {
        .name = "artifact_md_text",
        .description =
            "Return the text of a Markdown artifact, or of a range of its lines, without markup: "
            "links as their text, images as their description, code as it is, front matter and "
            "comments left out.",
        .properties = LINES,
        .run = run_text,
    },
    {
        .name = "artifact_md_ast",
        .description =
            "Return the blocks of a Markdown artifact, or those that touch a range of its lines, "
            "as a tree of {type, startLine, endLine, children}: heading (with depth and text), "
            "paragraph, code (with lang), list (with ordered), listItem, blockquote, table, html, "
            "thematicBreak, definition (with label and url), frontmatter.",
        .properties = LINES,
        .run = run_ast,
    },
};

static peg_status parse(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
{
    struct peg__md *md;
    peg_str bytes;
    peg_status status = peg_artifact_bytes(artifact, &bytes, reterr);

    if (!status)
        status = peg__md_new(bytes, &md, reterr);
    if (!status)
        *ret_parsed = md;
    return status;
}

static void parsed_free(void *parsed)
{
    peg__md_free(parsed);
}

const peg_artifact_kind peg_artifact_markdown = {
    .name = "markdown",
    .queries = queries,
    .n_queries = sizeof(queries) / sizeof(*queries),
    .parse = parse,
    .parsed_free = parsed_free,
};
