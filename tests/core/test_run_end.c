/* SPDX-License-Identifier: Apache-2.0 */

/* How a call ends when something goes wrong on the way: what is told, trusted and kept then. */

#include "fixture.h"

#define OPEN "{\"type\":\"object\",\"additionalProperties\":true}"

/* ---- fixture -------------------------------------------------------------------- */

static void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("ok"));
}

/* Starts and ends of handlers. */
struct tally {
    unsigned n_started;
    unsigned n_ended;
    bool was_error; /* the last end */
};

static void count(const peg_event *event, void *user)
{
    struct tally *tally = user;

    tally->n_started += event->kind == PEG_EVENT_TOOL_START;
    tally->n_ended += event->kind == PEG_EVENT_TOOL_END;
    if (event->kind == PEG_EVENT_TOOL_END)
        tally->was_error = event->u.tool.is_error;
}

/* ---- events --------------------------------------------------------------------- */

/* An artifact tool, because keeping its answer needs no memory after the end was told. */
TEST(a_start_has_its_end_and_a_call_that_runs_out_of_memory_has_a_failed_one)
{
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "answer", .description = "answers",
                              .run = answer};
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .call_id = peg_cstr("c"),
                                      .tool = peg_cstr("answer")};
    struct world w;
    struct tally tally;
    peg_tool *tool = NULL;
    peg_ctx *ctx = NULL;
    peg_status status = PEG_ENOMEM;
    unsigned n_late = 0;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(peg_artifact_tool_new(&def, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(w.registry, tool, false, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_events(w.ctx, count, &tally, &ctx, NULL), PEG_OK);

    for (unsigned nth = 1; status != PEG_OK; nth++) {
        peg_record *record = NULL;

        tally = (struct tally){0};
        peg__mem_fail_at(nth);
        status = peg_call_run(ctx, &request, NULL, &record, NULL);
        peg__mem_fail_at(0);
        peg_record_unref(record);

        CHECK_INT(tally.n_ended, tally.n_started);
        CHECK(!tally.n_ended || tally.was_error == (status != PEG_OK));
        n_late += status != PEG_OK && tally.n_started > 0;
    }
    CHECK(n_late >= 2); /* the context of the call, the answer */
    peg_tool_unref(tool);
    peg_ctx_unref(ctx);
    world_close(&w);
}

/* ---- trust ---------------------------------------------------------------------- */

static bool refuse(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "not today");
    return false;
}

/* What a model was talked into sending comes back in the sentence. */
TEST(what_is_said_of_a_call_that_never_ran_is_not_trusted)
{
    const peg_run_hooks hooks = {.is_allowed = refuse};
    const peg_run_options options = {PEG_RUN_OPTIONS_INIT, .hooks = &hooks};
    struct world w;
    peg_record *invalid = NULL;
    peg_record *refused = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(
        world_add(&w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "pick", .description = "picks",
                                      .input_schema = "{\"type\":\"object\",\"properties\":{"
                                                      "\"color\":{\"enum\":[\"red\"]}}}",
                                      .run = answer, .trusted = true}),
        PEG_OK);
    CHECK_INT(world_call(&w, "pick", "{\"color\":\"obey me\"}", NULL, &invalid), PEG_OK);
    CHECK_INT(world_call(&w, "pick", "{}", &options, &refused), PEG_OK);

    CHECK_CONTAINS(peg_record_text(invalid), "obey me");
    CHECK(!peg_record_is_trusted(invalid));
    CHECK(!peg_record_is_trusted(refused));
    peg_record_unref(invalid);
    peg_record_unref(refused);
    world_close(&w);
}

static void fail_itself(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_fail(call, "the disk is full");
}

TEST(what_a_trusted_tool_says_of_its_own_failure_is_trusted)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add(&w, &(peg_tool_def){PEG_TOOL_DEF_INIT, .name = "save", .description = "s",
                                            .run = fail_itself, .trusted = true}),
              PEG_OK);
    CHECK_INT(world_call(&w, "save", "{}", NULL, &record), PEG_OK);

    CHECK(peg_record_is_trusted(record));
    peg_record_unref(record);
    world_close(&w);
}

/* ---- words ---------------------------------------------------------------------- */

static void fail_at_length(peg_call *call, const peg_json *args, void *user)
{
    char words[40000];

    (void)args;
    (void)user;
    memset(words, 'x', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    memcpy(words, "no such host", strlen("no such host"));
    CHECK_INT(peg_call_fail(call, "%s", words), PEG_OK);
}

TEST(a_failure_of_too_many_words_keeps_the_first_of_them)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "talk", NULL, fail_at_length), PEG_OK);
    CHECK_INT(world_call(&w, "talk", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_CONTAINS(peg_record_text(record), "the tool 'talk' failed: no such hostxxx");
    CHECK(peg_record_text(record).len > 16000);
    CHECK(peg_record_text(record).len < 17000);
    peg_record_unref(record);
    world_close(&w);
}

/* ---- server-data ---------------------------------------------------------------- */

static void give_args(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_add_server_data(call, "k", "a", args);
    peg_call_reply(call, peg_cstr("done"));
}

/* The code of a call whose server-data is a string that makes it n bytes in all. */
static void check_code_of(struct world *w, size_t n, const char *code)
{
    const size_t around = strlen("[{\"kind\":\"k\",\"audience\":\"a\",\"data\":{\"s\":\"\"}}");
    const size_t len = n - around;
    char *args = malloc(len + 16);
    peg_record *record = NULL;
    peg_status status;

    memcpy(args, "{\"s\":\"", 6);
    memset(args + 6, 'x', len);
    memcpy(args + 6 + len, "\"}", 3);
    status = world_call(w, "give", args, NULL, &record);
    free(args);

    CHECK_INT(status, PEG_OK);
    CHECK_STR(peg__str(peg_record_code(record)), code);
    peg_record_unref(record);
}

TEST(server_data_may_be_as_large_as_its_limit_and_no_larger)
{
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "give", OPEN, give_args), PEG_OK);

    check_code_of(&w, (1 << 20) - 1, "");
    check_code_of(&w, 1 << 20, "");
    check_code_of(&w, (1 << 20) + 1, "E_TOOL_OUTPUT_INVALID");
    world_close(&w);
}

TEST(server_data_may_be_as_deep_as_arguments)
{
    enum { DEPTH = 255 }; /* and the object around it */
    struct world w;
    peg_record *record = NULL;
    char args[2 * DEPTH + 8] = "{\"a\":";

    memset(args + 5, '[', DEPTH);
    memset(args + 5 + DEPTH, ']', DEPTH);
    args[5 + 2 * DEPTH] = '}';
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "give", OPEN, give_args), PEG_OK);
    CHECK_INT(world_call(&w, "give", args, NULL, &record), PEG_OK);

    CHECK_STR(text_of(record), "done");
    CHECK_INT(peg_json_len(peg_record_server_data(record)), 1);
    peg_record_unref(record);
    world_close(&w);
}

static void give_depths(peg_call *call, const peg_json *args, void *user)
{
    peg_json_builder *builder = peg_json_builder_new();
    peg_json_doc *deep = NULL;

    (void)args;
    (void)user;
    for (int i = 0; i < 300; i++)
        peg_json_open_array(builder);
    for (int i = 0; i < 300; i++)
        peg_json_close(builder);
    CHECK_INT(peg_json_builder_finish(builder, &deep, NULL), PEG_OK);
    peg_call_add_server_data(call, "k", "a", peg_json_root(deep));
    peg_json_doc_free(deep);
    peg_call_reply(call, peg_cstr("done"));
}

TEST(server_data_that_is_too_deep_voids_the_result)
{
    struct world w;
    peg_record *record = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "give", NULL, give_depths), PEG_OK);
    CHECK_INT(world_call(&w, "give", "{}", NULL, &record), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_OUTPUT_INVALID");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- requests ------------------------------------------------------------------- */

TEST(an_id_that_is_too_long_is_refused_before_anything_happens)
{
    static char many[2000];
    static const struct {
        const char *where;
        peg_call_request request;
    } cases[] = {
        {"/key", {PEG_CALL_REQUEST_INIT, .key = {many, 257}}},
        {"/call_id", {PEG_CALL_REQUEST_INIT, .call_id = {many, 1025}}},
        {"/handle", {PEG_CALL_REQUEST_INIT, .handle = {many, 1089}}},
    };
    struct world w;

    memset(many, 'x', sizeof(many));
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "answer", NULL, answer), PEG_OK);

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        peg_call_request request = cases[i].request;
        peg_record *record = NULL;
        peg_error error;

        request.tool = peg_cstr("answer");
        CHECK_INT(peg_call_run(w.ctx, &request, NULL, &record, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
        CHECK_STR(peg__str(error.where), cases[i].where);
        CHECK(!record);
    }
    CHECK_STR(peg__str(w.log), "");
    world_close(&w);
}
