/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Goal, from the "must show": killing the process between any two steps and resuming from
 * the store continues the conversation with no call run twice that had a recorded result.
 *
 * A process has a conversation with a model that follows a script, keeps its turn at each phase,
 * and kills itself at its k-th point, for every k until it gets to the end; points are before and
 * after each snapshot, each answer of the model, and each thing that a tool does. Another process
 * goes on from the store. What tools did stands in a log, on the disk before anything else happens.
 */

#include <stdatomic.h>

#include "pegboard/pool.h"
#include "pegboard/runner.h"
#include "store_world.h"

enum { N_CALLS = 4 };

/* Calls 1, 3 and 4 are of a tool that must not run twice; 2 is of one that may. */
static bool may_repeat(int n)
{
    return n == 2;
}

/* ---- points at which the process may end ------------------------------------------------- */

static atomic_int n_points;
static int killed_at; /* 0: never */

static void point(void)
{
    if (atomic_fetch_add(&n_points, 1) + 1 == killed_at)
        kill(getpid(), SIGKILL);
}

/* ---- the conversation ----------------------------------------------------------------------- */

/* What the model does follows from how often it has answered, so that it can go on anywhere. */
static peg_status model(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    static const char *const says[] = {"first", "then", "done"};
    peg_turn *turn = peg_dispatch_turn(dispatch);
    const size_t round = peg_turn_count(turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT));
    peg_status status;

    (void)user;
    point();
    if (round > 2)
        return PEG_EHOST;
    status = peg_turn_add_text(turn, PEG_BLOCK_ASSISTANT, peg_cstr(says[round]), reterr);
    for (int n = (int)round * 2 + 1; !status && round < 2 && n <= (int)round * 2 + 2; n++) {
        char id[16];
        char args[32];

        snprintf(id, sizeof(id), "c%d", n);
        snprintf(args, sizeof(args), "{\"n\":%d}", n);
        status = peg_turn_add_call(turn, peg_cstr(id), peg_cstr(may_repeat(n) ? "look" : "pay"),
                                   peg_cstr(args), reterr);
    }
    point();
    return status;
}

/* Its side effect is a line in the log. */
static void act(peg_call *call, const peg_json *args, void *user)
{
    const int log = *(const int *)user;
    int64_t n = 0;
    char line[32];
    int len;

    peg_json_int64(peg_json_get(args, "n"), &n);
    len = snprintf(line, sizeof(line), "%d\n", (int)n);
    point();
    if (write(log, line, (size_t)len) != len || fsync(log) != 0)
        child_end(0, 9);
    point();
    peg_call_replyf(call, "did %d", (int)n);
}

static peg_status keep(peg_ctx *ctx, const peg_turn *turn, peg_phase phase, void *store,
                       peg_error *reterr)
{
    peg_status status;

    point();
    status = peg_turn_store_snapshot(ctx, turn, phase, store, reterr);
    point();
    return status;
}

/* ---- a process that begins or goes on
 * ------------------------------------------------------------ */

struct story {
    struct world world;
    unsigned n_parallel;
};

static peg_tool *tool_new(const char *name, bool is_idempotent, int *log)
{
    const peg_tool_def def = {
        PEG_TOOL_DEF_INIT,
        .name = name,
        .description = "a tool",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}",
        .run = act,
        .user = log,
        .trusted = true,
        .inline_result = true,
        .idempotent = is_idempotent};
    peg_tool *tool = NULL;

    return peg_tool_new(&def, &tool, NULL) ? NULL : tool;
}

static peg_turn *turn_to_run(peg_turn_store *store, bool *ret_is_over)
{
    peg_turn *turn = NULL;
    peg_phase phase = PEG_PHASE_PRE_INFERENCE;

    if (peg_turn_store_load(store, peg_cstr("t1"), &turn, &phase, NULL))
        child_end(0, 3);
    *ret_is_over = turn && peg_turn_is_over(turn, phase);
    return turn ? turn : turn_saying("t1", "go");
}

/* Ends well when the conversation has come to its end. */
static _Noreturn void live(const struct story *story)
{
    char path[128];
    peg_turn_store *store = NULL;
    peg_pool *pool = NULL;
    peg_runner *runner = NULL;
    bool is_over = false;
    peg_turn *turn;
    int log;

    snprintf(path, sizeof(path), "%s/log", story->world.folder);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    peg_tool *tools[] = {tool_new("pay", false, &log), tool_new("look", true, &log)};
    peg_runner_config config = {
        PEG_RUNNER_CONFIG_INIT, .tools = tools,
        .n_tools = 2,           .loop.engine.fn = model,
        .loop.snapshot = keep,  .loop.call.settings.max_parallel = story->n_parallel};

    if (log < 0 || story->world.kind->open(story->world.folder, &store, NULL) ||
        (story->n_parallel > 1 && peg_pool_new(NULL, &pool, NULL)))
        child_end(0, 2);
    config.loop.snapshot_user = store;
    config.loop.call.pool = pool;
    turn = turn_to_run(store, &is_over);
    if (is_over)
        child_end(0, CHILD_WELL);
    if (peg_runner_new(&config, &runner, NULL) || peg_runner_run(runner, NULL, turn, NULL, NULL))
        child_end(0, 4);
    child_end(0, CHILD_WELL);
}

/* True if it got to the end, false if it was killed. */
static bool run_process(const struct story *story, int kill_at)
{
    const pid_t child = child_start(0);
    int verdict;

    if (child == 0) {
        atomic_store(&n_points, 0);
        killed_at = kill_at;
        live(story);
    }
    verdict = child_wait(0, child);
    if (verdict != CHILD_KILLED)
        CHECK_INT(verdict, CHILD_WELL);
    return verdict == CHILD_WELL;
}

/* ---- what is known from outside ----------------------------------------------------------------
 */

/* How often each call has run, by the log. */
static void count_lines(const struct story *story, int ret_lines[N_CALLS + 1])
{
    char path[128];
    FILE *stream;
    int n;

    memset(ret_lines, 0, sizeof(int) * (N_CALLS + 1));
    snprintf(path, sizeof(path), "%s/log", story->world.folder);
    stream = fopen(path, "re");
    while (stream && fscanf(stream, "%d", &n) == 1) /* NOLINT(cert-err34-c): our own lines */
        ret_lines[n]++;
    if (stream)
        fclose(stream);
}

/* What the store has about each call. */
struct known {
    bool is_recorded[N_CALLS + 1];
    bool has_begun[N_CALLS + 1];
    int lines[N_CALLS + 1];
};

static peg_block *call_block(const peg_turn *turn, int n)
{
    char id[16];

    snprintf(id, sizeof(id), "c%d", n);
    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        peg_block *block = peg_turn_at(turn, i);

        if (peg_block_kind_of(block) == PEG_BLOCK_CALL && peg__str_is(peg_block_call_id(block), id))
            return block;
    }
    return NULL;
}

static bool is_marked(const peg_turn *turn, const peg_block *block)
{
    const peg_json *begun = NULL;

    CHECK_INT(peg_turn_get(turn, &peg_key_calls_started, &begun, NULL), PEG_OK);
    if (!begun)
        return false;
    PEG_JSON_EACH_ITEM (begun, item) {
        if (peg__str_eq(peg_json_str(item), peg_block_id(block)))
            return true;
    }
    return false;
}

static void look(struct story *story, struct known *ret_known)
{
    TURN turn = NULL;

    memset(ret_known, 0, sizeof(*ret_known));
    count_lines(story, ret_known->lines);
    world_open(&story->world);
    turn = load(&story->world, peg_cstr("t1"));
    for (int n = 1; turn && n <= N_CALLS; n++) {
        const peg_block *block = call_block(turn, n);

        if (!block)
            continue;
        ret_known->is_recorded[n] = peg_turn_result_of(turn, peg_block_id(block)) != NULL;
        ret_known->has_begun[n] = is_marked(turn, block);
    }
    story->world.store = peg_turn_store_unref(story->world.store);
}

/* ---- what has to be
 * ------------------------------------------------------------------------------ */

static void check_texts(const peg_turn *turn)
{
    static const char *const expected =
        "user:go assistant:first call:c1 call:c2 result:c1 result:c2 "
        "assistant:then call:c3 call:c4 result:c3 result:c4 assistant:done ";
    char text[512] = "";

    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_block *block = peg_turn_at(turn, i);
        const peg_str what =
            peg_block_text(block).len ? peg_block_text(block) : peg_block_call_id(block);
        const size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "%s:%.*s ",
                 peg_block_kind_name(peg_block_kind_of(block)), PEG_ARG(what));
    }
    CHECK_STR(peg_cstr(text), expected);
}

/* The result of a call; NULL stands for E_OUTCOME_UNKNOWN, which is checked too. */
static bool has_outcome(const peg_turn *turn, int n)
{
    const peg_record *record = peg_turn_result_of(turn, peg_block_id(call_block(turn, n)));
    char expected[16];
    peg_str answer;

    CHECK(record);
    if (peg_record_is_error(record)) {
        CHECK_STR(peg_cstr(peg_record_code(record)), "E_OUTCOME_UNKNOWN");
        return false;
    }
    snprintf(expected, sizeof(expected), "did %d", n);
    CHECK_INT(peg_record_answer(record, &answer, NULL), PEG_OK);
    CHECK_STR(answer, expected);
    return true;
}

/* One call, from what was known when the process had been killed to what is known at the end. */
static void check_call(const peg_turn *turn, const struct known *before, const struct known *after,
                       int n)
{
    const bool is_known = has_outcome(turn, n);
    const int n_more = after->lines[n] - before->lines[n];

    if (before->is_recorded[n]) {
        CHECK_INT(n_more, 0);
        CHECK(is_known);
    } else if (!before->has_begun[n]) {
        CHECK_INT(before->lines[n], 0); /* nothing happens before it is marked */
        CHECK_INT(n_more, 1);
        CHECK(is_known);
    } else if (may_repeat(n)) {
        CHECK_INT(n_more, 1);
        CHECK(is_known);
    } else {
        CHECK_INT(n_more, 0);
        CHECK(!is_known);
    }
}

static void story_begin(struct story *story, const struct store_kind *kind, unsigned n_parallel)
{
    *story = (struct story){.world.kind = kind, .n_parallel = n_parallel};
    folder_make(story->world.folder);
}

static void story_end(struct story *story)
{
    world_done(&story->world);
}

/* Killed at one point, then resumed to the end. False if it was not killed any more. */
static bool kill_once(const struct store_kind *kind, unsigned n_parallel, int kill_at)
{
    struct story story;
    struct known before;
    struct known after;
    bool was_killed;

    story_begin(&story, kind, n_parallel);
    was_killed = !run_process(&story, kill_at);
    look(&story, &before);
    if (was_killed)
        CHECK(run_process(&story, 0));
    look(&story, &after);
    world_open(&story.world);
    {
        TURN turn = load(&story.world, peg_cstr("t1"));

        CHECK(turn);
        check_texts(turn);
        for (int n = 1; n <= N_CALLS; n++) {
            if (was_killed)
                check_call(turn, &before, &after, n);
            else
                CHECK(has_outcome(turn, n) && after.lines[n] == 1);
        }
    }
    story_end(&story);
    return was_killed;
}

static void kill_everywhere(const struct store_kind *kind, unsigned n_parallel)
{
    int kill_at = 1;

    while (kill_once(kind, n_parallel, kill_at))
        kill_at++;
    /* 2 at each of 17 snapshots, 3 answers and 4 handlers. */
    CHECK_INT(kill_at, 49);
}

/* Must show: killing the process between any two steps and resuming from the store. */
TEST(a_conversation_kept_in_files_goes_on_wherever_it_was_killed)
{
    kill_everywhere(&store_kinds[1], 1);
}

/* Must show: killing the process between any two steps and resuming from the store. */
TEST(a_conversation_kept_in_sqlite_goes_on_wherever_it_was_killed)
{
    kill_everywhere(&store_kinds[2], 1);
}

/* Must show: the same where calls run side by side. */
TEST(a_conversation_with_parallel_calls_goes_on_wherever_it_was_killed)
{
    for (int kill_at = 1; kill_once(&store_kinds[2], 2, kill_at);)
        kill_at++;
}

/* Killed again and again, each time a little later, and never twice the same side effect. */
static void kill_repeatedly(const struct store_kind *kind, int first)
{
    struct story story;
    struct known known;
    int kill_at = first;

    story_begin(&story, kind, 1);
    while (!run_process(&story, kill_at))
        kill_at++;
    look(&story, &known);
    world_open(&story.world);
    {
        TURN turn = load(&story.world, peg_cstr("t1"));

        CHECK(turn);
        check_texts(turn);
        for (int n = 1; n <= N_CALLS; n++) {
            const bool is_known = has_outcome(turn, n);

            CHECK(known.lines[n] >= is_known);
            CHECK(may_repeat(n) || known.lines[n] <= 1);
        }
    }
    story_end(&story);
}

/* Must show: the same for processes that are killed while they resume. */
TEST(a_conversation_that_is_killed_while_it_resumes_goes_on_all_the_same)
{
    for (int first = 1; first <= 12; first += 3) {
        kill_repeatedly(&store_kinds[1], first);
        kill_repeatedly(&store_kinds[2], first);
    }
}
