/* SPDX-License-Identifier: Apache-2.0 */

#include "tools/internal.h"

#include "../core/fixture.h"
#include "base/text/str.h"
#include "pegboard/command.h"
#include "json/json.h"

/* ---- fixture: a listener that writes down what it hears ---------------------------------------
 */

static struct heard {
    char out[4096];
    char err[4096];
    size_t n_pieces;
    unsigned refuse; /* so many pieces, before it takes one */
} heard;

static peg_status record_output(peg_call *call, const char *stream, peg_str text)
{
    char *to = strcmp(stream, "stderr") == 0 ? heard.err : heard.out;
    const size_t len = strlen(to);

    (void)call;
    CHECK(peg__utf8_is_valid(text));
    CHECK(!memchr(text.ptr, '\0', text.len));
    if (heard.refuse) {
        heard.refuse--;
        return PEG_ELIMIT;
    }
    heard.n_pieces++;
    CHECK(len + text.len < sizeof(heard.out));
    memcpy(to + len, text.ptr, text.len);
    to[len + text.len] = '\0';
    return PEG_OK;
}

static const struct peg__listener listener = {.say = record_output};

/* Pieces as they come, each a string; NULL ends them. */
static void relay_of(enum peg__output_kind output, enum peg__process_stream stream,
                     const char *const *pieces)
{
    struct peg__output_relay relay = {.listener = &listener,
                                      .output = output,
                                      .out = {.name = "stdout"},
                                      .err = {.name = "stderr"}};

    for (; *pieces; pieces++)
        peg__output_relay_handle(stream, peg_cstr(*pieces), &relay);
    peg__output_relay_end(&relay);
}

#define PIECES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* What a script is heard to say; its answer is checked. */
static void run_script(const peg_command_def *how, const char *script, const char *answer)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    peg_command_def def = *how;
    peg_tool *tool = NULL;
    peg_record *record = NULL;
    peg_ctx *ctx = NULL;
    struct world w;

    def.tool.name = "run";
    def.tool.description = "runs";
    def.argv = argv;
    heard = (struct heard){.n_pieces = 0};
    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(peg_command_tool_new(&def, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(w.registry, tool, false, NULL), PEG_OK);
    peg_tool_unref(tool);
    CHECK_INT(peg__ctx_with_listener(w.ctx, &listener, &ctx, NULL), PEG_OK);
    peg_ctx_unref(w.ctx);
    w.ctx = ctx;
    CHECK_INT(world_call(&w, "run", "{}", NULL, &record), PEG_OK);
    CHECK_STR(text_of(record), answer);
    peg_record_unref(record);
    world_close(&w);
}

/* ---- what is told --------------------------------------------------------------------------- */

TEST(output_of_a_command_is_relayed_while_its_answer_stays_the_same)
{
    const peg_command_def text = {PEG_COMMAND_DEF_INIT, .max_output = 0};
    const peg_command_def detects = {PEG_COMMAND_DEF_INIT, .detects_json = true};

    run_script(&text, "echo one; echo two >&2; echo three", "one\nthree\n");
    CHECK_STR(peg_cstr(heard.out), "one\nthree\n");
    CHECK_STR(peg_cstr(heard.err), "two\n");

    run_script(&detects, "echo one; echo two >&2", "one\n");
    CHECK_STR(peg_cstr(heard.out), "one\n");
    CHECK_STR(peg_cstr(heard.err), "two\n");
}

TEST(output_that_is_or_may_be_json_is_not_relayed_before_it_is_whole)
{
    const peg_command_def json = {PEG_COMMAND_DEF_INIT, .answers_json = true};
    const peg_command_def detects = {PEG_COMMAND_DEF_INIT, .detects_json = true};
    const peg_command_def typed = {PEG_COMMAND_DEF_INIT, .detects_json = true,
                                   .tool.output_schema = "{\"type\":\"integer\"}"};

    run_script(&json, "echo '{}'; echo x >&2", "{}");
    CHECK_STR(peg_cstr(heard.out), "");
    CHECK_STR(peg_cstr(heard.err), "x\n");
    run_script(&detects, "echo; echo ' [1]'", "[1]");
    CHECK_STR(peg_cstr(heard.out), "");
    run_script(&typed, "echo 42", "42");
    CHECK_STR(peg_cstr(heard.out), "");
}

TEST(text_after_white_space_alone_is_relayed)
{
    heard = (struct heard){.n_pieces = 0};
    relay_of(PEG__OUTPUT_MAYBE, PEG__PROCESS_STDOUT, PIECES("\n  ", "\n text\n", "{\n"));

    CHECK_STR(peg_cstr(heard.out), "\n text\n{\n");
}

/* ---- as text -------------------------------------------------------------------------------- */

TEST(character_that_comes_in_two_pieces_stays_whole)
{
    heard = (struct heard){.n_pieces = 0};
    relay_of(PEG__OUTPUT_TEXT, PEG__PROCESS_STDOUT,
             PIECES("a\xE2", "\x82", "\xAC", "b\xF0\x9F", "\x98\x80"));

    CHECK_STR(peg_cstr(heard.out), "a\xE2\x82\xAC"
                                   "b\xF0\x9F\x98\x80");
}

TEST(bytes_that_are_no_text_are_replaced)
{
    heard = (struct heard){.n_pieces = 0};
    relay_of(PEG__OUTPUT_TEXT, PEG__PROCESS_STDERR, PIECES("\xFFx\xE2", "y\xC3", "\xE2"));

    CHECK_STR(peg_cstr(heard.err), "\xEF\xBF\xBDx\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBD");

    heard = (struct heard){.n_pieces = 0};
    run_script(&(const peg_command_def){PEG_COMMAND_DEF_INIT, .max_output = 0},
               "printf 'a\\0b' >&2", "");
    CHECK_STR(peg_cstr(heard.err), "a\xEF\xBF\xBD"
                                   "b");
}

/* ---- a listener that does not keep up ---------------------------------------------------------
 */

TEST(what_a_slow_listener_does_not_take_is_left_out_and_counted)
{
    heard = (struct heard){.refuse = 2};
    relay_of(PEG__OUTPUT_TEXT, PEG__PROCESS_STDERR, PIECES("12345", "6789", "rest"));

    CHECK_STR(peg_cstr(heard.err),
              "\n[9 bytes left out: they came faster than they were taken]\nrest");

    heard = (struct heard){.refuse = 1};
    relay_of(PEG__OUTPUT_TEXT, PEG__PROCESS_STDERR, PIECES("12345"));
    CHECK_STR(peg_cstr(heard.err), "\n[5 bytes left out: they came faster than they were taken]\n");
}

TEST(piece_is_never_larger_than_a_frame)
{
    /* All of what is read at once, none of it text. */
    struct peg__output_relay relay = {.listener = &listener,
                                      .output = PEG__OUTPUT_TEXT,
                                      .err = {.name = "stderr", .n_left_out = 1}};
    static char noise[16 << 10];

    heard = (struct heard){.refuse = 1};
    memset(noise, 0xFF, sizeof(noise));
    peg__output_relay_handle(PEG__PROCESS_STDERR, peg__strn(noise, sizeof(noise)), &relay);

    CHECK_INT(heard.refuse, 0); /* it fitted, so it was offered */
}
