/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the registry does not do: retry, limit, authorise, cache, deduplicate, order or prioritise.
 * It is a collection of capabilities by name; all of this is for the host and its hooks. Each test
 * does what such a feature would change, and sees that nothing is changed.
 */

#include "fixture.h"

/* ---- fixture: a handler that counts, and fails if it is told to ------------------------------ */

struct counter {
    int n_calls;
    bool fails;
};

static void count_call(peg_call *call, const peg_json *args, void *user)
{
    struct counter *counter = user;

    (void)args;
    counter->n_calls++;
    if (counter->fails)
        peg_call_fail(call, "not today");
    else
        peg_call_replyf(call, "call %d", counter->n_calls);
}

static peg_tool_def counted(const char *name, struct counter *counter)
{
    return (peg_tool_def){PEG_TOOL_DEF_INIT, .name = name, .description = "Counts its calls.",
                          .run = count_call, .user = counter};
}

static void add(struct world *w, const peg_tool_def *def)
{
    CHECK_INT(world_add(w, def), PEG_OK);
}

/* Calls a tool and looks at what it said. */
static void check_call(struct world *w, const char *tool, const char *args, const char *text)
{
    peg_record *record = NULL;

    CHECK_INT(world_call(w, tool, args, NULL, &record), PEG_OK);
    CHECK_CONTAINS(text_of(record), text);
    peg_record_unref(record);
}

static void check_order(peg_registry *registry, const char *expected)
{
    char text[256] = "";
    size_t len = 0;
    peg_tool_list list;

    CHECK_INT(peg_registry_visible(registry, &list, NULL), PEG_OK);
    for (size_t i = 0; i < list.len; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "",
                                peg_tool_name(list.items[i]));
    peg_tool_list_free(&list);
    CHECK_STR(peg__str(text), expected);
}

/* ---- it does not ----------------------------------------------------------------------------- */

/* T29 */
TEST(registry_does_not_retry)
{
    struct counter counter = {.fails = true};
    peg_tool_def def = counted("fragile", &counter);
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    def.idempotent = def.read_only = true; /* if anything may be repeated, this */
    add(&w, &def);
    check_call(&w, "fragile", "{}", "not today");

    CHECK_INT(counter.n_calls, 1);
    world_close(&w);
}

TEST(registry_does_not_limit_how_often_a_tool_is_called)
{
    enum { N = 2000 };
    struct counter counter = {0};
    const peg_tool_def def = counted("busy", &counter);
    struct world w;
    char text[32];

    CHECK_INT(world_open(&w), PEG_OK);
    add(&w, &def);
    for (int i = 1; i <= N; i++) {
        snprintf(text, sizeof(text), "call %d", i);
        check_call(&w, "busy", "{}", text);
    }

    CHECK_INT(counter.n_calls, N);
    world_close(&w);
}

TEST(registry_does_not_limit_how_often_it_is_changed)
{
    enum { N = 20000 };
    struct counter counter = {0};
    const peg_tool_def def = counted("again", &counter);
    peg_tool *tool = NULL;
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    for (int i = 0; i < N; i++) {
        CHECK_INT(peg_registry_register(w.registry, tool, false, NULL), PEG_OK);
        CHECK_INT(peg_registry_register(w.registry, tool, true, NULL), PEG_OK);
        CHECK_INT(peg_registry_unregister(w.registry, peg__str("again"), NULL), PEG_OK);
    }

    CHECK_INT(peg_registry_len(w.registry), 0);
    peg_tool_unref(tool);
    world_close(&w);
}

TEST(registry_does_not_authorise)
{
    static const char *const names[] = {"drop-tables"};
    struct counter counter = {0};
    peg_tool_def def = counted("drop-tables", &counter);
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    def.destructive = def.ephemeral = true;
    add(&w, &def);
    CHECK_INT(peg_registry_hide(w.registry, names, 1, NULL), PEG_OK);

    /* Hidden means not advertised: whoever knows the name may call it. */
    check_order(w.registry, "");
    check_call(&w, "drop-tables", "{}", "call 1");
    CHECK_INT(counter.n_calls, 1);
    world_close(&w);
}

TEST(registry_does_not_cache_results)
{
    struct counter counter = {0};
    peg_tool_def def = counted("now", &counter);
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    def.idempotent = def.read_only = true;
    add(&w, &def);
    check_call(&w, "now", "{}", "call 1");
    check_call(&w, "now", "{}", "call 2");

    CHECK_INT(counter.n_calls, 2);
    world_close(&w);
}

TEST(registry_does_not_cache_definitions)
{
    struct counter counter = {0};
    peg_tool_def def = counted("changing", &counter);
    peg_json_doc *before = NULL;
    peg_json_doc *again = NULL;
    peg_json_doc *after = NULL;
    peg_tool *tool;
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    add(&w, &def);
    tool = peg_registry_get(w.registry, peg__str("changing"));
    CHECK_INT(peg_tool_describe(tool, &before, NULL), PEG_OK);
    CHECK_INT(peg_tool_describe(tool, &again, NULL), PEG_OK);
    peg_tool_unref(tool);

    def.description = "Does it another way.";
    CHECK_INT(peg_tool_new(&def, &tool, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(w.registry, tool, true, NULL), PEG_OK);
    peg_tool_unref(tool);
    tool = peg_registry_get(w.registry, peg__str("changing"));
    CHECK_INT(peg_tool_describe(tool, &after, NULL), PEG_OK);

    CHECK(peg_json_root(before) != peg_json_root(again));
    CHECK_STR(peg_json_str(peg_json_get(peg_json_root(before), "description")),
              "Counts its calls.");
    CHECK_STR(peg_json_str(peg_json_get(peg_json_root(after), "description")),
              "Does it another way.");
    peg_tool_unref(tool);
    peg_json_doc_free(before);
    peg_json_doc_free(again);
    peg_json_doc_free(after);
    world_close(&w);
}

TEST(registry_does_not_deduplicate_calls)
{
    struct counter counter = {0};
    const peg_tool_def def = counted("pay", &counter);
    peg_record *one = NULL;
    peg_record *two = NULL;
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    add(&w, &def);
    /* The same name, arguments and call id: the same checksum, and still two calls. */
    CHECK_INT(world_call(&w, "pay", "{}", NULL, &one), PEG_OK);
    CHECK_INT(world_call(&w, "pay", "{}", NULL, &two), PEG_OK);

    CHECK_STR(peg__str(peg_record_checksum(one)), peg_record_checksum(two));
    CHECK_INT(counter.n_calls, 2);
    CHECK(!peg__str_eq(peg_record_key(one), peg_record_key(two)));
    peg_record_unref(one);
    peg_record_unref(two);
    world_close(&w);
}

TEST(registry_does_not_deduplicate_tools)
{
    struct counter counter = {0};
    const peg_tool_def one = counted("one", &counter);
    const peg_tool_def two = counted("two", &counter);
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    add(&w, &one);
    add(&w, &two); /* the same in all but its name */

    check_order(w.registry, "one two");
    check_call(&w, "one", "{}", "call 1");
    check_call(&w, "two", "{}", "call 2");
    world_close(&w);
}

TEST(registry_does_not_order)
{
    static const char *const order[] = {"zebra", "Ant", "moose", "ant", "10", "9"};
    const char *const urgent[] = {"priority:high", "first", NULL};
    struct counter counter = {0};
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        peg_tool_def def = counted(order[i], &counter);

        def.version = i % 2 ? "1" : "2";
        def.tags = i == 4 ? urgent : NULL;
        def.read_only = i > 2;
        def.destructive = i < 2;
        def.trusted = i == 5;
        add(&w, &def);
    }

    check_order(w.registry, "zebra Ant moose ant 10 9");
    world_close(&w);
}

TEST(registry_does_not_prioritise_what_is_called_most_or_works_best)
{
    struct counter good = {0};
    struct counter bad = {.fails = true};
    const peg_tool_def first = counted("first", &bad);
    const peg_tool_def last = counted("last", &good);
    struct world w;

    CHECK_INT(world_open(&w), PEG_OK);
    add(&w, &first);
    add(&w, &last);
    for (int i = 0; i < 10; i++) {
        check_call(&w, "last", "{}", "call");
        check_call(&w, "first", "{}", "not today");
    }

    check_order(w.registry, "first last");
    CHECK_INT(bad.n_calls, 10);
    world_close(&w);
}
