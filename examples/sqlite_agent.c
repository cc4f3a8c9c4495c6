/* SPDX-License-Identifier: Apache-2.0 */

/* An agent with a read-only view of a database: one middleware offers it to the run. */

#include <pegboard/pegboard.h>
#include <stdio.h>

/* Makes the database of one call. A file would be one line: .path = "shop.db". */
static peg_status fill(peg_sqlite_db *db, peg_ctx *ctx, void *user, peg_error *e)
{
    (void)ctx, (void)user;
    return peg_sqlite_exec(db,
                           "CREATE TABLE customers(id INTEGER PRIMARY KEY, name, card);"
                           "INSERT INTO customers VALUES (1, 'Ada', '4111'), (2, 'Bob', '4222');"
                           "CREATE TABLE orders(customer, total);"
                           "INSERT INTO orders VALUES (1, 30), (1, 12.5), (2, 7);"
                           "CREATE VIEW sales AS SELECT c.name, o.total FROM orders o "
                           "JOIN customers c ON c.id = o.customer",
                           NULL, e);
}

/* What a model would say, step by step: it tries what it should not, and then what it can. */
static const char steps[] =
    "- calls: [{name: sql_query, args: {sql: 'SELECT name, card FROM customers'}}]\n"
    "- calls: [{name: sql_query, args: {sql: 'DELETE FROM sales'}}]\n"
    "- calls: [{name: sql_query, args: {sql: 'SELECT name, sum(total) AS total FROM sales "
    "GROUP BY name HAVING sum(total) > ? ORDER BY name', params: [10]}}]\n"
    "- text: Only Ada bought for more than 10.\n";

static void trace(const peg_event *event, void *user)
{
    const peg_tool_call_event *call = &event->u.tool_call;
    peg_str answer;
    (void)user;
    if (event->kind == PEG_EVENT_TOOL_CALL && !call->is_complete)
        printf("asks     %.*s\n", (int)call->args.len, call->args.ptr);
    else if (event->kind == PEG_EVENT_TOOL_CALL && !peg_record_answer(call->record, &answer, NULL))
        printf("%s %.*s\n", call->is_error ? "fails   " : "answers ", (int)answer.len, answer.ptr);
    else if (event->kind == PEG_EVENT_MESSAGE && event->u.stream.is_complete)
        printf("says     %.*s\n", (int)event->u.stream.full.len, event->u.stream.full.ptr);
}

int main(void)
{
    static const char *const objects[] = {"sales", NULL};
    const peg_sqlite_def def = {PEG_SQLITE_DEF_INIT, .fill = fill, .objects = objects,
                                .description = "What the shop has sold."};
    peg_dispatch_middleware offer = {.run = peg_offer_middleware};
    peg_runner_config config = {PEG_RUNNER_CONFIG_INIT, .on_event = trace, .loop.input = &offer,
                                .loop.n_input = 1};
    peg_tool *tool = NULL;
    peg_script *script = NULL;
    peg_runner *runner = NULL;
    peg_turn *turn = NULL;
    peg_outcome outcome;
    peg_error e;
    if (peg_sqlite_tool_new(&def, &tool, &e) || peg_script_new(peg_cstr(steps), &script, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    printf("%s\n\n", peg_tool_description(tool));
    offer.user = tool;
    config.loop.engine = peg_script_engine(script);
    if (peg_runner_new(&config, &runner, &e) || peg_turn_new(&turn, &e) ||
        peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("Who buys much?"), &e) ||
        peg_runner_run(runner, NULL, turn, &outcome, &e))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    peg_turn_free(turn);
    peg_runner_unref(runner);
    peg_script_unref(script);
    peg_tool_unref(tool);
    return outcome.end == PEG_END_ACK ? 0 : 1;
}
