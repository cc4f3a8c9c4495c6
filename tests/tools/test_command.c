/* SPDX-License-Identifier: Apache-2.0 */

#include "pegboard/command.h"

#include <pthread.h>

#include "../core/fixture.h"
#include "base/limits.h"
#include "child.h"

/* ---- fixture: a world with one command, called "run" ------------------------------------ */

#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"default\":1},"             \
    "\"text\":{\"type\":\"string\"}}}"

#define RUN_TOOL .tool.name = "run", .tool.description = "runs", .tool.input_schema = SCHEMA

static peg_status add_command(struct world *w, const peg_command_def *def)
{
    peg_tool *tool = NULL;
    peg_status status = peg_command_tool_new(def, &tool, NULL);

    if (!status)
        status = peg_registry_register(w->registry, tool, false, NULL);
    peg_tool_unref(tool);
    return status;
}

static void open_with(struct world *w, const peg_command_def *def)
{
    CHECK_INT(world_open(w), PEG_OK);
    CHECK_INT(add_command(w, def), PEG_OK);
}

/* One call of a shell script; the record is the caller's. */
static peg_record *call_script(const char *script, const char *args)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv};
    peg_record *record = NULL;
    struct world w;

    open_with(&w, &def);
    CHECK_INT(world_call(&w, "run", args, NULL, &record), PEG_OK);
    world_close(&w);
    CHECK(has_no_children());
    return record;
}

static void check_failure(const peg_record *record, const char *cause)
{
    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_DOWNSTREAM_ERROR");
    CHECK_STR(peg__str(peg_record_cause(record)), cause);
}

/* ---- answers ----------------------------------------------------------------------------------
 */

TEST(command_gets_its_arguments_on_standard_input_and_answers_on_standard_output)
{
    peg_record *record = call_script("cat; echo noise >&2", "{\"text\":\"h\\u00e9\"}");

    CHECK(!peg_record_is_error(record));
    CHECK_STR(text_of(record), "{\"text\":\"h\xC3\xA9\",\"n\":1}\n");
    peg_record_unref(record);
}

TEST(command_arguments_can_be_read_as_a_line)
{
    peg_record *record = call_script("read -r line && printf '%s' \"$line\"", "{\"n\":5}");

    CHECK_STR(text_of(record), "{\"n\":5}");
    peg_record_unref(record);
}

TEST(command_may_answer_with_any_bytes_or_none)
{
    peg_record *bytes = call_script("printf '\\377\\001x'", "{}");
    peg_record *none = call_script(":", "{}");

    CHECK(!peg_record_is_error(bytes));
    CHECK_STR(text_of(bytes), "\xFF\x01x");
    CHECK(!peg_record_is_error(none));
    CHECK_STR(text_of(none), "");
    peg_record_unref(bytes);
    peg_record_unref(none);
}

static peg_record *call_json_script(const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv,
                                 .answers_json = true};
    peg_record *record = NULL;
    struct world w;

    open_with(&w, &def);
    CHECK_INT(world_call(&w, "run", "{}", NULL, &record), PEG_OK);
    world_close(&w);
    return record;
}

TEST(command_may_answer_with_json)
{
    peg_record *record = call_json_script("echo '{ \"a\": [1, 2] }'");

    CHECK(!peg_record_is_error(record));
    CHECK_STR(text_of(record), "{\"a\":[1,2]}");
    peg_record_unref(record);
}

TEST(command_that_should_answer_with_json_fails_with_the_place)
{
    peg_record *record = call_json_script("printf '{\\n \"a\": oops}'");

    check_failure(record, "E_COMMAND_OUTPUT");
    CHECK_CONTAINS(text_of(record), "'sh' did not write JSON: line 2, column 7");
    peg_record_unref(record);
}

TEST(command_whose_json_has_a_member_twice_fails)
{
    peg_record *record = call_json_script("echo '{\"k\":1,\"k\":2}'");

    check_failure(record, "E_COMMAND_OUTPUT");
    CHECK_CONTAINS(text_of(record), "/k comes twice");
    peg_record_unref(record);
}

/* ---- failures
 * ------------------------------------------------------------------------------------ */

TEST(command_that_exits_with_a_number_fails_with_the_last_of_its_standard_error)
{
    peg_record *record = call_script("echo out; echo 'no such city' >&2; exit 3", "{}");

    check_failure(record, "E_COMMAND_EXIT");
    CHECK_CONTAINS(text_of(record),
                   "'sh' ended with exit status 3; the last of its standard error: no such city");
    peg_record_unref(record);
}

TEST(command_that_says_nothing_fails_all_the_same)
{
    peg_record *record = call_script("exit 1", "{}");

    check_failure(record, "E_COMMAND_EXIT");
    CHECK_CONTAINS(text_of(record), "exit status 1; it wrote nothing to standard error");
    peg_record_unref(record);
}

TEST(command_standard_error_is_made_printable)
{
    peg_record *record = call_script(
        "printf '\\033[31mred\\033[0m\\tok\\nbad \\377 \\303\\251 \\302\\205\\n\\n' >&2;"
        "exit 1",
        "{}");

    CHECK_CONTAINS(text_of(record), "?[31mred?[0m\tok\nbad \xEF\xBF\xBD \xC3\xA9 ?");
    CHECK_LACKS(text_of(record), "?\n");
    peg_record_unref(record);
}

/* 2 KiB of it is kept, and the cut falls into a character. */
TEST(command_standard_error_is_cut_at_a_character)
{
    peg_record *record = call_script(
        "i=0; while [ $i -lt 1000 ]; do printf '\\342\\202\\254'; i=$((i + 1)); done >&2; exit 1",
        "{}");

    CHECK_CONTAINS(text_of(record), "standard error: ...\xE2\x82\xAC\xE2\x82\xAC");
    CHECK_LACKS(text_of(record), "\xEF\xBF\xBD");
    CHECK(text_of(record).len < 2048 + 200);
    peg_record_unref(record);
}

TEST(command_that_is_ended_by_a_signal_fails_with_its_name)
{
    peg_record *record = call_script("kill -SEGV $$", "{}");

    check_failure(record, "E_COMMAND_EXIT");
    CHECK_CONTAINS(text_of(record), "was ended by signal 11 (SIGSEGV)");
    peg_record_unref(record);
}

TEST(command_whose_exit_status_is_taken_away_says_so)
{
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    peg_record *record = call_script("echo hello", "{}");

    signal(SIGCHLD, before);
    check_failure(record, "E_COMMAND_EXIT");
    CHECK_CONTAINS(text_of(record), "the host ignores SIGCHLD");
    peg_record_unref(record);
}

TEST(command_that_cannot_be_started_fails_and_says_why)
{
    static const struct {
        const char *program;
        const char *directory;
        const char *why;
    } cases[] = {
        {"peg-no-such-program", NULL, "it was not found; install it, or check the PATH"},
        {"/no/such/program", NULL, "there is no such file"},
        {"/etc/passwd", NULL, "it may not be executed"},
        {"sh", "/no/such/folder", "it cannot run in '/no/such/folder', which is no directory"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *const argv[] = {cases[i].program, NULL};
        const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv,
                                     .directory = cases[i].directory};
        peg_record *record = NULL;
        struct world w;

        open_with(&w, &def);
        CHECK_INT(world_call(&w, "run", "{}", NULL, &record), PEG_OK);
        check_failure(record, "E_COMMAND_SPAWN");
        CHECK_CONTAINS(text_of(record), cases[i].program);
        CHECK_CONTAINS(text_of(record), cases[i].why);
        peg_record_unref(record);
        world_close(&w);
    }
}

TEST(command_that_writes_more_than_max_output_fails_by_that_name)
{
    const char *const argv[] = {"head", "-c", "100000000", "/dev/zero", NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv, .max_output = 1000};
    peg_record *record = NULL;
    struct world w;

    open_with(&w, &def);
    CHECK_INT(world_call(&w, "run", "{}", NULL, &record), PEG_OK);

    check_failure(record, "E_COMMAND_OUTPUT");
    CHECK_CONTAINS(text_of(record), "more than max_output (1000 bytes)");
    peg_record_unref(record);
    world_close(&w);
}

TEST(command_sees_no_variable_of_the_host_but_path)
{
    const char *const argv[] = {"env", NULL};
    static const char *const env[] = {"CITY=Rome", NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv, .env = env};
    peg_record *record = NULL;
    struct world w;

    CHECK_INT(setenv("PEG_TEST_SECRET", "hidden", 1), 0);
    open_with(&w, &def);
    CHECK_INT(world_call(&w, "run", "{}", NULL, &record), PEG_OK);
    unsetenv("PEG_TEST_SECRET");

    CHECK_CONTAINS(text_of(record), "CITY=Rome\nPATH=/");
    CHECK_LACKS(text_of(record), "PEG_TEST_SECRET");
    CHECK_LACKS(text_of(record), "HOME=");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- time
 * --------------------------------------------------------------------------------------------- */

/* Lets time pass, or cancels, when the command says that it is ready. */
struct stopper {
    struct signs signs;
    struct world *world;
    bool cancels;
};

static void *stop_when_ready(void *user)
{
    struct stopper *stopper = user;

    signs_await(&stopper->signs);
    if (stopper->cancels)
        peg_cancel_fire(stopper->world->cancel, "the user went away");
    else
        peg_clock_manual_advance(stopper->world->clock, PEG_LIMIT_TOOL_MS);
    return NULL;
}

/* A command that ignores SIGTERM and writes its child's number; "ready" is in its folder. */
static peg_record *call_stubborn(struct world *w, bool cancels, const peg_run_options *options)
{
    static const char *const argv[] = {
        "sh", "-c", "trap '' TERM; echo at page 3 >&2; sleep 1000 & echo $! >child; : >ready; wait",
        NULL};
    struct stopper stopper = {.world = w, .cancels = cancels};
    peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv, .grace_ms = 30};
    peg_record *record = NULL;
    pthread_t thread;
    char path[128];
    int child = 0;
    FILE *file;

    signs_init(&stopper.signs);
    def.directory = stopper.signs.folder;
    open_with(w, &def);
    CHECK_INT(pthread_create(&thread, NULL, stop_when_ready, &stopper), 0);
    CHECK_INT(world_call(w, "run", "{}", options, &record), PEG_OK);
    pthread_join(thread, NULL);

    snprintf(path, sizeof(path), "%s/child", stopper.signs.folder);
    file = fopen(path, "re");
    CHECK(file);
    CHECK_INT(fscanf(file, "%d", &child), 1); // NOLINT(cert-err34-c)
    fclose(file);
    await_death(child);
    unlink(path);
    signs_done(&stopper.signs);
    return record;
}

TEST(a_command_that_never_ends_is_over_after_its_deadline)
{
    struct world w;
    peg_record *record = call_stubborn(&w, false, NULL);

    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_TIMEOUT");
    CHECK_STR(peg__str(peg_record_cause(record)), "E_COMMAND_TIMEOUT");
    CHECK_CONTAINS(text_of(record), "at page 3");
    CHECK(has_no_children());
    peg_record_unref(record);
    world_close(&w);
}

TEST(a_command_is_over_after_a_cancellation_from_another_thread)
{
    struct world w;
    peg_record *record = call_stubborn(&w, true, NULL);

    CHECK(peg_record_is_error(record));
    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_CANCELED");
    CHECK_STR(peg__str(peg_record_cause(record)), "E_COMMAND_CANCELED");
    CHECK_CONTAINS(text_of(record),
                   "the tool 'run' was canceled: the host asked to stop: the user went away: the "
                   "command 'sh' was ended before it was through; the last of its standard error: "
                   "at page 3");
    CHECK(has_no_children());
    peg_record_unref(record);
    world_close(&w);
}

TEST(a_command_on_a_pool_is_over_after_its_deadline_and_gives_its_thread_back)
{
    peg_run_options options = {PEG_RUN_OPTIONS_INIT};
    peg_record *record;
    struct world w;

    CHECK_INT(peg_pool_new(NULL, &options.pool, NULL), PEG_OK);
    record = call_stubborn(&w, false, &options);

    CHECK_STR(peg__str(peg_record_code(record)), "E_TOOL_TIMEOUT");
    while (peg_pool_info(options.pool).n_abandoned)
        sched_yield();
    CHECK(has_no_children());
    peg_record_unref(record);
    peg_pool_unref(options.pool);
    world_close(&w);
}

/* ---- making it
 * ---------------------------------------------------------------------------------------- */

static void do_nothing(peg_call *call, const peg_json *args, void *user)
{
    (void)call;
    (void)args;
    (void)user;
}

TEST(a_command_that_cannot_work_is_refused_with_the_field)
{
    static const char *const argv[] = {"true", NULL};
    static const char *const no_words[] = {NULL};
    static const char *const no_name[] = {"", NULL};
    static const char *const bad_env[] = {"A=1", "B", NULL};
    static const char *const no_env_name[] = {"=1", NULL};
    static const struct {
        peg_command_def def;
        const char *where;
    } cases[] = {
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d"}, "/argv"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = no_words},
         "/argv"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = no_name},
         "/argv"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = argv,
          .env = bad_env},
         "/env/1"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = argv,
          .env = no_env_name},
         "/env/0"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = argv,
          .directory = ""},
         "/directory"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = argv,
          .grace_ms = -1},
         "/grace_ms"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .argv = argv,
          .max_output = SIZE_MAX},
         "/max_output"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "run", .tool.description = "d", .tool.run = do_nothing,
          .argv = argv},
         "/tool/run"},
        {{PEG_COMMAND_DEF_INIT, .tool.name = "", .tool.description = "d", .argv = argv}, "/name"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        peg_tool *tool = NULL;
        peg_error error;

        CHECK_INT(peg_command_tool_new(&cases[i].def, &tool, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_INVALID_INITIAL_TOOL_VALUE");
        CHECK_STR(peg__str(error.where), cases[i].where);
        CHECK(!tool);
    }
}

TEST(a_command_line_has_a_limit)
{
    static const char *many_words[PEG_LIMIT_COMMAND_ARGS + 2];
    char *word = malloc((1 << 20) + 1);
    const char *long_words[] = {"true", word, NULL};
    peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = many_words};
    peg_tool *tool = NULL;
    peg_error error;

    CHECK(word);
    for (size_t i = 0; i <= PEG_LIMIT_COMMAND_ARGS; i++)
        many_words[i] = "x";
    CHECK_INT(peg_command_tool_new(&def, &tool, &error), PEG_EINVAL);
    CHECK(strstr(error.message, "more than 4,096 arguments"));

    memset(word, 'x', 1 << 20);
    word[1 << 20] = '\0';
    def.argv = long_words;
    CHECK_INT(peg_command_tool_new(&def, &tool, &error), PEG_EINVAL);
    CHECK(strstr(error.message, "longer than 1 MiB"));
    free(word);
}

TEST(a_command_copies_what_it_is_made_of)
{
    char program[] = "printf";
    char word[] = "hello";
    const char *argv[] = {program, word, NULL};
    peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv};
    peg_record *record = NULL;
    struct world w;

    open_with(&w, &def);
    memset(program, 'x', sizeof(program) - 1);
    memset(word, 'x', sizeof(word) - 1);
    argv[0] = NULL;
    CHECK_INT(world_call(&w, "run", "{}", NULL, &record), PEG_OK);

    CHECK_STR(text_of(record), "hello");
    peg_record_unref(record);
    world_close(&w);
}

/* ---- many
 * ------------------------------------------------------------------------------------------------
 */

enum { N_THREADS = 8, N_ROUNDS = 3 };

struct caller {
    struct world *world;
    int n_good;
};

static void *call_often(void *user)
{
    struct caller *caller = user;

    for (int i = 0; i < N_ROUNDS; i++) {
        peg_record *record = NULL;

        if (world_call(caller->world, "run", "{\"n\":7}", NULL, &record) == PEG_OK &&
            peg__str_is(text_of(record), "{\"n\":7}\n"))
            caller->n_good++;
        peg_record_unref(record);
    }
    return NULL;
}

TEST(commands_run_from_eight_threads_at_once)
{
    const char *const argv[] = {"cat", NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL, .argv = argv};
    struct caller callers[N_THREADS];
    pthread_t threads[N_THREADS];
    int n_fds;
    struct world w;
    peg_ctx *heard;

    open_with(&w, &def);
    /* The fixture's sink writes down events and is no match for eight threads. */
    heard = w.ctx;
    CHECK_INT(peg_ctx_with_registry(w.timed, w.registry, &w.ctx, NULL), PEG_OK);
    n_fds = n_open_fds();
    for (int i = 0; i < N_THREADS; i++) {
        callers[i] = (struct caller){.world = &w};
        CHECK_INT(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(callers[i].n_good, N_ROUNDS);
    CHECK_INT(n_open_fds(), n_fds);
    CHECK(has_no_children());
    peg_ctx_unref(heard);
    world_close(&w);
}

static peg_status call_with_command(struct world *w, const char *script, bool answers_json)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    static const char *const env[] = {"A=1", NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT, RUN_TOOL,
                                 .argv = argv,         .env = env,
                                 .directory = "/",     .answers_json = answers_json};
    peg_record *record = NULL;
    peg_status status = world_open(w);

    if (!status)
        status = add_command(w, &def);
    if (!status)
        status = world_call(w, "run", "{}", NULL, &record);
    peg_record_unref(record);
    world_close(w);
    return status;
}

TORTURE(a_command_that_succeeds_survives_any_allocation_failure)
{
    struct world w;

    return call_with_command(&w, "echo '[1]'", true);
}

TORTURE(a_command_that_fails_survives_any_allocation_failure)
{
    struct world w;

    return call_with_command(&w, "echo no >&2; exit 1", false);
}

TORTURE(a_command_that_writes_no_json_survives_any_allocation_failure)
{
    struct world w;

    return call_with_command(&w, "echo no", true);
}
