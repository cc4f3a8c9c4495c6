/* SPDX-License-Identifier: Apache-2.0 */

#include "ask.h"
#include "core/artifact/artifact.h"
#include "core/artifact/query.h"
#include "pegboard/schema.h"
#include "json/json.h"

/* ---- fixture -------------------------------------------------------------------------------- */

#define CHECK_MD(text, query, args, expected)                                                      \
    CHECK_ASK(&peg_artifact_markdown, text, query, args, expected)

static const char guide[] = "---\n"
                            "title: Guide\n"
                            "---\n"
                            "# Guide\n"
                            "\n"
                            "See [docs][d] and ![logo](logo.png).\n"
                            "\n"
                            "## Install\n"
                            "\n"
                            "```sh\n"
                            "make\n"
                            "```\n"
                            "\n"
                            "## Use\n"
                            "\n"
                            "[d]: https://docs.example \"Docs\"\n";

/* ---- the kind ---------------------------------------------------------------------------------
 */

/* T124 */
TEST(markdown_kind_adds_exactly_eight_queries_to_those_of_text)
{
    static const char *const names[] = {
        "artifact_md_frontmatter", "artifact_md_headings", "artifact_md_code_blocks",
        "artifact_md_sections",    "artifact_md_links",    "artifact_md_images",
        "artifact_md_text",        "artifact_md_ast",
    };
    peg_error error;

    CHECK_STATUS(peg_artifact_kind_check(&peg_artifact_markdown, &error), PEG_OK, error);
    CHECK_INT(peg_artifact_markdown.n_queries, 8);
    CHECK(peg__kind_base(&peg_artifact_markdown) == &peg_artifact_text);
    for (size_t i = 0; i < 8; i++)
        CHECK(ask_query(&peg_artifact_markdown, names[i]));
}

static peg_verdict check_args(const char *query, const char *args)
{
    struct peg__buf text = PEG__BUF(1 << 16);
    peg_schema *schema = NULL;
    peg_json_doc *doc = NULL;
    peg_checker *checker = NULL;
    peg_verdict verdict;

    for (size_t i = 0; i < peg_artifact_markdown.n_queries; i++) {
        const peg_artifact_query *q = &peg_artifact_markdown.queries[i];

        if (strcmp(q->name, query) == 0)
            peg__buf_printf(&text, "{\"properties\":%s,\"additionalProperties\":false}",
                            q->properties ? q->properties : "{}");
    }
    CHECK_INT(peg_checker_new(NULL, &checker, NULL), PEG_OK);
    CHECK_INT(peg_schema_compile(peg__buf_view(&text), NULL, &schema, NULL), PEG_OK);
    CHECK_INT(peg_json_parse(peg__str(args), NULL, &doc, NULL), PEG_OK);
    verdict = peg_schema_check(schema, checker, peg_json_root(doc));
    peg_json_doc_free(doc);
    peg_checker_free(checker);
    peg_schema_unref(schema);
    peg__buf_free(&text);
    return verdict;
}

TEST(markdown_arguments_are_what_the_queries_say)
{
    static const struct {
        const char *query;
        const char *args;
        peg_verdict verdict;
    } cases[] = {
        {"artifact_md_headings", "{}", PEG_VALID},
        {"artifact_md_headings", "{\"depth\":1}", PEG_VALID},
        {"artifact_md_headings", "{\"depth\":6}", PEG_VALID},
        {"artifact_md_headings", "{\"depth\":0}", PEG_INVALID},
        {"artifact_md_headings", "{\"depth\":7}", PEG_INVALID},
        {"artifact_md_sections", "{\"depth\":7}", PEG_INVALID},
        {"artifact_md_sections", "{\"depth\":\"2\"}", PEG_INVALID},
        {"artifact_md_code_blocks", "{\"lang\":\"\"}", PEG_VALID},
        {"artifact_md_code_blocks", "{\"lang\":null}", PEG_INVALID},
        {"artifact_md_links", "{\"startLine\":0,\"endLine\":0}", PEG_VALID},
        {"artifact_md_links", "{\"startLine\":-1}", PEG_INVALID},
        {"artifact_md_images", "{\"endLine\":1.5}", PEG_INVALID},
        {"artifact_md_text", "{\"start\":1}", PEG_INVALID},
        {"artifact_md_ast", "{\"startLine\":3}", PEG_VALID},
        {"artifact_md_frontmatter", "{}", PEG_VALID},
        {"artifact_md_frontmatter", "{\"depth\":1}", PEG_INVALID},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (check_args(cases[i].query, cases[i].args) != cases[i].verdict)
            T_FAIL("%s %s is not what it should be", cases[i].query, cases[i].args);
}

TEST(markdown_is_parsed_once)
{
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;
    void *first = NULL;
    void *second = NULL;

    CHECK_INT(peg_reader_from_bytes(peg__str(guide), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(&peg_artifact_markdown, reader, &artifact, NULL), PEG_OK);
    CHECK_INT(peg_artifact_parsed(artifact, &first, NULL), PEG_OK);
    CHECK_INT(peg_artifact_parsed(artifact, &second, NULL), PEG_OK);

    CHECK(first && first == second);
    peg_artifact_unref(artifact);
    peg_reader_unref(reader);
}

/* ---- answers ------------------------------------------------------------------------------------
 */

/* T131 */
TEST(markdown_frontmatter_is_an_object_or_undefined)
{
    CHECK_MD(guide, "artifact_md_frontmatter", "{}",
             "{\n  \"format\": \"yaml\",\n  \"startLine\": 0,\n  \"endLine\": 3,\n"
             "  \"data\": {\n    \"title\": \"Guide\"\n  }\n}");
    CHECK_MD("# A\n", "artifact_md_frontmatter", "{}", "(undefined)");
    CHECK_MD("", "artifact_md_frontmatter", "{}", "(undefined)");
}

/* T131 */
TEST(markdown_headings_are_a_list_of_line_depth_and_text)
{
    CHECK_MD(guide, "artifact_md_headings", "{\"depth\":2}",
             "[\n  {\n    \"line\": 7,\n    \"depth\": 2,\n    \"text\": \"Install\"\n  },\n"
             "  {\n    \"line\": 13,\n    \"depth\": 2,\n    \"text\": \"Use\"\n  }\n]");
    CHECK_MD(guide, "artifact_md_headings", "{\"depth\":3}", "(empty list)");
    CHECK_MD("", "artifact_md_headings", "{}", "(empty list)");
}

/* T131 */
TEST(markdown_sections_tell_what_artifact_cat_needs)
{
    CHECK_MD(guide, "artifact_md_sections", "{\"depth\":1}",
             "[\n  {\n    \"heading\": \"Guide\",\n    \"depth\": 1,\n    \"startLine\": 3,\n"
             "    \"endLine\": 17\n  }\n]");
    CHECK_MD("# A\na\n## B\nb\n# C\n", "artifact_md_sections", "{\"depth\":2}",
             "[\n  {\n    \"heading\": \"B\",\n    \"depth\": 2,\n    \"startLine\": 2,\n"
             "    \"endLine\": 4\n  }\n]");
    CHECK_ASK(&peg_artifact_text, "# A\na\n## B\nb\n# C\n", "artifact_cat",
              "{\"start\":2,\"end\":4}", "## B\nb");
}

/* T131 */
TEST(markdown_code_blocks_are_a_list_with_their_code)
{
    CHECK_MD(guide, "artifact_md_code_blocks", "{}",
             "[\n  {\n    \"lang\": \"sh\",\n    \"startLine\": 9,\n    \"endLine\": 12,\n"
             "    \"code\": \"make\"\n  }\n]");
    CHECK_MD(guide, "artifact_md_code_blocks", "{\"lang\":\"sh\"}",
             "[\n  {\n    \"lang\": \"sh\",\n    \"startLine\": 9,\n    \"endLine\": 12,\n"
             "    \"code\": \"make\"\n  }\n]");
    CHECK_MD(guide, "artifact_md_code_blocks", "{\"lang\":\"\"}", "(empty list)");
}

/* T131 */
TEST(markdown_links_and_images_are_lists_that_a_range_narrows)
{
    CHECK_MD(guide, "artifact_md_links", "{}",
             "[\n  {\n    \"line\": 5,\n    \"kind\": \"reference\",\n    \"text\": \"docs\",\n"
             "    \"url\": \"https://docs.example\",\n    \"title\": \"Docs\"\n  }\n]");
    CHECK_MD(guide, "artifact_md_images", "{\"startLine\":5,\"endLine\":6}",
             "[\n  {\n    \"line\": 5,\n    \"kind\": \"inline\",\n    \"alt\": \"logo\",\n"
             "    \"url\": \"logo.png\"\n  }\n]");
    CHECK_MD(guide, "artifact_md_links", "{\"startLine\":6}", "(empty list)");
    CHECK_MD(guide, "artifact_md_images", "{\"endLine\":5}", "(empty list)");
    CHECK_MD(guide, "artifact_md_links", "{\"startLine\":100,\"endLine\":3}", "(empty list)");
}

/* T131 */
TEST(markdown_text_is_text)
{
    CHECK_MD(guide, "artifact_md_text", "{}",
             "Guide\n\nSee docs and logo.\n\nInstall\n\nmake\n\nUse");
    CHECK_MD(guide, "artifact_md_text", "{\"startLine\":7,\"endLine\":11}", "Install\n\nmake");
    CHECK_MD(guide, "artifact_md_text", "{\"startLine\":99999999999999999999}", "");
}

/* T131 */
TEST(markdown_ast_is_a_tree)
{
    CHECK_MD(guide, "artifact_md_ast", "{\"startLine\":12,\"endLine\":15}",
             "{\n  \"type\": \"root\",\n  \"startLine\": 12,\n  \"endLine\": 15,\n"
             "  \"children\": [\n    {\n      \"type\": \"heading\",\n      \"startLine\": 13,\n"
             "      \"endLine\": 14,\n      \"depth\": 2,\n      \"text\": \"Use\"\n    }\n  ]\n}");
}

/* ---- bounds
 * --------------------------------------------------------------------------------------- */

static struct peg__buf many(const char *line, int n)
{
    struct peg__buf text = PEG__BUF(64 << 20);

    for (int i = 0; i < n; i++)
        peg__buf_puts(&text, line);
    return text;
}

VOLUME_TEST(markdown_answers_that_are_too_long_are_cut_and_say_what_to_ask)
{
    static const struct {
        const char *query;
        const char *advice;
    } cases[] = {
        {"artifact_md_headings", "ask again for one depth]"},
        {"artifact_md_sections", "ask again for one depth]"},
        {"artifact_md_code_blocks", "ask again for one lang]"},
        {"artifact_md_links", "ask again with startLine and endLine]"},
        {"artifact_md_images", "ask again with startLine and endLine]"},
        {"artifact_md_text", "ask again with startLine and endLine]"},
        {"artifact_md_ast", "ask again with startLine and endLine]"},
    };
    struct peg__buf text = many("# A heading [a](b) ![c](d)\n```\ncode\n```\n", 60000);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

        CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_markdown,
                                    .bytes = peg__buf_view(&text),
                                    .query = cases[i].query,
                                    .args = "{}"},
                      &out),
                  PEG_OK);
        CHECK(out.len <= PEG_LIMIT_QUERY_BYTES && out.len > PEG_LIMIT_QUERY_BYTES / 2);
        CHECK(strstr(out.ptr, "[cut: the answer reached its limit"));
        CHECK(strstr(out.ptr, cases[i].advice));
        peg__buf_free(&out);
    }
    peg__buf_free(&text);
}

VOLUME_TEST(markdown_with_too_many_blocks_is_refused_by_the_limit)
{
    struct peg__buf text = many("-\n\n", PEG_LIMIT_MARKDOWN_BLOCKS);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_markdown,
                                .bytes = peg__buf_view(&text),
                                .query = "artifact_md_text",
                                .args = "{}"},
                  &out),
              PEG_EHOST);
    CHECK(strstr(out.ptr, "E_TEXT_TOO_LARGE: "));
    CHECK(strstr(out.ptr, "more than 1000000 blocks"));
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TEST(markdown_queries_stop_when_the_call_is_canceled)
{
    struct peg__buf text = many("many words [here] and *there*\n\n", 100000);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_ctx *root = NULL;
    peg_ctx *ctx = NULL;

    CHECK_INT(peg_ctx_new(&root, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_cancel(root, &ctx, NULL, NULL), PEG_OK);
    peg_cancel_fire(peg_ctx_cancel(ctx), "enough");
    CHECK_INT(ask(&(struct ask){.kind = &peg_artifact_markdown,
                                .bytes = peg__buf_view(&text),
                                .query = "artifact_md_links",
                                .args = "{}",
                                .ctx = ctx},
                  &out),
              PEG_EHOST);
    CHECK(strstr(out.ptr, "enough"));
    peg_ctx_unref(ctx);
    peg_ctx_unref(root);
    peg__buf_free(&out);
    peg__buf_free(&text);
}

TORTURE(markdown_queries_survive_any_allocation_failure)
{
    for (size_t i = 0; i < peg_artifact_markdown.n_queries; i++) {
        struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
        const peg_status status = ask(&(struct ask){.kind = &peg_artifact_markdown,
                                                    .bytes = peg__str(guide),
                                                    .query = peg_artifact_markdown.queries[i].name,
                                                    .args = "{}"},
                                      &out);

        peg__buf_free(&out);
        if (status)
            return status;
    }
    return PEG_OK;
}
