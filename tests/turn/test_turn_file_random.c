/* SPDX-License-Identifier: Apache-2.0 */

/* Every kind of block through a file and back, at random. */

#include "file_world.h"

static uint32_t seed;

static uint32_t any(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static bool maybe(void)
{
    return any(2);
}

/* UTF-8 with what formats stumble over. Lives until 16 more were asked for. */
static peg_str random_text(void)
{
    static const char *const pieces[] = {"a",
                                         "yes",
                                         "\n",
                                         " ",
                                         "\"",
                                         "\\",
                                         "\xC3\xA9",
                                         "null",
                                         "~",
                                         "\t",
                                         "#",
                                         ": ",
                                         "\xE2\x80\xA8",
                                         "1e3",
                                         "-",
                                         "\x01",
                                         "{}",
                                         "[",
                                         "'",
                                         "\xF0\x9F\x98\x80",
                                         "\r",
                                         "|",
                                         "\x7F",
                                         "0x",
                                         "%",
                                         "&x",
                                         "*"};
    static char pool[16][128];
    static unsigned next;
    char *text = pool[next++ % 16];

    *text = '\0';
    for (uint32_t n = any(7) + 1; n > 0; n--)
        strcat(text, pieces[any(sizeof(pieces) / sizeof(pieces[0]))]);
    return peg_cstr(text);
}

static void random_value(peg_json_builder *b, unsigned depth)
{
    switch (any(depth ? 7 : 5)) {
    case 0:
        peg_json_add_null(b);
        break;
    case 1:
        peg_json_add_bool(b, maybe());
        break;
    case 2:
        peg_json_add_integer(b, (int64_t)any(1u << 20) * (maybe() ? -1 : 4294967296));
        break;
    case 3:
        peg_json_add_number(b, peg_cstr(maybe() ? "1e400" : "0.10"));
        break;
    case 4:
        peg_json_add_string(b, random_text());
        break;
    case 5:
        peg_json_open_array(b);
        for (uint32_t n = any(4); n > 0; n--)
            random_value(b, depth - 1);
        peg_json_close(b);
        break;
    default:
        peg_json_open_object(b);
        for (uint32_t n = any(4); n > 0; n--) {
            char name[160];
            const peg_str text = random_text();

            snprintf(name, sizeof(name), "%u%.*s", n * 7 % 5, PEG_ARG(text));
            peg_json_add_key(b, peg_cstr(name));
            random_value(b, depth - 1);
        }
        peg_json_close(b);
    }
}

static peg_json_doc *random_object(void)
{
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_error error;

    peg_json_open_object(b);
    for (uint32_t n = any(4) + 1; n > 0; n--) {
        char name[32];

        snprintf(name, sizeof(name), "%c_member%u", 'a' + (int)any(26), n);
        peg_json_add_key(b, peg_cstr(name));
        random_value(b, 3);
    }
    peg_json_close(b);
    if (peg_json_builder_finish(b, &doc, &error))
        T_FAIL("%s", error.message);
    return doc;
}

static peg_media *random_media(void)
{
    static const char *const bytes[] = {"", "plain", "\xFF\xD8\xFF", "l1\nl2\n"};
    peg_media_note notes[2] = {{"text:caption", "a caption", PEG_TIER_FIRST_PARTY, true},
                               {"mine", "", PEG_TIER_THIRD_PARTY_PUBLIC, false}};
    peg_media_def def = {PEG_MEDIA_DEF_INIT,
                         .kind = (peg_media_kind)(any(4) + 1),
                         .mime_type = "image/png",
                         .filename = random_text().ptr,
                         .uri = maybe() ? "https://e.x/a" : NULL,
                         .file_id = maybe() ? "f" : NULL,
                         .detail = maybe() ? "low" : NULL,
                         .tier = (peg_trust_tier)(any(3) + 1),
                         .hazard = (peg_media_hazard)(any(3) + 1),
                         .source = maybe() ? random_text().ptr : NULL,
                         .notes = notes,
                         .n_notes = any(3)};
    peg_media *media = NULL;
    peg_error error;

    if (maybe() || (!def.uri && !def.file_id))
        CHECK_INT(peg_reader_from_bytes(peg_cstr(bytes[any(4)]), &def.reader, NULL), PEG_OK);
    CHECK_STATUS(peg_media_new(&def, &media, &error), PEG_OK, error);
    peg_reader_unref(def.reader);
    return media;
}

static peg_artifact *random_artifact(void)
{
    static const char *const bytes[] = {"", "some text", "\xFF\xFE", "{\"a\":1}"};
    static const peg_artifact_kind *const kinds[] = {&peg_artifact_text, &peg_artifact_json,
                                                     &peg_artifact_markdown};

    return artifact_of(peg_cstr(bytes[any(4)]), kinds[any(3)]);
}

static peg_str random_args(void)
{
    static const char *const texts[] = {"",
                                        "{}",
                                        "{\"b\":1,\"a\":[{\"d\":1,\"c\":2}]}",
                                        "{bad",
                                        "\xFF broken",
                                        "{\"a\":1,\"a\":2}",
                                        " { \"x\" : 1.0 } ",
                                        "[1]",
                                        "\"text\""};

    return peg_cstr(texts[any(sizeof(texts) / sizeof(texts[0]))]);
}

static bool is_object(peg_str text)
{
    peg_json_doc *doc = NULL;
    bool is;

    if (peg_json_parse(text, NULL, &doc, NULL))
        return false;
    is = peg_json_root(doc)->kind == PEG_JSON_OBJECT;
    peg_json_doc_free(doc);
    return is;
}

/* Of a call in the turn, or of none. */
static peg_record *random_record(const peg_turn *turn)
{
    const size_t at = peg_turn_next(turn, PEG_BLOCKS(PEG_BLOCK_CALL), any(6));
    const peg_block *call = maybe() ? peg_turn_at(turn, at) : NULL;
    peg_json_doc *data = random_object();
    peg_record_def def = {PEG_RECORD_DEF_INIT,
                          .call_id = call ? peg_block_call_id(call) : peg_cstr("c1"),
                          .key = call ? peg_block_id(call) : peg_cstr(maybe() ? "c2" : ""),
                          .tool = call && maybe() ? peg_block_tool(call) : peg_cstr("a_tool"),
                          .args = call && maybe() ? peg_block_args(call) : random_args(),
                          .handle = maybe() ? random_text() : (peg_str){NULL, 0},
                          .is_error = maybe(),
                          .code = maybe() ? "E_MINE" : NULL,
                          .cause = maybe() ? "E_BEHIND" : NULL,
                          .is_trusted = maybe(),
                          .is_inline = maybe(),
                          .is_from_artifact_tool = maybe(),
                          .created_ms = any(3),
                          .completed_ms = any(3),
                          .duration_ns = any(3),
                          .attempts = any(3),
                          .replay_compatibility = maybe() ? "gemini" : NULL};
    peg_media *media[2] = {NULL, NULL};
    peg_record *record = NULL;
    peg_error error;

    if (!def.tool.len)
        def.tool = peg_cstr("a_tool");
    if (!def.is_error && !is_object(def.args))
        def.args = peg_cstr("{}");
    if (def.replay_compatibility && maybe())
        def.payload = "{\"b\":1,\"a\":[2]}";
    switch (any(4)) {
    case 0:
        def.artifact = random_artifact();
        break;
    case 1:
        media[0] = random_media();
        media[1] = random_media();
        def.media = media;
        def.n_media = any(2) + 1;
        break;
    default:
        def.text = maybe() ? random_text() : peg_cstr(maybe() ? "" : "not \xFF utf8");
    }
    CHECK_STATUS(peg_record_new(&def, &record, &error), PEG_OK, error);
    peg_artifact_unref(def.artifact);
    peg_media_unref(media[0]);
    peg_media_unref(media[1]);
    peg_json_doc_free(data);
    return record;
}

static void add_random_block(peg_turn *turn, unsigned i)
{
    char id[16];
    char call_id[8];
    peg_json_doc *payload = maybe() ? random_object() : NULL;
    peg_media *media[1] = {NULL};
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = (peg_block_kind)any(7),
                         .created_ms = maybe() ? 1 : 1700000000000};
    peg_block *block = NULL;
    peg_error error;
    peg_status status;

    snprintf(id, sizeof(id), "block%u", i);
    def.id = peg_cstr(id);
    snprintf(call_id, sizeof(call_id), "c%u", any(3));
    if (payload)
        def.payload = peg_json_root(payload);
    switch (def.kind) {
    case PEG_BLOCK_CALL:
        def.call_id = peg_cstr(call_id);
        def.tool = maybe() ? random_text() : peg_cstr(maybe() ? "" : "a_tool");
        def.args = random_args();
        break;
    case PEG_BLOCK_RESULT:
        def.record = random_record(turn);
        break;
    case PEG_BLOCK_OTHER:
        def.type = maybe() ? random_text() : peg_cstr("other");
        def.tier = (peg_trust_tier)(any(3) + 1);
        if (maybe())
            def.artifact = random_artifact();
        __attribute__((fallthrough));
    case PEG_BLOCK_USER:
    case PEG_BLOCK_ASSISTANT:
        if (maybe())
            media[0] = random_media();
        def.media = media;
        def.n_media = media[0] != NULL;
        __attribute__((fallthrough));
    default:
        def.text = random_text();
    }
    status = peg_block_new(&def, &block, &error);
    CHECK_STATUS(status, PEG_OK, error);
    status = peg_turn_add(turn, block, &error);
    if (status != PEG_EEXISTS) /* a handle of another block */
        CHECK_STATUS(status, PEG_OK, error);
    peg_block_unref(block);
    peg_record_unref(def.record);
    peg_artifact_unref(def.artifact);
    peg_media_unref(media[0]);
    peg_json_doc_free(payload);
}

static peg_turn *random_turn(void)
{
    peg_turn *turn = NULL;
    const unsigned n = any(12);

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    for (unsigned i = 0; i < n; i++)
        add_random_block(turn, i);
    return turn;
}

static void check_same_block(const peg_block *a, const peg_block *b)
{
    CHECK_INT(peg_block_kind_of(a), peg_block_kind_of(b));
    CHECK(peg__str_eq(peg_block_id(a), peg_block_id(b)));
    CHECK(peg__str_eq(peg_block_type(a), peg_block_type(b)));
    CHECK(peg__str_eq(peg_block_text(a), peg_block_text(b)));
    CHECK(peg__str_eq(peg_block_call_id(a), peg_block_call_id(b)));
    CHECK(peg__str_eq(peg_block_tool(a), peg_block_tool(b)));
    CHECK_INT(peg_block_tier(a), peg_block_tier(b));
    CHECK_INT(peg_block_created_ms(a), peg_block_created_ms(b));
    CHECK_INT(peg_block_n_media(a), peg_block_n_media(b));
    CHECK_INT(!peg_block_artifact(a), !peg_block_artifact(b));
    for (size_t i = 0; i < peg_block_n_media(a); i++)
        CHECK(strcmp(peg_media_id(peg_block_media(a, i)), peg_media_id(peg_block_media(b, i))) ==
              0);
    if (peg_block_artifact(a)) {
        peg_str left;
        peg_str right;

        CHECK_INT(peg_artifact_bytes(peg_block_artifact(a), &left, NULL), PEG_OK);
        CHECK_INT(peg_artifact_bytes(peg_block_artifact(b), &right, NULL), PEG_OK);
        CHECK(peg__str_eq(left, right));
        CHECK(peg_artifact_kind_of(peg_block_artifact(a)) ==
              peg_artifact_kind_of(peg_block_artifact(b)));
    }
}

static void check_same_record(const peg_record *a, const peg_record *b)
{
    CHECK(peg__str_eq(peg_record_key(a), peg_record_key(b)));
    CHECK(peg__str_eq(peg_record_handle(a), peg_record_handle(b)));
    CHECK(peg__str_eq(peg_record_tool(a), peg_record_tool(b)));
    CHECK(peg__str_eq(peg_record_text(a), peg_record_text(b)));
    CHECK(peg_json_equal(peg_record_args(a), peg_record_args(b)));
    CHECK(strcmp(peg_record_checksum(a), peg_record_checksum(b)) == 0);
    CHECK(strcmp(peg_record_nonce(a), peg_record_nonce(b)) == 0);
    CHECK(strcmp(peg_record_code(a), peg_record_code(b)) == 0);
    CHECK(strcmp(peg_record_cause(a), peg_record_cause(b)) == 0);
    CHECK(strcmp(peg_record_replay_compatibility(a), peg_record_replay_compatibility(b)) == 0);
    CHECK_INT(!peg_record_payload(a), !peg_record_payload(b));
    CHECK_INT(peg_record_is_error(a), peg_record_is_error(b));
    CHECK_INT(peg_record_is_trusted(a), peg_record_is_trusted(b));
    CHECK_INT(peg_record_is_inline(a), peg_record_is_inline(b));
    CHECK_INT(peg_record_is_from_artifact_tool(a), peg_record_is_from_artifact_tool(b));
    CHECK_INT(peg_record_attempts(a), peg_record_attempts(b));
    CHECK_INT(peg_record_created_ms(a), peg_record_created_ms(b));
    CHECK_INT(peg_record_completed_ms(a), peg_record_completed_ms(b));
    CHECK_INT(peg_record_duration_ns(a), peg_record_duration_ns(b));
}

/* G30 */
TEST(any_turn_comes_back_from_either_format_as_it_was)
{
    for (seed = 1; seed < 2000000000u; seed += 2000003 * t_spare()) {
        const uint32_t start = seed;
        peg_turn *turn = random_turn();

        for (int format = PEG_FORMAT_JSON; format <= PEG_FORMAT_YAML; format++) {
            char *first = must_write(turn, (peg_format)format);
            peg_turn *again = must_read(first);
            char *second = must_write(again, (peg_format)format);

            if (strcmp(first, second) != 0)
                T_FAIL("seed %u:\n%s\n%s", start, first, second);
            CHECK_INT(peg_turn_len(again), peg_turn_len(turn));
            for (size_t i = 0; i < peg_turn_len(turn); i++) {
                check_same_block(peg_turn_at(turn, i), peg_turn_at(again, i));
                if (record_at(turn, i))
                    check_same_record(record_at(turn, i), record_at(again, i));
            }
            peg_free(second);
            peg_turn_free(again);
            peg_free(first);
        }
        peg_turn_free(turn);
        seed = start;
    }
}
