/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input: a packed ContentList, as a provider may send it for a result.
 *
 * Properties: what is refused has words for its author; what is taken has parts inside of the
 * message, becomes one JSON value for callers that take no content, and results of MCP that are
 * JSON; parts that are written again are the same parts.
 */

#include "base/limits.h"
#include "fuzz.h"
#include "gateway/mcp/internal.h"
#include "wire/content.h"

static void check_inside(peg_str part, peg_str whole)
{
    REQUIRE(!part.len || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len),
            "a part of %zu bytes", part.len);
}

static size_t take_notes(const struct wire_content *content, struct wire_note *notes, size_t max)
{
    peg_str rest = content->media;
    size_t n = 0;

    while (n < max && wire_content_next_note(&rest, &notes[n])) {
        check_inside(notes[n].name, content->media);
        check_inside(notes[n].text, content->media);
        n++;
    }
    return n;
}

static void write_again(struct peg__buf *list, const struct wire_content *content)
{
    enum { MAX_NOTES = 64 };
    struct wire_note notes[MAX_NOTES];

    if (content->kind == WIRE_MEDIA)
        wire_content_add_media(list, content->words, notes, take_notes(content, notes, MAX_NOTES),
                               content->bytes);
    else
        wire_content_add(list, content->kind, content->bytes);
}

static bool is_same(const struct wire_content *a, const struct wire_content *b)
{
    for (size_t i = 0; a->kind == WIRE_MEDIA && i < WIRE_MEDIA_WORDS; i++) {
        if (!peg__str_eq(a->words[i], b->words[i]))
            return false;
    }
    return a->kind == b->kind && peg__str_eq(a->bytes, b->bytes);
}

static void check_parts(peg_str message)
{
    struct peg__buf list = PEG__BUF(1 << 24);
    struct wire_content content;
    struct wire_content again;
    peg_str rest = message;
    peg_str written;

    while (wire_content_next(&rest, &content)) {
        check_inside(content.bytes, message);
        check_inside(content.media, message);
        for (size_t i = 0; content.kind == WIRE_MEDIA && i < WIRE_MEDIA_WORDS; i++)
            check_inside(content.words[i], message);
        peg__buf_clear(&list);
        write_again(&list, &content);
        REQUIRE(list.status == PEG_OK, "there is memory");
        written = peg__buf_view(&list);
        REQUIRE(wire_content_next(&written, &again), "a part of ours is one");
        REQUIRE(is_same(&content, &again), "it is the same part");
    }
    peg__buf_free(&list);
}

static peg_json_doc *parse(const struct peg__buf *buf)
{
    const peg_str text = peg__buf_view(buf);

    return fuzz_parse_own(text.ptr, text.len);
}

static void check_json(peg_str message)
{
    struct peg__buf buf = PEG__BUF(1 << 24);

    wire_content_write_json(message, &buf);
    REQUIRE(buf.status == PEG_OK, "there is memory");
    if (wire_content_is_there(message))
        peg_json_doc_free(parse(&buf));
    peg__buf_clear(&buf);
    REQUIRE(wire_content_flatten(message, &buf) == PEG_OK, "there is memory");
    REQUIRE(!wire_content_is_there(peg__buf_view(&buf)), "no content is left");
    peg__buf_free(&buf);
}

static void check_members(const struct peg__buf *members)
{
    struct peg__buf text = PEG__BUF(1 << 25);

    peg__buf_putc(&text, '{');
    peg__buf_str(&text, peg__buf_view(members));
    peg__buf_putc(&text, '}');
    peg_json_doc_free(parse(&text));
    peg__buf_free(&text);
}

static void check_mcp(peg_str message, bool has_schema)
{
    const struct calls_outcome outcome = {.error = CALLS_OK, .response = message};
    struct mcp_result result = {0};

    gw_mcp_put_outcome(&result, &outcome, has_schema);
    if (!result.code) {
        check_members(&result.members);
        check_members(&result.meta);
    }
    if (result.structured.len)
        peg_json_doc_free(parse(&result.structured));
    mcp_result_free(&result);
}

/* As the gateway reads them: a part that says that it is JSON is some. */
static bool has_good_json(peg_str message)
{
    struct wire_content content;
    bool is_good = true;

    while (is_good && wire_content_next(&message, &content)) {
        peg_json_doc *doc = NULL;

        is_good =
            content.kind != WIRE_JSON || peg_json_parse(content.bytes, NULL, &doc, NULL) == PEG_OK;
        peg_json_doc_free(doc);
    }
    return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const peg_str message = fuzz_input(data, size);
    peg_error error = {0};

    if (wire_content_check(message, &error)) {
        REQUIRE(error.message[0], "a refusal says why");
        return 0;
    }
    if (!wire_content_is_list(message) || !has_good_json(message))
        return 0;
    check_parts(message);
    check_json(message);
    check_mcp(message, false);
    check_mcp(message, true);
    return 0;
}
