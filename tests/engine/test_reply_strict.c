/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of the nulls of strict mode, and of a model that declines. */

#include "../t.h"
#include "base/text/str.h"
#include "engine/reply.h"
#include "pegboard/cleanup.h"

#define DEFINITIONS                                                                                \
    "[{\"name\":\"find\",\"parameters\":{\"type\":\"object\",\"required\":[\"q\"],\"properties\":" \
    "{"                                                                                            \
    "\"q\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\"},"                                \
    "\"tag\":{\"type\":[\"string\",\"null\"]}}}}]"

static peg_status read_call(peg_turn *turn, const peg_json *strict, const char *tool,
                            const char *args)
{
    const struct peg__reply_def def = {
        .turn = turn, .vendor = PEG_VENDOR_OPENAI_CHAT, .model = "m", .strict = strict};
    struct peg__reply reply;
    struct peg__part *part;
    peg_status status;

    peg__reply_init(&reply, &def);
    part = peg__reply_part(&reply, 0, PEG__PART_CALL);
    peg__part_set_call_id(&reply, part, peg_cstr("c1"));
    peg__part_add_name(&reply, part, peg_cstr(tool));
    peg__part_add(&reply, part, peg_cstr(args));
    status = peg__reply_finish(&reply, true, NULL);
    peg__reply_free(&reply);
    return status;
}

static void check_args(bool is_strict, const char *tool, const char *args, const char *expected)
{
    PEG_CLEANUP(peg_turn_freep) peg_turn *turn = NULL;
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *definitions = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    CHECK_INT(peg_json_parse(peg_cstr(DEFINITIONS), NULL, &definitions, NULL), PEG_OK);
    CHECK_INT(read_call(turn, is_strict ? peg_json_root(definitions) : NULL, tool, args), PEG_OK);
    CHECK_STR(peg_block_args(peg_turn_at(turn, 0)), expected);
}

TEST(nulls_that_strict_mode_made_are_left_out_of_the_arguments)
{
    check_args(true, "find", "{\"q\":\"a\",\"limit\":null,\"tag\":null}",
               "{\"q\":\"a\",\"tag\":null}");
    check_args(true, "find", "{\"q\":\"a\",\"limit\":3,\"tag\":\"t\"}",
               "{\"q\":\"a\",\"limit\":3,\"tag\":\"t\"}");
}

TEST(arguments_are_as_they_come_without_strict_mode_or_for_an_unknown_tool)
{
    check_args(false, "find", "{\"limit\": null}", "{\"limit\": null}");
    check_args(true, "other", "{\"limit\": null}", "{\"limit\": null}");
    check_args(true, "find", "{\"limit\": nul", "{\"limit\": nul");
    check_args(true, "find", "[null]", "[null]");
}

static const char *word(const peg_turn *turn, const char *name)
{
    const peg_json *result = NULL;

    CHECK_INT(peg_turn_get(turn, &peg_key_inference_result, &result, NULL), PEG_OK);
    return peg_json_str(peg_json_get(result, name)).ptr;
}

TEST(a_model_that_declines_has_refused_whatever_its_stop_reason_says)
{
    PEG_CLEANUP(peg_turn_freep) peg_turn *turn = NULL;
    struct peg__reply_def def = {.vendor = PEG_VENDOR_OPENAI_CHAT, .model = "m"};
    struct peg__reply reply;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    def.turn = turn;
    peg__reply_init(&reply, &def);
    peg__part_add(&reply, peg__reply_part(&reply, 0, PEG__PART_TEXT), peg_cstr("I will not."));
    reply.has_refused = true;
    peg__reply_set(&reply, &reply.stop_reason, peg_cstr("stop"));
    CHECK_INT(peg__reply_finish(&reply, true, NULL), PEG_OK);
    peg__reply_free(&reply);

    CHECK_STR(peg__str(word(turn, "stop_reason")), "refusal");
    CHECK_STR(peg__str(word(turn, "finish_class")), "refused");
}

TORTURE(strict_arguments_survive_any_allocation_failure)
{
    peg_turn *turn = NULL;
    peg_json_doc *definitions = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg_json_parse(peg_cstr(DEFINITIONS), NULL, &definitions, NULL);
    if (!status)
        status =
            read_call(turn, peg_json_root(definitions), "find", "{\"q\":\"a\",\"limit\":null}");
    peg_json_doc_free(definitions);
    peg_turn_free(turn);
    return status;
}
