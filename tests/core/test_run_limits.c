/* SPDX-License-Identifier: Apache-2.0 */

/* Bounds of a call that are not its arguments or its time: the depth of calls, a full spool. */

#include "fixture.h"
#include "pegboard/spool.h"
#include "pegboard/tool_config.h"

static unsigned n_deep;

/* Calls itself, until somebody says no; the outermost answers with what the innermost was told. */
static void call_itself(peg_call *call, const peg_json *args, void *user)
{
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("again"),
                                      .args = peg_cstr("{}")};
    peg_record *record = NULL;

    (void)args;
    (void)user;
    n_deep++;
    if (peg_call_run(peg_call_ctx(call), &request, NULL, &record, NULL)) {
        peg_call_fail(call, "out of memory");
        return;
    }
    peg_call_reply(call, peg_cstr(peg_record_is_error(record) ? peg_record_code(record)
                                                              : text_of(record).ptr));
    peg_record_unref(record);
}

TEST(a_handler_that_calls_itself_is_stopped_before_the_stack_is)
{
    struct world w;
    peg_record *record = NULL;

    n_deep = 0;
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "again", NULL, call_itself), PEG_OK);
    CHECK_INT(world_call(&w, "again", "{}", NULL, &record), PEG_OK);

    CHECK_STR(text_of(record), "E_LIMIT_CALL_DEPTH");
    CHECK_INT(n_deep, 64);
    peg_record_unref(record);
    world_close(&w);
}

static void answer(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg_cstr("more than fits"));
}

TEST(a_full_spool_fails_the_call_and_names_its_limit)
{
    struct world w;
    peg_record *record = NULL;
    peg_spool_store *spool = NULL;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(world_add_fn(&w, "say", NULL, answer), PEG_OK);
    CHECK_INT(peg_spool_memory_new(8, &spool, NULL), PEG_OK);
    CHECK_INT(world_call(&w, "say", "{}", &(peg_run_options){PEG_RUN_OPTIONS_INIT, .spool = spool},
                         &record),
              PEG_OK);

    CHECK_STR(peg__str(peg_record_code(record)), "E_SPOOL_FULL");
    CHECK_CONTAINS(peg_record_text(record), "max_bytes");
    CHECK_STR(peg__str(w.log), "tool_start tool_end limit ");
    peg_record_unref(record);
    peg_spool_store_unref(spool);
    world_close(&w);
}

/* ---- settings, which other structs hold by value ----------------------------------------------
 */

TEST(settings_keep_their_size_and_place)
{
    CHECK_INT(sizeof(peg_run_settings), 72);
    CHECK_INT(offsetof(peg_run_settings, reserved) + sizeof((peg_run_settings){0}.reserved), 72);
    CHECK_INT(offsetof(peg_run_options, settings), sizeof(size_t));
    CHECK_INT(offsetof(peg_run_options, max_result_bytes), sizeof(size_t) + 72);
    CHECK_INT(offsetof(peg_tool_config, settings) + 72, sizeof(peg_tool_config));
}

TEST(a_setting_that_this_version_does_not_have_is_refused_before_anything_happens)
{
    peg_run_options options = {PEG_RUN_OPTIONS_INIT};
    const peg_call_request request = {PEG_CALL_REQUEST_INIT, .tool = peg_cstr("none"),
                                      .args = peg_cstr("{}")};
    struct world w;
    peg_record *record = NULL;
    peg_error error;

    CHECK_INT(world_open(&w), PEG_OK);
    for (size_t i = 0; i < sizeof(options.settings.reserved) / sizeof(int64_t); i++) {
        options.settings.reserved[i] = 1;
        CHECK_INT(peg_call_run(w.ctx, &request, &options, &record, &error), PEG_EINVAL);
        CHECK_STR(peg_cstr(error.code), "E_STRUCT_SIZE");
        CHECK(!record);
        options.settings.reserved[i] = 0;
    }
    CHECK_INT(peg_call_run(w.ctx, &request, &options, &record, &error), PEG_OK);
    peg_record_unref(record);
    world_close(&w);
}
