/* SPDX-License-Identifier: Apache-2.0 */

/* The queries of Markdown artifacts. answer.c and content.c make the answers from the index, which
 * is the artifact's parsed form. */

#include "core/artifact/query.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/markdown/markdown.h"
#include "json/json.h"

static const char fewer_lines[] = "ask again with startLine and endLine";
static const char one_depth[] = "ask again for one depth";

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

static unsigned depth_of(const struct peg__query *query)
{
    return (unsigned)peg__query_size(query, "depth", 0);
}

#define SCOPE(asked)                                                                               \
    &(const struct peg__md_scope)                                                                  \
    {                                                                                              \
        .start_line = peg__query_size(asked, "startLine", 0),                                      \
        .end_line = peg__query_size(asked, "endLine", SIZE_MAX), .query = (asked)                  \
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

/* ---- queries ----------------------------------------------------------------------------- */

typedef peg_status (*make_fn)(const struct peg__md *md, const struct peg__query *query,
                              peg_json_doc **ret_doc, peg_error *reterr);

/* An answer that is too long ends with the advice. */
static peg_status answer(const struct peg__query *query, make_fn make_doc, const char *advice,
                         struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md *md;
    peg_json_doc *doc;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = make_doc(md, query, &doc, reterr);
    if (!status)
        render(doc, advice, out);
    return status;
}

/* A query that makes a document of the index, its arguments and where the document goes. */
#define MD_QUERY(name, advice, ...)                                                                \
    static peg_status make_##name(const struct peg__md *md, const struct peg__query *query,        \
                                  peg_json_doc **ret_doc, peg_error *reterr)                       \
    {                                                                                              \
        (void)query;                                                                               \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    static peg_status name(const struct peg__query *query, struct peg__buf *out,                   \
                           peg_error *reterr)                                                      \
    {                                                                                              \
        return answer(query, make_##name, advice, out, reterr);                                    \
    }                                                                                              \
    PEG__DEFINE_QUERY(run_##name, name)

MD_QUERY(frontmatter, "read its lines with artifact_cat", peg__md_frontmatter(md, ret_doc, reterr))
MD_QUERY(headings, one_depth, peg__md_headings(md, depth_of(query), ret_doc, reterr))
MD_QUERY(sections, one_depth, peg__md_sections(md, depth_of(query), ret_doc, reterr))
MD_QUERY(code_blocks, "ask again for one lang",
         peg__md_code_blocks(md, peg__query_string(query, "lang"), ret_doc, reterr))
MD_QUERY(links, fewer_lines, peg__md_links(md, SCOPE(query), false, ret_doc, reterr))
MD_QUERY(images, fewer_lines, peg__md_links(md, SCOPE(query), true, ret_doc, reterr))
MD_QUERY(ast, fewer_lines, peg__md_ast(md, SCOPE(query), ret_doc, reterr))

static peg_status text(const struct peg__query *query, struct peg__buf *out, peg_error *reterr)
{
    const struct peg__md *md;
    peg_status status = index_of(query, &md, reterr);

    if (!status)
        status = peg__md_text(md, SCOPE(query), out, reterr);
    if (!status)
        peg__query_finish(out, fewer_lines);
    return status;
}

PEG__DEFINE_QUERY(run_text, text)

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

static peg_status parse_markdown(peg_artifact *artifact, void **ret_parsed, peg_error *reterr)
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
    .parse = parse_markdown,
    .parsed_free = parsed_free,
};
