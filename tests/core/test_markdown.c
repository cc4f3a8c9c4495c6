/* SPDX-License-Identifier: Apache-2.0 */

#include "core/markdown/markdown.h"

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- fixture: a document, and its blocks or an answer as one line of text ---------------------
 */

static char shown[8192];
static peg_error error;

static peg_str show(struct peg__buf *out)
{
    snprintf(shown, sizeof(shown), "%s", out->ptr ? out->ptr : "");
    peg__buf_free(out);
    return peg__str(shown);
}

static struct peg__md *read_bytes(peg_str text)
{
    struct peg__md *md = NULL;

    CHECK_STATUS(peg__md_new(text, &md, &error), PEG_OK, error);
    return md;
}

static struct peg__md *read_text(const char *text)
{
    return read_bytes(peg__str(text));
}

/* Blocks as "heading1 0-1; quote 1-3 (paragraph 1-3)". */
static void put_outline(const struct peg__md *md, struct peg__buf *out)
{
    static const char *const names[] = {"frontmatter", "heading", "paragraph", "fence",
                                        "indented",    "html",    "table",     "break",
                                        "definition",  "quote",   "list",      "item"};
    size_t ends[64];
    size_t n_ends = 0;

    for (size_t i = 0; i < md->n_blocks; i++) {
        const struct peg__md_block *block = &md->blocks[i];
        bool is_first = i == 0 || md->blocks[i - 1].extent > 1;

        for (; n_ends && ends[n_ends - 1] == i; n_ends--)
            peg__buf_putc(out, ')');
        peg__buf_puts(out, is_first ? "" : "; ");
        peg__buf_puts(out, names[block->type]);
        if (block->type == PEG__MD_HEADING)
            peg__buf_printf(out, "%d", block->depth);
        peg__buf_printf(out, " %u-%u", block->first_line, block->end_line);
        if (block->extent > 1) {
            peg__buf_puts(out, " (");
            ends[n_ends++] = i + block->extent;
        }
    }
    for (; n_ends; n_ends--)
        peg__buf_putc(out, ')');
}

static peg_str outline(const char *text)
{
    struct peg__buf out = PEG__BUF(1 << 20);
    struct peg__md *md = read_text(text);

    put_outline(md, &out);
    peg__md_free(md);
    return show(&out);
}

/* Frees both. */
static peg_str compact(struct peg__md *md, peg_json_doc *doc)
{
    struct peg__buf out = PEG__BUF(1 << 20);

    if (doc)
        peg__json_write(peg_json_root(doc), PEG_JSON_COMPACT, &out);
    else
        peg__buf_puts(&out, "none");
    peg_json_doc_free(doc);
    peg__md_free(md);
    return show(&out);
}

static peg_str headings(const char *text, unsigned depth)
{
    struct peg__md *md = read_text(text);
    peg_json_doc *doc = NULL;

    CHECK_STATUS(peg__md_headings(md, depth, &doc, &error), PEG_OK, error);
    return compact(md, doc);
}

static peg_str sections(const char *text, unsigned depth)
{
    struct peg__md *md = read_text(text);
    peg_json_doc *doc = NULL;

    CHECK_STATUS(peg__md_sections(md, depth, &doc, &error), PEG_OK, error);
    return compact(md, doc);
}

static peg_str code(const char *text, const char *lang)
{
    struct peg__md *md = read_text(text);
    peg_json_doc *doc = NULL;
    const peg_str wanted = {lang, lang ? strlen(lang) : 0};

    CHECK_STATUS(peg__md_code_blocks(md, wanted, &doc, &error), PEG_OK, error);
    return compact(md, doc);
}

static peg_str frontmatter(const char *text)
{
    struct peg__md *md = read_text(text);
    peg_json_doc *doc = NULL;

    CHECK_STATUS(peg__md_frontmatter(md, &doc, &error), PEG_OK, error);
    return compact(md, doc);
}

static const struct peg__md_scope everything = {.end_line = SIZE_MAX};

static peg_str ast(const char *text, size_t start, size_t end)
{
    const struct peg__md_scope scope = {.start_line = start, .end_line = end};
    struct peg__md *md = read_text(text);
    peg_json_doc *doc = NULL;

    CHECK_STATUS(peg__md_ast(md, &scope, &doc, &error), PEG_OK, error);
    return compact(md, doc);
}

static peg_str text_within(const char *text, size_t start, size_t end)
{
    const struct peg__md_scope scope = {.start_line = start, .end_line = end};
    struct peg__buf out = PEG__BUF(1 << 20);
    struct peg__md *md = read_text(text);

    CHECK_STATUS(peg__md_text(md, &scope, &out, &error), PEG_OK, error);
    peg__md_free(md);
    return show(&out);
}

static peg_str plain(const char *text)
{
    return text_within(text, 0, SIZE_MAX);
}

/* Links as "line kind [text](url "title")", one a line. */
static peg_str links_within(const char *text, bool are_images, const struct peg__md_scope *scope)
{
    struct peg__buf out = PEG__BUF(1 << 20);
    struct peg__md *md = read_text(text);
    peg_json_doc *doc = NULL;

    CHECK_STATUS(peg__md_links(md, scope, are_images, &doc, &error), PEG_OK, error);
    PEG_JSON_EACH_ITEM (peg_json_root(doc), item) {
        const peg_json *title = peg_json_get(item, "title");

        peg__buf_printf(&out, "%s%lld %s [%s](%s", out.len ? "\n" : "",
                        (long long)peg_json_get(item, "line")->u.number,
                        peg_json_get(item, "kind")->u.ptr,
                        peg_json_get(item, are_images ? "alt" : "text")->u.ptr,
                        peg_json_get(item, "url")->u.ptr);
        if (title)
            peg__buf_printf(&out, " \"%s\"", title->u.ptr);
        peg__buf_putc(&out, ')');
    }
    peg_json_doc_free(doc);
    peg__md_free(md);
    return show(&out);
}

static peg_str links(const char *text)
{
    return links_within(text, false, &everything);
}

static peg_str images(const char *text)
{
    return links_within(text, true, &everything);
}

/* ---- headings -------------------------------------------------------------------------------- */

/* T131 */
TEST(markdown_headings_are_written_with_one_to_six_hashes)
{
    CHECK_STR(
        headings("# One\n\n## Two\n###### Six\n", 0),
        "[{\"line\":0,\"depth\":1,\"text\":\"One\"},{\"line\":2,\"depth\":2,\"text\":\"Two\"},"
        "{\"line\":3,\"depth\":6,\"text\":\"Six\"}]");
    CHECK_STR(headings("####### seven\n#none\n\\# escaped\n", 0), "[]");
    CHECK_STR(headings("#\n", 0), "[{\"line\":0,\"depth\":1,\"text\":\"\"}]");
    CHECK_STR(headings("#\tTab\r\n", 0), "[{\"line\":0,\"depth\":1,\"text\":\"Tab\"}]");
    CHECK_STR(headings("", 0), "[]");
}

/* T131 */
TEST(markdown_headings_may_be_indented_by_three_and_closed_by_hashes)
{
    CHECK_STR(headings("   ## In  ##  \n", 0), "[{\"line\":0,\"depth\":2,\"text\":\"In\"}]");
    CHECK_STR(headings("    # code\n", 0), "[]");
    CHECK_STR(headings("# C#\n", 0), "[{\"line\":0,\"depth\":1,\"text\":\"C#\"}]");
    CHECK_STR(headings("## ##\n", 0), "[{\"line\":0,\"depth\":2,\"text\":\"\"}]");
}

/* T131 */
TEST(markdown_headings_by_underline_or_in_containers_are_not_listed)
{
    CHECK_STR(headings("One\n===\n\nTwo\n---\n> # quoted\n- # listed\n\n# Three", 0),
              "[{\"line\":8,\"depth\":1,\"text\":\"Three\"}]");
}

/* T131 */
TEST(markdown_headings_of_one_depth_are_listed_alone)
{
    CHECK_STR(headings("# a\n## b\n# c\n", 2), "[{\"line\":1,\"depth\":2,\"text\":\"b\"}]");
    CHECK_STR(headings("# a\n## b\n# c\n", 6), "[]");
}

/* T131 */
TEST(markdown_headings_are_none_in_fences_and_front_matter)
{
    CHECK_STR(headings("---\n# yaml comment\n---\n```\n# code\n```\n# Real\n", 0),
              "[{\"line\":6,\"depth\":1,\"text\":\"Real\"}]");
}

/* ---- fences ------------------------------------------------------------------------------------
 */

/* T131 */
TEST(markdown_fences_close_with_the_same_character_and_no_fewer)
{
    CHECK_STR(outline("```\na\n~~~\n``\n````\nb\n"), "fence 0-5; paragraph 5-6");
    CHECK_STR(outline("~~~~\n~~~\n```\n~~~~~  \nb"), "fence 0-4; paragraph 4-5");
    CHECK_STR(outline("```\n``` not\n   ```\nb"), "fence 0-3; paragraph 3-4");
    CHECK_STR(outline("```\n    ```\n```\n"), "fence 0-3");
}

/* T131 */
TEST(markdown_fences_that_are_not_closed_run_to_the_end)
{
    CHECK_STR(outline("a\n\n```c\n# b\n\nc"), "paragraph 0-1; fence 2-6");
    CHECK_STR(outline("```c\nb\n"), "fence 0-3"); /* a final LF begins a last, empty line */
    CHECK_STR(outline("```"), "fence 0-1");
    CHECK_STR(headings("~~~\n# b\n```\n# c\n", 0), "[]");
}

TEST(markdown_fences_have_three_characters_and_no_backtick_behind_backticks)
{
    CHECK_STR(outline("``\na\n``"), "paragraph 0-3");
    CHECK_STR(outline("``` a`b\n"), "paragraph 0-1");
    CHECK_STR(outline("~~~ a`b\n~~~"), "fence 0-2");
    CHECK_STR(outline("    ```\n    a"), "indented 0-2");
}

/* T131 */
TEST(markdown_code_blocks_tell_language_lines_and_code)
{
    CHECK_STR(code("```c\nint a;\n\nint b;\n```\ntext\n~~~ Python run=1\nx\n~~~\n```\n```\n", NULL),
              "[{\"lang\":\"c\",\"startLine\":0,\"endLine\":5,\"code\":\"int a;\\n\\nint b;\"},"
              "{\"lang\":\"Python\",\"info\":\"Python run=1\",\"startLine\":6,\"endLine\":9,"
              "\"code\":\"x\"},"
              "{\"lang\":\"\",\"startLine\":9,\"endLine\":11,\"code\":\"\"}]");
    CHECK_STR(code("    indented\n", NULL), "[]");
}

/* T131 */
TEST(markdown_code_blocks_of_one_language_are_listed_alone)
{
    const char *text = "```c\n1\n```\n```py\n2\n```\n```\n3\n```\n";

    CHECK_STR(code(text, "PY"), "[{\"lang\":\"py\",\"startLine\":3,\"endLine\":6,\"code\":\"2\"}]");
    CHECK_STR(code(text, ""), "[{\"lang\":\"\",\"startLine\":6,\"endLine\":9,\"code\":\"3\"}]");
    CHECK_STR(code(text, "p"), "[]");
}

TEST(markdown_code_in_containers_is_told_without_what_they_put_before_it)
{
    CHECK_STR(code("10. step\n\n    ```sh\n    make\n      all\n    ```\n", NULL),
              "[{\"lang\":\"sh\",\"startLine\":2,\"endLine\":6,\"code\":\"make\\n  all\"}]");
    CHECK_STR(code("> ```\n> a\n>   b\n>\n> ```\n", NULL),
              "[{\"lang\":\"\",\"startLine\":0,\"endLine\":5,\"code\":\"a\\n  b\\n\"}]");
    CHECK_STR(code("> - ```\n>   a\n>    b\n", NULL),
              "[{\"lang\":\"\",\"startLine\":0,\"endLine\":3,\"code\":\"a\\n b\"}]");
    CHECK_STR(code("- ```\n\ta\n\t```\n", NULL),
              "[{\"lang\":\"\",\"startLine\":0,\"endLine\":3,\"code\":\"a\"}]");
    CHECK_STR(code("> ```\nafter\n", NULL),
              "[{\"lang\":\"\",\"startLine\":0,\"endLine\":1,\"code\":\"\"}]");
}

TEST(markdown_code_blocks_that_are_too_long_together_come_without_code)
{
    struct peg__buf text = PEG__BUF(4 << 20);
    struct peg__md *md;
    peg_json_doc *doc = NULL;
    const peg_json *list;

    for (int i = 0; i < 3; i++) {
        peg__buf_puts(&text, "```\n");
        peg__buf_repeat(&text, 'x', PEG_LIMIT_MARKDOWN_CODE_BYTES / 2 - 1);
        peg__buf_puts(&text, "\n```\n");
    }
    md = read_bytes(peg__buf_view(&text));
    CHECK_INT(peg__md_code_blocks(md, (peg_str){NULL, 0}, &doc, NULL), PEG_OK);
    list = peg_json_root(doc);

    CHECK_INT(peg_json_len(list), 3);
    CHECK(peg_json_get(peg_json_at(list, 1), "code"));
    CHECK(!peg_json_get(peg_json_at(list, 2), "code"));
    CHECK(peg_json_get(peg_json_at(list, 2), "endLine"));
    peg_json_doc_free(doc);
    peg__md_free(md);
    peg__buf_free(&text);
}

/* ---- sections
 * --------------------------------------------------------------------------------------- */

/* T131 */
TEST(markdown_sections_end_before_the_next_heading_that_is_not_deeper)
{
    CHECK_STR(sections("# A\na\n## B\nb\n### C\n## D\n# E\ne\n", 0),
              "[{\"heading\":\"A\",\"depth\":1,\"startLine\":0,\"endLine\":6},"
              "{\"heading\":\"B\",\"depth\":2,\"startLine\":2,\"endLine\":5},"
              "{\"heading\":\"C\",\"depth\":3,\"startLine\":4,\"endLine\":5},"
              "{\"heading\":\"D\",\"depth\":2,\"startLine\":5,\"endLine\":6},"
              "{\"heading\":\"E\",\"depth\":1,\"startLine\":6,\"endLine\":9}]");
}

/* T131 */
TEST(markdown_sections_of_one_depth_still_end_at_every_heading_that_ends_them)
{
    CHECK_STR(sections("## A\n# B\n### C\n## D\n", 2),
              "[{\"heading\":\"A\",\"depth\":2,\"startLine\":0,\"endLine\":1},"
              "{\"heading\":\"D\",\"depth\":2,\"startLine\":3,\"endLine\":5}]");
    CHECK_STR(sections("no heading", 0), "[]");
    CHECK_STR(sections("# A\n```\n# no\n```", 0),
              "[{\"heading\":\"A\",\"depth\":1,\"startLine\":0,\"endLine\":4}]");
}

/* ---- front matter
 * ------------------------------------------------------------------------------------- */

/* T131 */
TEST(markdown_front_matter_stands_at_the_start_and_is_read_as_yaml)
{
    CHECK_STR(frontmatter("---\ntitle: Notes\ntags: [a, b]\n---\n# A\n"),
              "{\"format\":\"yaml\",\"startLine\":0,\"endLine\":4,"
              "\"data\":{\"title\":\"Notes\",\"tags\":[\"a\",\"b\"]}}");
    CHECK_STR(frontmatter("\xEF\xBB\xBF---  \r\na: 1\r\n...\r\n"),
              "{\"format\":\"yaml\",\"startLine\":0,\"endLine\":3,\"data\":{\"a\":1}}");
    CHECK_STR(frontmatter("---\n---\n"),
              "{\"format\":\"yaml\",\"startLine\":0,\"endLine\":2,\"data\":null}");
    CHECK_STR(frontmatter("\n---\na: 1\n---\n"), "none");
    CHECK_STR(frontmatter("# A\n---\na: 1\n---\n"), "none");
    CHECK_STR(frontmatter("----\na: 1\n----\n"), "none");
    CHECK_STR(frontmatter(""), "none");
}

TEST(markdown_front_matter_that_is_no_yaml_is_told_as_text)
{
    CHECK_STR(frontmatter("+++\ntitle = \"a\"\n# b\n+++\n"),
              "{\"format\":\"toml\",\"startLine\":0,\"endLine\":4,"
              "\"text\":\"title = \\\"a\\\"\\n# b\"}");
    CHECK(strstr(frontmatter("---\na: [\n---\n").ptr, "\"text\":\"a: [\"}"));
    CHECK(strstr(shown, "\"error\":\""));
}

static peg_str long_frontmatter(int n_lines)
{
    struct peg__buf text = PEG__BUF(1 << 20);
    static char outlined[200];

    peg__buf_puts(&text, "---\n");
    for (int i = 0; i < n_lines - 2; i++)
        peg__buf_puts(&text, "# a\n");
    peg__buf_puts(&text, "---\n");
    snprintf(outlined, sizeof(outlined), "%s", outline(text.ptr).ptr);
    peg__buf_free(&text);
    return peg__str(outlined);
}

/* T131 */
TEST(markdown_front_matter_is_looked_for_in_the_first_200_lines)
{
    CHECK_STR(long_frontmatter(200), "frontmatter 0-200");
    CHECK(strncmp(long_frontmatter(201).ptr, "break 0-1; heading1 1-2; ", 25) == 0);
    CHECK_STR(outline("---\na: 1\n"), "break 0-1; paragraph 1-2");
}

/* ---- blocks
 * ---------------------------------------------------------------------------------------------- */

TEST(markdown_paragraphs_end_at_blank_lines_and_at_what_can_interrupt_them)
{
    CHECK_STR(outline("a\nb\n\n\nc"), "paragraph 0-2; paragraph 4-5");
    CHECK_STR(outline("a\n# b\nc\n***\nd\n> e\n\nf\n```\n```"),
              "paragraph 0-1; heading1 1-2; paragraph 2-3; break 3-4; paragraph 4-5; "
              "quote 5-6 (paragraph 5-6); paragraph 7-8; fence 8-10");
    CHECK_STR(outline("a\n    b\n\n    c"), "paragraph 0-2; indented 3-4");
    CHECK_STR(outline("a\n14. b\n1) c"), "paragraph 0-2; list 2-3 (item 2-3 (paragraph 2-3))");
    CHECK_STR(outline("a\n-\nb"), "heading2 0-2; paragraph 2-3");
    CHECK_STR(outline("a\n*\nb"), "paragraph 0-3");
}

TEST(markdown_lines_below_a_paragraph_make_it_a_heading)
{
    CHECK_STR(outline("a\nb\n===\nc\n---\n"), "heading1 0-3; heading2 3-5");
    CHECK_STR(outline("> a\n---"), "quote 0-1 (paragraph 0-1); break 1-2");
    CHECK_STR(outline("===\n"), "paragraph 0-1");
}

TEST(markdown_quotes_and_lists_contain_blocks)
{
    CHECK_STR(outline("> # a\n> b\nlazy\n>\n> c\n\nd"),
              "quote 0-5 (heading1 0-1; paragraph 1-3; paragraph 4-5); paragraph 6-7");
    CHECK_STR(outline("- a\n- b\n\n  c\n+ d"),
              "list 0-4 (item 0-1 (paragraph 0-1); item 1-4 (paragraph 1-2; paragraph 3-4)); "
              "list 4-5 (item 4-5 (paragraph 4-5))");
    CHECK_STR(outline("1. a\n   - b\n     - c\n2. d\ne"),
              "list 0-5 (item 0-3 (paragraph 0-1; list 1-3 (item 1-3 (paragraph 1-2; "
              "list 2-3 (item 2-3 (paragraph 2-3))))); item 3-5 (paragraph 3-5))");
    CHECK_STR(outline("- a\n\nb"), "list 0-1 (item 0-1 (paragraph 0-1)); paragraph 2-3");
    CHECK_STR(outline("-\n\n  a"), "list 0-1 (item 0-1); paragraph 2-3");
    CHECK_STR(outline("-     code\n"), "list 0-1 (item 0-1 (indented 0-1))");
    CHECK_STR(outline("> - a\n>\n>   b\n"),
              "quote 0-3 (list 0-3 (item 0-3 (paragraph 0-1; paragraph 2-3)))");
}

TEST(markdown_indented_code_keeps_its_inner_blank_lines_only)
{
    CHECK_STR(outline("    a\n\n\n    b\n\nc"), "indented 0-4; paragraph 5-6");
    CHECK_STR(outline("\ta"), "indented 0-1");
    CHECK_STR(plain("    a\n\n      b\n"), "a\n\n  b");
}

TEST(markdown_html_blocks_end_as_they_started)
{
    CHECK_STR(outline("<div>\na\n\nb"), "html 0-2; paragraph 3-4");
    CHECK_STR(outline("<!-- a\n\n# b -->\nc"), "html 0-3; paragraph 3-4");
    CHECK_STR(outline("<script>\n\n# a\n</script> b\nc"), "html 0-4; paragraph 4-5");
    CHECK_STR(outline("<?a\n\n?>\n<!A\n>\n<![CDATA[\n\n]]>\n"), "html 0-3; html 3-5; html 5-8");
    CHECK_STR(outline("<b class=\"x\">\na\n\nb"), "html 0-2; paragraph 3-4");
    CHECK_STR(outline("a\n<b>\nc"), "paragraph 0-3");
    CHECK_STR(outline("a\n<div>"), "paragraph 0-1; html 1-2");
    CHECK_STR(outline("<b> c"), "paragraph 0-1");
    CHECK_STR(outline("<!-- open\n# a"), "html 0-2");
}

TEST(markdown_tables_need_a_row_of_dashes_with_as_many_cells)
{
    CHECK_STR(outline("| a | b |\n|---|:-:|\n| 1 | 2 |\n\nc"), "table 0-3; paragraph 4-5");
    CHECK_STR(outline("a|b\n-|-\n1\n# c"), "table 0-3; heading1 3-4");
    CHECK_STR(outline("| a |\n|---|---|\n"), "paragraph 0-2");
    CHECK_STR(outline("a \\| b\n--|--\n"), "paragraph 0-2");
    CHECK_STR(outline("a|b\n-|x\n"), "paragraph 0-2");
}

TEST(markdown_definitions_are_blocks_of_their_own)
{
    CHECK_STR(outline("[a]: b\n[c]:\n d\n 'e\nf'\ntext"),
              "definition 0-1; definition 1-5; paragraph 5-6");
    CHECK_STR(outline("text\n[a]: b"), "paragraph 0-2");
    CHECK_STR(outline("[a]: b c\n"), "paragraph 0-1");
    CHECK_STR(outline("[a]:\n"), "paragraph 0-1");
    CHECK_STR(outline("[a]: b 'c\nd"), "paragraph 0-2");
    CHECK_STR(outline("[a]: b\n'c' d"), "definition 0-1; paragraph 1-2");
    CHECK_STR(outline("[a]: b\n===\nc"), "definition 0-1; paragraph 1-3");
    CHECK_STR(outline("> [a]: b\n> c\n"), "quote 0-2 (definition 0-1; paragraph 1-2)");
    CHECK_STR(outline("[a]: b\n[c"), "definition 0-1; paragraph 1-2");
}

TEST(markdown_nests_as_deep_as_allowed_and_takes_further_markers_as_text)
{
    struct peg__buf text = PEG__BUF(1 << 20);
    struct peg__md *md;

    peg__buf_repeat(&text, '>', 100);
    md = read_bytes(peg__buf_view(&text));

    CHECK_INT(md->n_blocks, PEG_LIMIT_MARKDOWN_DEPTH + 1);
    CHECK_INT(md->blocks[md->n_blocks - 1].type, PEG__MD_PARAGRAPH);
    CHECK_INT(md->blocks[0].extent, md->n_blocks);
    peg__md_free(md);
    peg__buf_free(&text);
}

TEST(markdown_counts_lines_by_line_feed_alone)
{
    CHECK_STR(headings("a\r\r\n# b\r\n\r# c\n# d", 0),
              "[{\"line\":1,\"depth\":1,\"text\":\"b\"},{\"line\":3,\"depth\":1,\"text\":\"d\"}]");
}

TEST(markdown_answers_with_valid_utf8_whatever_the_bytes)
{
    CHECK_STR(headings("# a\xff\xc3", 0), "[{\"line\":0,\"depth\":1,\"text\":\"a\uFFFD\uFFFD\"}]");
    CHECK_STR(plain("a\xff *b\xc3*"), "a\uFFFD b\uFFFD");
    CHECK_STR(links("[a\xff](b\xfe)"), "0 inline [a\uFFFD](b\uFFFD)");
}

/* ---- links and images
 * -------------------------------------------------------------------------------------- */

TEST(markdown_links_are_found_where_they_are_written_out)
{
    CHECK_STR(links("a [b *c*](d) and\n[e](<f g> \"h\") [i](j 'k' ) [l](m (n)) [o]()"),
              "0 inline [b c](d)\n1 inline [e](f g \"h\")\n1 inline [i](j \"k\")\n"
              "1 inline [l](m \"n\")\n1 inline [o]()");
    CHECK_STR(links("[a](b(c)d) [e](\n f\n \"g\nh\"\n)"),
              "0 inline [a](b(c)d)\n0 inline [e](f \"g\nh\")");
    CHECK_STR(links("[a](b\\)c&amp;d) [e](f 'g&quot;')"),
              "0 inline [a](b)c&d)\n0 inline [e](f \"g\"\")");
    CHECK_STR(links("# [a](b)\n\n- [c](d)\n\n> e\n> [f](g)\n\n| h |\n|---|\n| [i](j) |"),
              "0 inline [a](b)\n2 inline [c](d)\n5 inline [f](g)\n9 inline [i](j)");
}

TEST(markdown_links_are_none_where_the_brackets_do_not_fit)
{
    CHECK_STR(links("[a] (b) [c](d e) [f](g 'h) [i]((j) \\[k](l) [m\\](n) [o](<p\nq>)"), "");
    CHECK_STR(links("`[a](b)` and\n\n    [c](d)\n\n```\n[e](f)\n```\n<!-- [g](h) -->\n"), "");
    CHECK_STR(links("[a]\n\n(b)"), "");
}

TEST(markdown_links_by_reference_find_their_definition)
{
    const char *text = "[a][One  Two] [one two][] [ONE\ntwo] [a][none] [none] ![b][One two]\n\n"
                       "[one Two]: /url 'title'\n[one two]: /second\n";

    CHECK_STR(links(text),
              "0 reference [a](/url \"title\")\n0 reference [one two](/url \"title\")\n"
              "0 reference [ONE\ntwo](/url \"title\")");
    CHECK_STR(images(text), "1 reference [b](/url \"title\")");
    CHECK_STR(links("[a [b] c]\n\n[b]: x\n\n[a [b] c]"), "0 reference [b](x)\n4 reference [b](x)");
}

TEST(markdown_links_do_not_nest_but_images_stand_in_links)
{
    const char *text = "[a [b](c) d](e) [![f](g)](h) ![i [j](k) l](m)";

    CHECK_STR(links(text), "0 inline [b](c)\n0 inline [f](h)\n0 inline [j](k)");
    CHECK_STR(images(text), "0 inline [f](g)\n0 inline [i j l](m)");
}

TEST(markdown_autolinks_stand_in_angle_brackets_or_bare)
{
    CHECK_STR(links("<https://a.b/c?d=e> <me@x.org> <mailto:a@b> <a b> <a:b>"),
              "0 autolink [https://a.b/c?d=e](https://a.b/c?d=e)\n"
              "0 autolink [me@x.org](mailto:me@x.org)\n0 autolink [mailto:a@b](mailto:a@b)");
    CHECK_STR(links("see http://a.b/c. (https://d.e/f(g)) **www.h.i**, xhttp://j https://"),
              "0 autolink [http://a.b/c](http://a.b/c)\n"
              "0 autolink [https://d.e/f(g)](https://d.e/f(g))\n"
              "0 autolink [www.h.i](http://www.h.i)");
    CHECK_STR(links("[https://a.b](https://c.d) [x <https://e.f>](g)"),
              "0 inline [https://a.b](https://c.d)\n0 inline [x https://e.f](g)");
}

TEST(markdown_links_of_a_range_start_in_it)
{
    const struct peg__md_scope scope = {.start_line = 1, .end_line = 3};

    CHECK_STR(links_within("[a](b)\n[c](d) [e\nf](g)\n[h](i)\n\n[j](k)", false, &scope),
              "1 inline [c](d)\n1 inline [e\nf](g)");
    CHECK_STR(links_within("[a](b)\n", false, &scope), "");
}

TEST(markdown_images_have_a_description)
{
    CHECK_STR(images("![a *b*](c \"d\") !\\[e](f) !![g](h) ![](i)"),
              "0 inline [a b](c \"d\")\n0 inline [g](h)\n0 inline [](i)");
    CHECK_STR(links("![a](b)"), "");
}

/* ---- text
 * ------------------------------------------------------------------------------------------------------
 */

TEST(markdown_text_is_without_markup)
{
    CHECK_STR(plain("# A *b* `c`\n\nd [e](f \"g\") ![h](i) <j@k.l> &amp; \\* &#65;&#x42;"),
              "A b c\n\nd e h j@k.l & * AB");
    CHECK_STR(plain("**a** __b__ ~~c~~ ***d*** _e_"), "a b c d e");
    CHECK_STR(plain("a  \nb\\\nc<br>d"), "a\nb\nc\nd");
    CHECK_STR(plain("<p align=\"center\">a <b>b</b></p>\n\n<!-- c -->\n<style>\nd\n</style>\n"),
              "a b");
    CHECK_STR(plain("---\na: b\n---\n\n***\n\n[c]: d\n"), "");
}

TEST(markdown_text_keeps_what_only_looks_like_markup)
{
    CHECK_STR(plain("2 * 3 * 4 snake_case_name a*b x~y `` ` `` [a] ]( <3 &unknown; *a"),
              "2 * 3 * 4 snake_case_name a*b x~y  `  [a] ]( <3 &unknown; *a");
    CHECK_STR(plain("**a* `b"), "*a `b");
    CHECK_STR(plain("`a*` *b`c*`"), "a* *bc*");
}

TEST(markdown_text_of_blocks_is_apart)
{
    CHECK_STR(plain("a\nb\n\n- c\n- d\n\n  e\n\nf\n\n> g\n\n```\nh\n\n  i\n```\n"),
              "a\nb\nc\nd\n\ne\n\nf\n\ng\n\nh\n\n  i");
    CHECK_STR(plain("| a | *b* |\n|---|---|\n| `c` | d\\|e |\n"), "a | b\nc | d|e");
    CHECK_STR(plain("A\n=\n"), "A");
}

TEST(markdown_text_of_a_range_is_that_of_its_lines)
{
    const char *text = "a\nb\nc\n\n```\nd\ne\n```\n- f\n";

    CHECK_STR(text_within(text, 1, 2), "b");
    CHECK_STR(text_within(text, 2, 6), "c\n\nd");
    CHECK_STR(text_within(text, 6, 100), "e\nf");
    CHECK_STR(text_within(text, 3, 3), "");
    CHECK_STR(text_within(text, 50, SIZE_MAX), "");
}

/* ---- the tree
 * ------------------------------------------------------------------------------------------------------
 */

TEST(markdown_ast_is_a_tree_of_blocks_with_their_lines)
{
    CHECK_STR(ast("# A\n\n2. b\n   > c\n\n```x\n```\n[d]: e\n", 0, SIZE_MAX),
              "{\"type\":\"root\",\"startLine\":0,\"endLine\":9,\"children\":["
              "{\"type\":\"heading\",\"startLine\":0,\"endLine\":1,\"depth\":1,\"text\":\"A\"},"
              "{\"type\":\"list\",\"startLine\":2,\"endLine\":4,\"ordered\":true,\"start\":2,"
              "\"children\":[{\"type\":\"listItem\",\"startLine\":2,\"endLine\":4,\"children\":["
              "{\"type\":\"paragraph\",\"startLine\":2,\"endLine\":3},"
              "{\"type\":\"blockquote\",\"startLine\":3,\"endLine\":4,\"children\":["
              "{\"type\":\"paragraph\",\"startLine\":3,\"endLine\":4}]}]}]},"
              "{\"type\":\"code\",\"startLine\":5,\"endLine\":7,\"lang\":\"x\"},"
              "{\"type\":\"definition\",\"startLine\":7,\"endLine\":8,\"label\":\"d\","
              "\"url\":\"e\"}]}");
}

TEST(markdown_ast_of_a_range_has_the_blocks_that_touch_it)
{
    CHECK_STR(ast("a\n\n- b\n- c\n\nd\n", 3, 5),
              "{\"type\":\"root\",\"startLine\":3,\"endLine\":5,\"children\":["
              "{\"type\":\"list\",\"startLine\":2,\"endLine\":4,\"ordered\":false,\"children\":["
              "{\"type\":\"listItem\",\"startLine\":3,\"endLine\":4,\"children\":["
              "{\"type\":\"paragraph\",\"startLine\":3,\"endLine\":4}]}]}]}");
    CHECK_STR(ast("", 0, SIZE_MAX),
              "{\"type\":\"root\",\"startLine\":0,\"endLine\":0,\"children\":[]}");
}

/* ---- bounds
 * ----------------------------------------------------------------------------------------------------------
 */

VOLUME_TEST(markdown_refuses_more_blocks_than_the_limit)
{
    struct peg__buf text = PEG__BUF(64 << 20);
    struct peg__md *md = NULL;

    for (int i = 0; i <= PEG_LIMIT_MARKDOWN_BLOCKS; i++)
        peg__buf_add(&text, "#\n", 2);

    CHECK_INT(peg__md_new(peg__buf_view(&text), &md, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_TEXT_TOO_LARGE");
    CHECK(strstr(error.message, "more than 1000000 blocks"));
    CHECK_INT(peg__md_new(peg__strn(text.ptr, text.len - 2), &md, &error), PEG_OK);
    CHECK_INT(md->n_blocks, PEG_LIMIT_MARKDOWN_BLOCKS);
    peg__md_free(md);
    peg__buf_free(&text);
}

/* A list that is far longer than an answer ends early. */
VOLUME_TEST(markdown_answers_do_not_grow_without_bound)
{
    struct peg__buf text = PEG__BUF(64 << 20);
    struct peg__md *md;
    peg_json_doc *doc = NULL;

    for (int i = 0; i < 500000; i++)
        peg__buf_puts(&text, "# [a](b)\n");
    md = read_bytes(peg__buf_view(&text));

    CHECK_INT(peg__md_links(md, &everything, false, &doc, NULL), PEG_OK);
    CHECK(peg_json_len(peg_json_root(doc)) < 50000);
    doc = peg_json_doc_free(doc);
    CHECK_INT(peg__md_headings(md, 0, &doc, NULL), PEG_OK);
    CHECK(peg_json_len(peg_json_root(doc)) < 50000);
    doc = peg_json_doc_free(doc);
    CHECK_INT(peg__md_ast(md, &everything, &doc, NULL), PEG_OK);
    CHECK(peg_json_len(peg_json_get(peg_json_root(doc), "children")) < 50000);
    peg_json_doc_free(doc);
    peg__md_free(md);
    peg__buf_free(&text);
}

/* Patterns that make careless readers quadratic. Steps per byte must not grow with the size. */
static const char *const hostile[] = {
    "[",        "]",       "![",         "`",        "*",           "_",       "~",
    "<",        "&",       "\\",         "(",        ">",           "|",       "!",
    "#",        "-",       "- ",         "+ ",       "> ",          "\n",      "[a](",
    "[a](b",    "[a](<b",  "[a](b \"",   "[a](b '",  "[a](b (",     "[]",      "[][",
    "[a][",     "![a](b)", "[![a](",     "*a ",      "*a_b",        "a*",      "**a",
    "_a*b*",    "~~a~",    "`` ` ",      "` ``a ",   "<a b=\"",     "<a b='",  "<!--",
    "<?",       "<!a",     "<![CDATA[",  "<a:",      "<a@",         "http://", "http://a)",
    "www.a",    "&#",      "&amp",       "[a]: b\n", "[a]:\n",      "[a\n",    "a\n",
    "> a\n",    ">\n",     "- a\n",      "1. \n",    " -\n",        "\t",      "- - - - ",
    "> - > - ", "| a ",    "a|b\n-|-\n", "```\n",    "~~~~\n```\n", "    a\n", "<div>\n",
    "<!-- a\n", "a  \n",   "\r\n",       "***\n",    "a\n===\n",    "---\n",   "\xff",
    "\u00e9*",
};

static struct peg__buf repeated(const char *pattern, size_t size)
{
    struct peg__buf text = PEG__BUF(8 << 20);

    while (text.len < size)
        peg__buf_puts(&text, pattern);
    return text;
}

static size_t steps_of_blocks(const char *pattern, size_t size)
{
    struct peg__buf text = repeated(pattern, size);
    struct peg__md *md = read_bytes(peg__buf_view(&text));
    const size_t steps = md->n_steps;

    peg__md_free(md);
    peg__buf_free(&text);
    return steps;
}

static size_t steps_of_inline(const char *pattern, size_t size)
{
    struct peg__buf text = repeated(pattern, size);
    struct peg__md *md = read_text("[a]: b\n");
    struct peg__md_inline in = {.md = md};
    struct peg__buf out = PEG__BUF(8 << 20);
    size_t steps;

    CHECK_INT(peg__md_inline_read(&in, peg__buf_view(&text)), PEG_OK);
    peg__md_inline_text(&in, 0, text.len, &out);
    CHECK_INT(out.status, PEG_OK);
    steps = in.n_steps;
    peg__md_inline_free(&in);
    peg__md_free(md);
    peg__buf_free(&out);
    peg__buf_free(&text);
    return steps;
}

enum { HOSTILE_BYTES = 1 << 18, STEPS_PER_BYTE = 64 };

VOLUME_TEST(markdown_blocks_take_linear_time_whatever_the_text)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        const size_t steps = steps_of_blocks(hostile[i], HOSTILE_BYTES);

        if (steps > (size_t)STEPS_PER_BYTE * HOSTILE_BYTES)
            T_FAIL("\"%s\" again and again takes %zu steps", hostile[i], steps);
    }
}

VOLUME_TEST(markdown_inline_content_takes_linear_time_whatever_the_text)
{
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        const size_t steps = steps_of_inline(hostile[i], HOSTILE_BYTES);

        if (steps > (size_t)STEPS_PER_BYTE * HOSTILE_BYTES)
            T_FAIL("\"%s\" again and again takes %zu steps", hostile[i], steps);
    }
}

/* Runs of every length, so that none closes another. */
TEST(markdown_runs_of_backticks_take_linear_time)
{
    struct peg__buf text = PEG__BUF(8 << 20);
    struct peg__md_inline in = {0};

    for (size_t n = 1; text.len < HOSTILE_BYTES; n++) {
        peg__buf_repeat(&text, '`', n);
        peg__buf_putc(&text, ' ');
    }
    CHECK_INT(peg__md_inline_read(&in, peg__buf_view(&text)), PEG_OK);

    CHECK(in.n_steps < (size_t)STEPS_PER_BYTE * HOSTILE_BYTES);
    peg__md_inline_free(&in);
    peg__buf_free(&text);
}

/* The description of each image holds those of all inside. */
TEST(markdown_images_nest_as_deep_as_allowed)
{
    struct peg__buf text = PEG__BUF(8 << 20);
    struct peg__md *md;
    peg_json_doc *doc = NULL;

    for (int i = 0; i < 1000; i++)
        peg__buf_puts(&text, "![");
    peg__buf_puts(&text, "a");
    for (int i = 0; i < 1000; i++)
        peg__buf_puts(&text, "](b)");
    md = read_bytes(peg__buf_view(&text));

    CHECK_INT(peg__md_links(md, &everything, true, &doc, NULL), PEG_OK);
    CHECK_INT(peg_json_len(peg_json_root(doc)), PEG_LIMIT_MARKDOWN_DEPTH);
    peg_json_doc_free(doc);
    peg__md_free(md);
    peg__buf_free(&text);
}

TEST(markdown_paragraphs_beyond_the_limit_are_read_in_pieces)
{
    struct peg__buf text = PEG__BUF(8 << 20);
    struct peg__buf out = PEG__BUF(8 << 20);
    struct peg__md *md;
    peg_json_doc *doc = NULL;

    for (int i = 0; i < 40000; i++)
        peg__buf_puts(&text, "a *b* c\nd é\n");
    peg__buf_repeat(&text, 'x', 2 * PEG_LIMIT_MARKDOWN_INLINE_BYTES);
    peg__buf_puts(&text, "\n[a](b)");
    md = read_bytes(peg__buf_view(&text));

    CHECK_INT(md->n_blocks, 1);
    CHECK_INT(peg__md_text(md, &everything, &out, NULL), PEG_OK);
    CHECK(out.len >= text.len - 2 * 40000 - 10 && out.len < text.len);
    CHECK(!strchr(out.ptr, '*'));
    CHECK_INT(peg__md_links(md, &everything, false, &doc, NULL), PEG_OK);
    CHECK_INT(peg_json_len(peg_json_root(doc)), 1);
    CHECK_INT(peg_json_get(peg_json_at(peg_json_root(doc), 0), "line")->u.number, 80001);
    peg_json_doc_free(doc);
    peg__md_free(md);
    peg__buf_free(&out);
    peg__buf_free(&text);
}

/* ---- out of memory
 * -------------------------------------------------------------------------------------------------------
 */

static const char everything_there_is[] =
    "---\na: [b]\n---\n# A *b*\n\n1. c [d](e \"f\") ![g](h)\n   > i\n\n```x y\nj\n```\n\n"
    "[k] <https://l.m>\n\n| n | o |\n|---|---|\n| p | q |\n\n[k]: /r 's'\n[t]: u\nv\n";

TORTURE(markdown_index_survives_any_allocation_failure)
{
    struct peg__md *md = NULL;
    const peg_status status = peg__md_new(peg__str(everything_there_is), &md, NULL);

    peg__md_free(md);
    return status;
}

static peg_status ask_everything(const struct peg__md *md)
{
    peg_json_doc *docs[7] = {NULL};
    struct peg__buf out = PEG__BUF(1 << 20);
    peg_status status;

    if (!(status = peg__md_frontmatter(md, &docs[0], NULL)) &&
        !(status = peg__md_headings(md, 0, &docs[1], NULL)) &&
        !(status = peg__md_sections(md, 0, &docs[2], NULL)) &&
        !(status = peg__md_code_blocks(md, (peg_str){NULL, 0}, &docs[3], NULL)) &&
        !(status = peg__md_links(md, &everything, false, &docs[4], NULL)) &&
        !(status = peg__md_links(md, &everything, true, &docs[5], NULL)) &&
        !(status = peg__md_ast(md, &everything, &docs[6], NULL)) &&
        !(status = peg__md_text(md, &everything, &out, NULL)))
        status = out.status;
    for (size_t i = 0; i < 7; i++)
        peg_json_doc_free(docs[i]);
    peg__buf_free(&out);
    return status;
}

TORTURE(markdown_answers_survive_any_allocation_failure)
{
    struct peg__md *md = NULL;
    peg_status status = peg__md_new(peg__str(everything_there_is), &md, NULL);

    if (!status)
        status = ask_everything(md);
    peg__md_free(md);
    return status;
}
