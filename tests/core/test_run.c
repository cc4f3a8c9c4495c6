/* SPDX-License-Identifier: Apache-2.0 */

/* Running one call: what reaches the handler, what comes back, what is told on the way. */

#include "fixture.h"
#include "pegboard/media.h"
#include "pegboard/spool.h"

#define CITY                                                                                       \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},"                         \
    "\"days\":{\"type\":\"integer\",\"default\":3}},\"required\":[\"city\"]}"

static unsigned n_runs; /* of any handler; each test that counts sets it to 0 */

static void say_args(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    n_runs++;
    peg_call_reply_json(call, args);
}

static void fail_always(peg_call *call, const peg_json *args, void *user)
{
    const peg_error why = {.code = "E_DISK_FULL", .cause = "", .message = "the disk is full"};

    (void)args;
    (void)user;
    n_runs++;
    peg_call_fail_with(call, &why);
}

static void say_nothing(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    (void)user;
}

static void say_bytes(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply_bytes(call, (peg_str){"a\xff\x00\xc3z", 5});
}

static void say_twice(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    CHECK_INT(peg_call_reply(call, peg_cstr("first")), PEG_OK);
    CHECK_INT(peg_call_reply(call, peg_cstr("second")), PEG_ESTATE);
    CHECK_INT(peg_call_fail(call, "no"), PEG_ESTATE);
}

static struct world *open_with(struct world *w, const char *name, const char *schema,
                               peg_tool_fn fn)
{
    n_runs = 0;
    CHECK_INT(world_open(w), PEG_OK);
    CHECK_INT(world_add_fn(w, name, schema, fn), PEG_OK);
    return w;
}

/* ---- arguments ------------------------------------------------------------------ */

/* T13 */
TEST(run_hands_validated_arguments_with_defaults_to_the_handler)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Rome\"}", NULL, &record), PEG_OK);

    CHECK(!peg_record_is_error(record));
    CHECK_STR(text_of(record), "{\"city\":\"Rome\",\"days\":3}");
    CHECK_STR(peg_record_args_text(record), "{\"city\":\"Rome\"}");
    peg_record_unref(record);
    world_close(&w);
}

/* T15, T16, T17, T19, G83 */
TEST(run_rejects_bad_arguments_names_every_field_and_tells_nobody)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(world_call(&w, "weather", "{\"days\":\"1\",\"mood\":1}", NULL, &record), PEG_OK);

    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_code(record)), "E_INVALID_TOOL_ARGS");
    CHECK_CONTAINS(peg_record_text(record), "city");
    CHECK_CONTAINS(peg_record_text(record), "days");
    CHECK_CONTAINS(peg_record_text(record), "mood");
    CHECK_INT(n_runs, 0);
    CHECK_STR(peg__str(w.log), "");
    CHECK_INT(peg_record_attempts(record), 0);
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_refuses_arguments_with_a_member_twice)
{
    static const char *const texts[] = {"{\"city\":\"evil\",\"city\":\"Rome\"}",
                                        "{\"city\":\"evil\",\"\\u0063ity\":\"Rome\"}"};
    struct world w;

    open_with(&w, "weather", CITY, say_args);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        peg_record *record = NULL;

        CHECK_INT(world_call(&w, "weather", texts[i], NULL, &record), PEG_OK);
        CHECK_STR(peg__str(peg_record_code(record)), "E_INVALID_TOOL_ARGS");
        CHECK_STR(peg__str(peg_record_cause(record)), "E_JSON_DUPLICATE_KEY");
        CHECK_CONTAINS(peg_record_text(record), "/city comes twice");
        CHECK_CONTAINS(peg_record_text(record), "keep one of them");
        CHECK_INT(peg_json_len(peg_record_args(record)), 0);
        peg_record_unref(record);
    }
    CHECK_INT(n_runs, 0);
    world_close(&w);
}

/* T108, G84 */
TEST(run_takes_text_that_is_not_an_object_as_a_failed_call)
{
    static const char *const texts[] = {"{\"city\":", "[1,2]", "null", "\"Rome\"", "7", "{} x"};
    struct world w;

    open_with(&w, "weather", CITY, say_args);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        peg_record *record = NULL;

        CHECK_INT(world_call(&w, "weather", texts[i], NULL, &record), PEG_OK);
        CHECK_STR(peg__str(peg_record_code(record)), "E_INVALID_TOOL_ARGS");
        CHECK_CONTAINS(peg_record_text(record), texts[i]);
        CHECK_INT(peg_json_len(peg_record_args(record)), 0);
        CHECK_STR(peg_record_args_text(record), texts[i]);
        peg_record_unref(record);
    }
    CHECK_INT(n_runs, 0);
    world_close(&w);
}

TEST(run_takes_no_text_as_no_arguments)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "now", NULL, say_args);
    CHECK_INT(world_call(&w, "now", "", NULL, &record), PEG_OK);

    CHECK(!peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_checksum(record)),
              "e9a14fdf1b5879d09bafa77712943d6979cef52f24929f28035f0c3c6974a489");
    peg_record_unref(record);
    world_close(&w);
}

/* T25 */
TEST(run_digests_what_was_sent_not_what_was_filled_in)
{
    struct world w;
    peg_record *bare = NULL;
    peg_record *full = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Rome\"}", NULL, &bare), PEG_OK);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Rome\",\"days\":3}", NULL, &full), PEG_OK);

    CHECK(strcmp(peg_record_checksum(bare), peg_record_checksum(full)) != 0);
    peg_record_unref(bare);
    peg_record_unref(full);
    world_close(&w);
}

TEST(run_refuses_arguments_above_max_args_bytes_and_names_the_limit)
{
    const peg_run_options options = {PEG_RUN_OPTIONS_INIT, .max_args_bytes = 10};
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Rome\"}", &options, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_LIMIT_ARGS_BYTES");
    CHECK_CONTAINS(peg_record_text(record), "max_args_bytes");
    CHECK_STR(peg__str(w.log), "limit ");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- the tool ------------------------------------------------------------------- */

/* T109, G41, G69 */
TEST(run_answers_an_unknown_name_with_the_visible_names_in_order)
{
    const char *hidden = "secret";
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "weather", NULL, say_args);
    CHECK_INT(world_add_fn(&w, "add", NULL, say_args), PEG_OK);
    CHECK_INT(world_add_fn(&w, "secret", NULL, say_args), PEG_OK);
    CHECK_INT(peg_registry_hide(w.registry, &hidden, 1, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "wether", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NOT_FOUND");
    CHECK_STR(peg_record_text(record),
              "there is no tool named 'wether'; available tools: add, weather");
    CHECK_STR(peg_record_tool(record), "wether");
    peg_record_unref(record);
    world_close(&w);
}

/* T109 */
TEST(run_says_so_when_there_are_no_tools)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_call(&w, "x", "{}", NULL, &record), PEG_OK);

    CHECK_CONTAINS(peg_record_text(record), "no tools are available");
    peg_record_unref(record);
    world_close(&w);
}

/* T110 */
TEST(run_records_a_call_without_a_name_under_a_placeholder)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "add", NULL, say_args);
    CHECK_INT(world_call(&w, "", "{}", NULL, &record), PEG_OK);

    CHECK(peg_record_is_error(record));
    CHECK_STR(peg_record_tool(record), "(unnamed tool call)");
    CHECK_CONTAINS(peg_record_text(record), "the call names no tool");
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_bounds_a_name_that_a_model_made_up)
{
    struct world w;
    peg_record *record = NULL;
    char name[5000];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_call(&w, name, "{}", NULL, &record), PEG_OK);

    CHECK_INT(peg_record_tool(record).len, 256);
    CHECK(memcmp(peg_record_tool(record).ptr + 253, "\xE2\x80\xA6", 3) == 0);
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_without_a_registry_is_a_failed_call)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("x"),
                                      .args = peg_cstr("{}")};
    peg_record *record = NULL;
    peg_ctx *ctx = NULL;

    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    CHECK_INT(peg_call_run(ctx, &request, NULL, &record, NULL), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NO_REGISTRY");
    CHECK(peg_record_call_id(record).len > 0);
    peg_record_unref(record);
    peg_ctx_unref(ctx);
}

/* G86 */
TEST(registry_call_is_a_call_in_a_context_of_its_own)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(peg_registry_call(w.registry, "weather", "{\"city\":\"Rome\"}", &record, NULL),
              PEG_OK);

    CHECK_STR(text_of(record), "{\"city\":\"Rome\",\"days\":3}");
    CHECK_STR(peg__str(w.log), "");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- events --------------------------------------------------------------------- */

struct watch {
    struct world *w;
    bool saw_start_before;
    char start_checksum[65];
    char end_checksum[65];
    char start_args[64];
};

static struct watch watch;

static void look_at_log(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    watch.saw_start_before = strcmp(w->log, "tool_start ") == 0;
    CHECK(strcmp(peg_call_checksum(call), watch.start_checksum) == 0);
    peg_clock_manual_advance(w->clock, 5);
    peg_call_reply(call, peg_cstr("ok"));
}

static void hear_start(const peg_event *event, void *user)
{
    char *text = NULL;

    world_hear(event, user);
    if (event->kind == PEG_EVENT_TOOL_END)
        snprintf(watch.end_checksum, 65, "%.*s", PEG_ARG(event->u.tool.checksum));
    if (event->kind != PEG_EVENT_TOOL_START)
        return;
    snprintf(watch.start_checksum, 65, "%.*s", PEG_ARG(event->u.tool.checksum));
    CHECK_INT(peg_json_write(event->u.tool.args, PEG_JSON_COMPACT, &text, NULL, NULL), PEG_OK);
    snprintf(watch.start_args, sizeof(watch.start_args), "%s", text);
    peg_free(text);
}

/* T20, T23, G67 */
TEST(run_tells_the_start_before_the_handler_and_the_end_after_it)
{
    struct world w;
    peg_ctx *listed = NULL;
    peg_ctx *ctx = NULL;
    peg_record *record = NULL;
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("weather"),
                                      .args = peg_cstr("{\"city\":\"Rome\"}")};

    open_with(&w, "weather", CITY, look_at_log);
    CHECK_INT(peg_ctx_with_registry(w.timed, w.registry, &listed, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_events(listed, hear_start, &w, &ctx, NULL), PEG_OK);
    CHECK_INT(peg_call_run(ctx, &request, NULL, &record, NULL), PEG_OK);

    CHECK(watch.saw_start_before);
    CHECK_STR(peg__str(w.log), "tool_start tool_end ");
    CHECK_STR(peg__str(watch.start_args), "{\"city\":\"Rome\",\"days\":3}");
    CHECK_INT(strlen(watch.start_checksum), 64);
    CHECK(strcmp(peg_record_checksum(record), watch.start_checksum) == 0);
    CHECK(strcmp(watch.end_checksum, watch.start_checksum) == 0);
    CHECK_INT(w.last.u.tool.duration_ns, 5000000);
    CHECK(!w.last.u.tool.is_error);
    CHECK_INT(peg_record_duration_ns(record), 5000000);
    peg_record_unref(record);
    peg_ctx_unref(ctx);
    peg_ctx_unref(listed);
    world_close(&w);
}

/* ---- failures ------------------------------------------------------------------- */

/* T21, T114, G68 */
TEST(run_makes_a_failing_handler_one_failed_end_with_its_cause)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "save", NULL, fail_always);
    CHECK_INT(world_call(&w, "save", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_STR(peg__str(peg_record_cause(record)), "E_DISK_FULL");
    CHECK_STR(peg_record_text(record), "the tool 'save' failed: the disk is full");
    CHECK_STR(peg__str(w.log), "tool_start tool_end ");
    CHECK(w.last.u.tool.is_error);
    peg_record_unref(record);
    world_close(&w);
}

/* T29 */
TEST(run_does_not_retry_by_itself)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "save", NULL, fail_always);
    CHECK_INT(world_call(&w, "save", "{}", NULL, &record), PEG_OK);

    CHECK_INT(n_runs, 1);
    CHECK_INT(peg_record_attempts(record), 1);
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_fails_a_handler_that_does_not_answer)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "mute", NULL, say_nothing);
    CHECK_INT(world_call(&w, "mute", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_NO_ANSWER");
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_counts_only_the_first_answer)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "twice", NULL, say_twice);
    CHECK_INT(world_call(&w, "twice", "{}", NULL, &record), PEG_OK);

    CHECK_STR(text_of(record), "first");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- results -------------------------------------------------------------------- */

/* T22, T103, T104 */
TEST(run_keeps_bytes_as_they_are_in_a_text_artifact)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "raw", NULL, say_bytes);
    CHECK_INT(world_call(&w, "raw", "{}", NULL, &record), PEG_OK);

    CHECK_INT(peg_record_result_kind(record), PEG_RESULT_ARTIFACT);
    CHECK(peg_artifact_kind_of(peg_record_artifact(record)) == &peg_artifact_text);
    CHECK(!peg_record_is_inline(record));
    CHECK_INT(text_of(record).len, 5);
    CHECK(memcmp(text_of(record).ptr, "a\xff\x00\xc3z", 5) == 0);
    CHECK_INT(peg_artifact_byte_length(peg_record_artifact(record)), 5);
    peg_record_unref(record);
    world_close(&w);
}

/* T103 */
TEST(run_wraps_a_result_in_the_kind_of_the_tool)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "notes", .description = "notes",
                              .run = say_bytes, .artifact_kind = &peg_artifact_json};
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &def), PEG_OK);
    CHECK_INT(world_call(&w, "notes", "{}", NULL, &record), PEG_OK);

    CHECK(peg_artifact_kind_of(peg_record_artifact(record)) == &peg_artifact_json);
    peg_record_unref(record);
    world_close(&w);
}

/* G90 */
TEST(run_wraps_json_in_a_json_artifact)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Rome\"}", NULL, &record), PEG_OK);

    CHECK(peg_artifact_kind_of(peg_record_artifact(record)) == &peg_artifact_json);
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_writes_results_to_the_spool_under_the_key_of_the_record)
{
    struct world w;
    peg_record *record = NULL;
    peg_spool_store *spool = NULL;
    peg_reader *reader = NULL;

    open_with(&w, "raw", NULL, say_bytes);
    CHECK_INT(peg_spool_memory_new(0, &spool, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "raw", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .spool = spool},
                         &record),
              PEG_OK);
    CHECK_INT(peg_spool_read(spool, peg_record_key(record), &reader, NULL), PEG_OK);

    CHECK(reader != NULL);
    CHECK_INT(peg_reader_byte_length(reader), 5);
    peg_reader_unref(reader);
    peg_record_unref(record);
    peg_spool_store_unref(spool);
    world_close(&w);
}

/* T115, T157 */
TEST(run_keeps_calls_with_equal_ids_apart)
{
    struct world w;
    peg_record *first = NULL;
    peg_record *second = NULL;
    peg_spool_store *spool = NULL;

    open_with(&w, "weather", CITY, say_args);
    CHECK_INT(peg_spool_memory_new(0, &spool, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Rome\"}",
                         &(peg_run_options){PEG_RUN_OPTIONS_INIT, .spool = spool}, &first),
              PEG_OK);
    CHECK_INT(world_call(&w, "weather", "{\"city\":\"Oslo\"}",
                         &(peg_run_options){PEG_RUN_OPTIONS_INIT, .spool = spool}, &second),
              PEG_OK);

    CHECK_STR(peg_record_call_id(first), "c1");
    CHECK_STR(peg_record_call_id(second), "c1");
    CHECK_CONTAINS(text_of(first), "Rome");
    CHECK_CONTAINS(text_of(second), "Oslo");
    peg_record_unref(first);
    peg_record_unref(second);
    peg_spool_store_unref(spool);
    world_close(&w);
}

TEST(run_refuses_a_result_above_max_result_bytes_and_names_the_limit)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "raw", NULL, say_bytes);
    CHECK_INT(world_call(&w, "raw", "{}",
                         &(peg_run_options){PEG_RUN_OPTIONS_INIT, .max_result_bytes = 4}, &record),
              PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_LIMIT_RESULT_BYTES");
    CHECK_CONTAINS(peg_record_text(record), "max_result_bytes (4)");
    CHECK_STR(peg__str(w.log), "tool_start limit tool_end ");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- media and artifacts -------------------------------------------------------- */

static peg_media *picture;
static peg_artifact *prebuilt;

static void say_media(peg_call *call, const peg_json *args, void *user)
{
    peg_media *both[] = {picture, picture};

    (void)user;
    CHECK_INT(peg_call_reply_media(call, both, 0), PEG_EINVAL);
    CHECK_INT(peg_call_reply_media(call, both, peg_json_len(args) ? 2 : 1), PEG_OK);
}

static void say_artifact(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    CHECK_INT(peg_call_reply_artifact(call, prebuilt), PEG_OK);
}

static void make_picture(void)
{
    peg_reader *reader = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png",
                         .filename = "a.png"};

    CHECK_INT(peg_reader_from_bytes(peg_cstr("png"), &reader, NULL), PEG_OK);
    def.reader = reader;
    CHECK_INT(peg_media_retrieved_public(&def, &picture, NULL), PEG_OK);
    peg_reader_unref(reader);
}

/* T105 */
TEST(run_leaves_media_as_media_whatever_the_kind_of_the_tool)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,
                              .name = "draw",
                              .description = "draws",
                              .input_schema = "{\"type\":\"object\",\"additionalProperties\":true}",
                              .run = say_media,
                              .artifact_kind = &peg_artifact_json};
    struct world w;
    peg_record *one = NULL;
    peg_record *two = NULL;

    make_picture();
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &def), PEG_OK);
    CHECK_INT(world_call(&w, "draw", "{}", NULL, &one), PEG_OK);
    CHECK_INT(world_call(&w, "draw", "{\"two\":1}", NULL, &two), PEG_OK);

    CHECK_INT(peg_record_result_kind(one), PEG_RESULT_MEDIA);
    CHECK_INT(peg_record_n_media(one), 1);
    CHECK_INT(peg_record_n_media(two), 2);
    CHECK(peg_record_media(two, 1) == picture);
    CHECK(!peg_record_media(two, 2));
    peg_record_unref(one);
    peg_record_unref(two);
    peg_media_unref(picture);
    world_close(&w);
}

/* T107 */
TEST(run_passes_a_prebuilt_artifact_through_without_a_write)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "pass", .description = "passes",
                              .run = say_artifact, .artifact_kind = &peg_artifact_json};
    struct world w;
    peg_record *record = NULL;
    peg_reader *reader = NULL;
    peg_reader *stored = NULL;
    peg_spool_store *spool = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &def), PEG_OK);
    CHECK_INT(peg_spool_memory_new(0, &spool, NULL), PEG_OK);
    CHECK_INT(peg_reader_from_bytes(peg_cstr("body"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(&peg_artifact_text, reader, &prebuilt, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "pass", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .spool = spool},
                         &record),
              PEG_OK);
    CHECK_INT(peg_spool_read(spool, peg_record_key(record), &stored, NULL), PEG_OK);

    CHECK(peg_record_artifact(record) == prebuilt);
    CHECK(!stored);
    peg_record_unref(record);
    peg_artifact_unref(prebuilt);
    peg_reader_unref(reader);
    peg_spool_store_unref(spool);
    world_close(&w);
}

static peg_status add_artifact_tool(struct world *w, const char *name, peg_tool_fn fn)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = name, .description = "queries", .run = fn};
    peg_tool *tool = NULL;
    peg_status status = peg_artifact_tool_new(&def, &tool, NULL);

    if (!status)
        status = peg_registry_register(w->registry, tool, false, NULL);
    peg_tool_unref(tool);
    return status;
}

/* T106 */
TEST(run_shows_the_answer_of_an_artifact_tool_as_text)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(add_artifact_tool(&w, "query", say_bytes), PEG_OK);
    CHECK_INT(world_call(&w, "query", "{}", NULL, &record), PEG_OK);

    CHECK_INT(peg_record_result_kind(record), PEG_RESULT_TEXT);
    CHECK(peg_record_is_from_artifact_tool(record));
    CHECK(peg_record_is_inline(record));
    CHECK(!peg_record_is_error(record));
    CHECK_INT(peg_record_text(record).len, 5);
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_fails_an_artifact_tool_that_answers_with_media)
{
    struct world w;
    peg_record *record = NULL;

    make_picture();
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(add_artifact_tool(&w, "query", say_media), PEG_OK);
    CHECK_INT(world_call(&w, "query", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_OUTPUT_INVALID");
    peg_record_unref(record);
    peg_media_unref(picture);
    world_close(&w);
}

/* ---- what a handler sees -------------------------------------------------------- */

static void look_around(peg_call *call, const peg_json *args, void *user)
{
    struct world *w = user;

    (void)args;
    CHECK(peg_ctx_registry(peg_call_ctx(call)) == w->registry);
    CHECK_STR(peg_call_id(call), "c1");
    CHECK_STR(peg__str(peg_tool_name(peg_call_tool(call))), "meta");
    CHECK_INT(peg_call_meta(call, "db.size")->u.number, 7);
    CHECK(peg_call_meta(call, "db") != NULL);
    CHECK(!peg_call_meta(call, "db.none"));
    CHECK(!peg_call_meta(call, "db.size.deeper"));
    CHECK(!peg_call_meta(call, ""));
    CHECK(!peg_call_should_stop(call));
    peg_call_replyf(call, "%s %d", "ok", 1);
}

/* T12, T27 */
TEST(handler_sees_its_context_its_tool_and_the_meta_by_path)
{
    struct world w;
    peg_record *record = NULL;
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,  .name = "meta", .description = "looks",
                              .run = look_around, .user = &w,     .meta = "{\"db\":{\"size\":7}}"};

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &def), PEG_OK);
    CHECK_INT(world_call(&w, "meta", "{}", NULL, &record), PEG_OK);

    CHECK_STR(text_of(record), "ok 1");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- server-data ---------------------------------------------------------------- */

static void add_server_data(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_add_server_data(call, "usage", "billing", args);
    peg_call_add_server_data(call, peg_json_get(args, "bad") ? "" : "trace", "ops", args);
    peg_call_reply(call, peg_cstr("done"));
}

#define OPEN "{\"type\":\"object\",\"additionalProperties\":true}"

TEST(run_records_server_data_beside_the_result)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "bill", OPEN, add_server_data);
    CHECK_INT(world_call(&w, "bill", "{\"n\":1}", NULL, &record), PEG_OK);

    CHECK_STR(text_of(record), "done");
    CHECK_INT(peg_json_len(peg_record_server_data(record)), 2);
    CHECK_STR(peg_json_str(peg_json_get(peg_json_at(peg_record_server_data(record), 0), "kind")),
              "usage");
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_voids_a_result_with_malformed_server_data)
{
    struct world w;
    peg_record *record = NULL;

    open_with(&w, "bill", OPEN, add_server_data);
    CHECK_INT(world_call(&w, "bill", "{\"bad\":1}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_OUTPUT_INVALID");
    CHECK(!peg_record_server_data(record));
    CHECK_CONTAINS(peg_record_text(record), "kind is empty");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- output schema -------------------------------------------------------------- */

static peg_status call_with_output(struct world *w, const char *args, peg_record **ret_record)
{
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = "weather",
        .description = "tells",
        .input_schema = OPEN,
        .output_schema = "{\"type\":\"object\",\"required\":[\"c\"],\"properties\":{\"c\":{"
                         "\"type\":\"number\"}}}",
        .run = say_args};
    peg_status status = world_add(w, &def);

    return status ? status : world_call(w, "weather", args, NULL, ret_record);
}

TEST(run_lets_a_result_pass_that_fits_the_output_schema)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(call_with_output(&w, "{\"c\":21.5}", &record), PEG_OK);

    CHECK(!peg_record_is_error(record));
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_fails_a_result_that_violates_the_output_schema)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(call_with_output(&w, "{\"c\":\"warm\"}", &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_OUTPUT_INVALID");
    CHECK_CONTAINS(peg_record_text(record), "c");
    CHECK_STR(peg__str(w.log), "tool_start tool_end ");
    CHECK(w.last.u.tool.is_error);
    peg_record_unref(record);
    world_close(&w);
}

static void say_a_member_twice(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("{\"a\":{\"k\":1,\"\\u006b\":2}}"));
}

TEST(run_fails_a_result_with_a_member_twice_where_there_is_an_output_schema)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "weather", .description = "tells",
                              .output_schema = "{\"type\":\"object\"}", .run = say_a_member_twice};
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &def), PEG_OK);
    CHECK_INT(world_call(&w, "weather", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_OUTPUT_INVALID");
    CHECK_STR(peg__str(peg_record_cause(record)), "E_JSON_DUPLICATE_KEY");
    CHECK_CONTAINS(peg_record_text(record), "/a/k comes twice");
    peg_record_unref(record);
    world_close(&w);
}

TEST(run_fails_text_that_is_not_json_where_there_is_an_output_schema)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "weather", .description = "tells",
                              .output_schema = "{\"type\":\"object\"}", .run = say_bytes};
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &def), PEG_OK);
    CHECK_INT(world_call(&w, "weather", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_OUTPUT_INVALID");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- trust ---------------------------------------------------------------------- */

TEST(run_records_trust_as_it_was_when_the_call_ran)
{
    const peg_tool_def trusted = {PEG_TOOL_DEF_INIT, .name = "t", .description = "t",
                                  .run = say_bytes, .trusted = true};
    const peg_tool_def plain = {PEG_TOOL_DEF_INIT, .name = "t", .description = "t",
                                .run = say_bytes};
    struct world w;
    peg_record *before = NULL;
    peg_record *after = NULL;
    peg_tool *tool = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &plain), PEG_OK);
    CHECK_INT(world_call(&w, "t", "{}", NULL, &before), PEG_OK);
    CHECK_INT(peg_tool_new(&trusted, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(w.registry, tool, true, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "t", "{}", NULL, &after), PEG_OK);

    CHECK(!peg_record_is_trusted(before));
    CHECK(peg_record_is_trusted(after));
    peg_tool_unref(tool);
    peg_record_unref(before);
    peg_record_unref(after);
    world_close(&w);
}

/* ---- out of memory -------------------------------------------------------------- */

static peg_status run_once(const char *tool, const char *args)
{
    struct world w;
    peg_record *record = NULL;
    const peg_tool_def def = {PEG_TOOL_DEF_INIT,
                              .name = "weather",
                              .description = "tells",
                              .input_schema = CITY,
                              .output_schema = "{\"type\":\"object\"}",
                              .run = say_args};
    peg_status status = world_open(&w);

    if (!status)
        status = world_add(&w, &def);
    if (!status)
        status = world_add_fn(&w, "bill", OPEN, add_server_data);
    if (!status)
        status = world_add_fn(&w, "save", NULL, fail_always);
    if (!status)
        status = world_call(&w, tool, args, NULL, &record);
    peg_record_unref(record);
    world_close(&w);
    return status;
}

TORTURE(run_survives_any_allocation_failure_in_a_good_call)
{
    return run_once("weather", "{\"city\":\"Rome\"}");
}

TORTURE(run_survives_any_allocation_failure_with_bad_arguments)
{
    return run_once("weather", "{\"days\":\"x\"}");
}

TORTURE(registry_call_survives_any_allocation_failure)
{
    struct world w;
    peg_record *record = NULL;
    peg_status status = world_open(&w);

    if (!status)
        status = world_add_fn(&w, "weather", CITY, say_args);
    if (!status)
        status = peg_registry_call(w.registry, "weather", "{\"city\":\"Rome\"}", &record, NULL);
    peg_record_unref(record);
    world_close(&w);
    return status;
}

TORTURE(run_survives_any_allocation_failure_with_an_unknown_tool)
{
    return run_once("nope", "{}");
}

TORTURE(run_survives_any_allocation_failure_with_server_data)
{
    return run_once("bill", "{\"x\":1}");
}

TORTURE(run_survives_any_allocation_failure_in_a_failing_handler)
{
    return run_once("save", "{}");
}
