/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "registry_world.h"

/* ---- an empty one, and a first list ---------------------------------------------------------- */

/* T30 */
TEST(registry_that_is_new_is_empty)
{
    peg_registry *registry = registry_of("");
    peg_tool_list list;

    CHECK_INT(peg_registry_len(registry), 0);
    CHECK_INT(peg_registry_all(registry, &list, NULL), PEG_OK);
    CHECK_INT(list.len, 0);
    peg_tool_list_free(&list);
    peg_registry_unref(registry);
}

/* T31 */
TEST(registry_keeps_the_order_of_its_first_list)
{
    peg_tool *tools[] = {tool_named("zebra"), tool_named("ant"), tool_named("moose")};
    peg_registry *registry = NULL;

    CHECK_INT(peg_registry_new(tools, 3, &registry, NULL), PEG_OK);

    CHECK_STR(order(registry), "zebra ant moose");
    CHECK_INT(peg_registry_len(registry), 3);
    for (int i = 0; i < 3; i++)
        peg_tool_unref(tools[i]);
    CHECK_STR(order(registry), "zebra ant moose");
    peg_registry_unref(registry);
}

/* T32 */
TEST(registry_refuses_a_first_list_with_one_name_twice)
{
    peg_tool *tools[] = {tool_named("a"), tool_named("b"), tool_named("a")};
    peg_registry *registry = NULL;
    peg_error error;

    CHECK_INT(peg_registry_new(tools, 3, &registry, &error), PEG_EEXISTS);

    CHECK(!registry);
    CHECK_STR(peg__str(error.code), "E_TOOL_ALREADY_REGISTERED");
    CHECK(strstr(error.message, "'a'") != NULL);
    for (int i = 0; i < 3; i++)
        peg_tool_unref(tools[i]);
}

TEST(registry_refuses_what_is_no_tool)
{
    peg_tool *none = NULL;
    peg_registry *registry = NULL;
    peg_error error;

    CHECK_INT(peg_registry_new(&none, 1, &registry, &error), PEG_EINVAL);
    registry = registry_of("");
    CHECK_INT(peg_registry_register(registry, NULL, false, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    peg_registry_unref(registry);
}

TEST(registry_counts_its_references)
{
    peg_registry *registry = registry_of("a");

    CHECK(peg_registry_ref(registry) == registry);
    CHECK(!peg_registry_unref(registry));
    CHECK(has(registry, "a"));
    CHECK(!peg_registry_unref(registry));
    CHECK(!peg_registry_unref(NULL));
}

/* ---- one tool -------------------------------------------------------------------------------- */

/* T33, G40 */
TEST(register_refuses_a_name_that_is_taken_and_keeps_the_first_tool)
{
    peg_registry *registry = registry_of("b");
    peg_tool *first = tool_named("a");
    peg_tool *second = tool_named("a");
    peg_error error;

    CHECK_INT(peg_registry_register(registry, first, false, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(registry, second, false, &error), PEG_EEXISTS);

    CHECK_STR(peg__str(error.code), "E_TOOL_ALREADY_REGISTERED");
    CHECK(strstr(error.message, "'a'") != NULL);
    CHECK(holds(registry, "a", first));
    CHECK_STR(order(registry), "b a");
    peg_tool_unref(first);
    peg_tool_unref(second);
    peg_registry_unref(registry);
}

/* T34, G40 */
TEST(register_with_overwrite_takes_the_place_of_the_other)
{
    peg_registry *registry = registry_of("a b c");
    peg_tool *tool = tool_named("b");

    CHECK_INT(peg_registry_register(registry, tool, true, NULL), PEG_OK);

    CHECK_STR(order(registry), "a b c");
    CHECK_INT(peg_registry_len(registry), 3);
    CHECK(holds(registry, "b", tool));
    peg_tool_unref(tool);
    peg_registry_unref(registry);
}

TEST(register_with_overwrite_keeps_the_hidden_mark)
{
    peg_registry *registry = registry_of("a b");
    peg_tool *tool = tool_named("b");

    CHECK_INT(hide(registry, "b"), PEG_OK);
    CHECK_INT(peg_registry_register(registry, tool, true, NULL), PEG_OK);

    CHECK_STR(order(registry), "a (b)");
    peg_tool_unref(tool);
    peg_registry_unref(registry);
}

/* T35 */
TEST(register_does_not_ask_the_tool_about_collisions)
{
    const peg_tool_def replace = {PEG_TOOL_DEF_INIT, .on_collision = PEG_COLLISION_REPLACE};
    const peg_tool_def keep = {PEG_TOOL_DEF_INIT, .on_collision = PEG_COLLISION_KEEP};
    peg_registry *registry = registry_of("a");
    peg_tool *replacing = tool_of(&replace, "a", NULL);
    peg_tool *keeping = tool_of(&keep, "a", NULL);

    CHECK_INT(peg_registry_register(registry, replacing, false, NULL), PEG_EEXISTS);
    CHECK_INT(peg_registry_register(registry, keeping, true, NULL), PEG_OK);

    CHECK(holds(registry, "a", keeping));
    peg_tool_unref(replacing);
    peg_tool_unref(keeping);
    peg_registry_unref(registry);
}

/* T36, G42 */
TEST(unregister_is_silent_about_a_name_it_does_not_know)
{
    peg_registry *registry = registry_of("a");

    CHECK_INT(unregister(registry, "b"), PEG_OK);
    CHECK_INT(unregister(registry, ""), PEG_OK);
    CHECK_INT(peg_registry_unregister(registry, peg__strn(NULL, 0), NULL), PEG_OK);

    CHECK_STR(order(registry), "a");
    peg_registry_unref(registry);
}

/* T37 */
TEST(tool_that_is_unregistered_and_registered_again_comes_last)
{
    peg_registry *registry = registry_of("a b c");
    peg_tool *tool = get(registry, "a");

    CHECK_INT(unregister(registry, "a"), PEG_OK);
    CHECK(!has(registry, "a"));
    CHECK_STR(order(registry), "b c");
    CHECK_INT(peg_registry_register(registry, tool, false, NULL), PEG_OK);

    CHECK_STR(order(registry), "b c a");
    peg_tool_unref(tool);
    peg_registry_unref(registry);
}

/* T38, G41 */
TEST(get_and_has_know_what_is_not_there)
{
    peg_registry *registry = registry_of("a");

    CHECK(!get(registry, "b"));
    CHECK(!get(registry, ""));
    CHECK(!peg_registry_get(registry, peg__strn(NULL, 0)));
    CHECK(!peg_registry_get(registry, peg__strn("a\0", 2)));
    CHECK(!has(registry, "b"));
    CHECK(has(registry, "a"));
    peg_registry_unref(registry);
}

static void count_free(void *user)
{
    ++*(int *)user;
}

TEST(get_hands_out_a_reference_of_its_own)
{
    int n_freed = 0;
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .user = &n_freed, .user_free = count_free};
    peg_registry *registry = registry_of("");
    peg_tool *tool;

    CHECK_INT(give(registry, tool_of(&def, "a", NULL)), PEG_OK);
    tool = get(registry, "a");
    CHECK_INT(unregister(registry, "a"), PEG_OK);
    CHECK_INT(n_freed, 0);
    CHECK_STR(peg__str(peg_tool_name(tool)), "a");

    peg_tool_unref(tool);
    CHECK_INT(n_freed, 1);
    peg_registry_unref(registry);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* T39 */
TEST(all_gives_a_list_of_the_callers_own)
{
    peg_registry *registry = registry_of("a b c");
    peg_tool_list list;

    CHECK_INT(peg_registry_all(registry, &list, NULL), PEG_OK);
    CHECK_STR(names_in(&list), "a b c");
    peg_tool_unref(list.items[0]);
    list.items[0] = list.items[2];
    list.items[2] = NULL;
    list.len = 2;

    CHECK_STR(order(registry), "a b c");
    peg_tool_list_free(&list);
    CHECK_INT(list.len, 0);
    peg_tool_list_free(&list);
    peg_tool_list_free(NULL);
    peg_registry_unref(registry);
}

/* T40 */
TEST(all_gives_the_tools_themselves)
{
    peg_tool *tools[] = {tool_named("a"), tool_named("b")};
    peg_registry *registry = NULL;
    peg_tool_list list;

    CHECK_INT(peg_registry_new(tools, 2, &registry, NULL), PEG_OK);
    CHECK_INT(peg_registry_all(registry, &list, NULL), PEG_OK);

    CHECK(list.items[0] == tools[0]);
    CHECK(list.items[1] == tools[1]);
    peg_tool_list_free(&list);
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
    peg_registry_unref(registry);
}

/* ---- ephemeral tools ------------------------------------------------------------------------- */

/* T41 */
TEST(prune_drops_ephemeral_tools_and_no_other)
{
    peg_registry *registry = registry_of("~x a ~y b ~z");

    peg_registry_prune_ephemeral(registry);
    CHECK_STR(order(registry), "a b");
    CHECK_INT(peg_registry_len(registry), 2);
    CHECK(!has(registry, "x"));
    peg_registry_prune_ephemeral(registry);
    CHECK_STR(order(registry), "a b");
    CHECK_INT(peg_registry_len(registry), 2);
    peg_registry_unref(registry);
}

/* T41 */
TEST(prune_without_ephemeral_tools_changes_nothing)
{
    peg_registry *registry = registry_of("a b");

    CHECK_INT(hide(registry, "a"), PEG_OK);
    peg_registry_prune_ephemeral(registry);

    CHECK_STR(order(registry), "(a) b");
    peg_registry_unref(registry);
}

/* T42 */
TEST(list_made_before_a_prune_still_has_its_tools)
{
    peg_registry *registry = registry_of("a ~x");
    peg_tool_list list;

    CHECK_INT(peg_registry_all(registry, &list, NULL), PEG_OK);
    peg_registry_prune_ephemeral(registry);
    peg_registry_unref(registry);

    CHECK_STR(names_in(&list), "a x");
    peg_tool_list_free(&list);
}

TEST(prune_lets_go_of_every_tool_however_many)
{
    enum { N = 1000 };
    int n_freed = 0;
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .ephemeral = true, .user = &n_freed,
                              .user_free = count_free};
    peg_registry *registry = registry_of("a");
    char name[16];

    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        CHECK_INT(give(registry, tool_of(&def, name, NULL)), PEG_OK);
    }
    peg_registry_prune_ephemeral(registry);

    CHECK_INT(n_freed, N);
    CHECK_STR(order(registry), "a");
    CHECK_INT(give(registry, ephemeral_named("x1")), PEG_OK);
    CHECK_STR(order(registry), "a x1");
    peg_registry_unref(registry);
}

TEST(prune_needs_no_memory)
{
    peg_registry *other;
    peg_registry *registry = shared_registry_of("~x a ~y", &other);

    CHECK_INT(give(registry, ephemeral_named("z")), PEG_OK);
    peg__mem_fail_at(1);
    peg_registry_prune_ephemeral(registry);
    peg_registry_prune_ephemeral(other);
    peg__mem_fail_at(0);

    CHECK_STR(order(registry), "a");
    CHECK_STR(order(other), "a");
    peg_registry_unref(registry);
    peg_registry_unref(other);
}

TEST(ephemeral_tool_that_is_registered_after_a_prune_is_there)
{
    peg_registry *other;
    peg_registry *registry = shared_registry_of("a ~x", &other);

    peg_registry_prune_ephemeral(registry);
    CHECK_INT(give(registry, ephemeral_named("x")), PEG_OK);

    CHECK_STR(order(registry), "a x");
    CHECK(has(registry, "x"));
    peg_registry_prune_ephemeral(registry);
    CHECK_STR(order(registry), "a");
    peg_registry_unref(registry);
    peg_registry_unref(other);
}

TEST(lasting_tool_in_the_place_of_an_ephemeral_one_is_not_pruned)
{
    peg_registry *other;
    peg_registry *registry = shared_registry_of("~x a ~y", &other);
    peg_tool *lasting = tool_named("x");
    peg_tool *fleeting = ephemeral_named("a");

    CHECK_INT(peg_registry_register(registry, lasting, true, NULL), PEG_OK);
    CHECK_INT(peg_registry_register(registry, fleeting, true, NULL), PEG_OK);
    peg_registry_prune_ephemeral(registry);

    CHECK_STR(order(registry), "x");
    CHECK_INT(peg_registry_len(registry), 1);
    CHECK_STR(order(other), "x a y");
    peg_registry_unref(other);
    peg_registry_prune_ephemeral(registry);
    CHECK_STR(order(registry), "x");
    CHECK_INT(give(registry, ephemeral_named("y")), PEG_OK);
    CHECK_STR(order(registry), "x y");
    peg_tool_unref(lasting);
    peg_tool_unref(fleeting);
    peg_registry_unref(registry);
}

/* ---- hidden tools ---------------------------------------------------------------------------- */

/* T43 */
TEST(hidden_tools_are_not_visible_and_still_there)
{
    peg_registry *registry = registry_of("a b c");
    peg_tool_list visible;
    peg_tool_list hidden;
    peg_tool_list all;

    CHECK_INT(hide(registry, "b"), PEG_OK);
    CHECK_INT(peg_registry_visible(registry, &visible, NULL), PEG_OK);
    CHECK_INT(peg_registry_hidden(registry, &hidden, NULL), PEG_OK);
    CHECK_INT(peg_registry_all(registry, &all, NULL), PEG_OK);

    CHECK_STR(names_in(&visible), "a c");
    CHECK_STR(names_in(&hidden), "b");
    CHECK_STR(names_in(&all), "a b c");
    CHECK(has(registry, "b"));
    CHECK_INT(peg_registry_len(registry), 3);
    peg_tool_list_free(&visible);
    peg_tool_list_free(&hidden);
    peg_tool_list_free(&all);
    peg_registry_unref(registry);
}

/* T43 */
TEST(hidden_marks_come_and_go)
{
    const char *const ab[] = {"a", "b"};
    const char *const c[] = {"c"};
    peg_registry *registry = registry_of("a b c");

    CHECK_INT(peg_registry_hide(registry, ab, 2, NULL), PEG_OK);
    CHECK_STR(order(registry), "(a) (b) c");
    CHECK_INT(peg_registry_unhide(registry, ab, 1, NULL), PEG_OK);
    CHECK_STR(order(registry), "a (b) c");
    CHECK_INT(peg_registry_set_hidden(registry, c, 1, NULL), PEG_OK);
    CHECK_STR(order(registry), "a b (c)");
    CHECK_INT(peg_registry_clear_hidden(registry, NULL), PEG_OK);
    CHECK_STR(order(registry), "a b c");
    peg_registry_unref(registry);
}

/* T44 */
TEST(hidden_mark_goes_with_its_tool)
{
    peg_registry *registry = registry_of("a ~x");
    const char *const both[] = {"a", "x"};
    peg_tool *tool = get(registry, "a");

    CHECK_INT(peg_registry_hide(registry, both, 2, NULL), PEG_OK);
    CHECK_INT(unregister(registry, "a"), PEG_OK);
    peg_registry_prune_ephemeral(registry);
    CHECK_INT(peg_registry_register(registry, tool, false, NULL), PEG_OK);
    CHECK_INT(give(registry, ephemeral_named("x")), PEG_OK);

    CHECK_STR(order(registry), "a x");
    peg_tool_unref(tool);
    peg_registry_unref(registry);
}

/* The reference remembers such a name; we do what its documentation says. */
TEST(hiding_a_name_that_is_not_there_does_nothing_then_or_later)
{
    const char *const names[] = {"later", "a", NULL, ""};
    peg_registry *registry = registry_of("a");

    CHECK_INT(peg_registry_hide(registry, names, 4, NULL), PEG_OK);
    CHECK_INT(peg_registry_set_hidden(registry, names, 4, NULL), PEG_OK);
    CHECK_INT(give(registry, tool_named("later")), PEG_OK);

    CHECK_STR(order(registry), "(a) later");
    peg_registry_unref(registry);
}

TEST(hiding_one_name_twice_at_once_is_hiding_it)
{
    const char *const names[] = {"a", "a"};
    peg_registry *other;
    peg_registry *registry = shared_registry_of("a b", &other);

    CHECK_INT(peg_registry_hide(registry, names, 2, NULL), PEG_OK);
    CHECK_STR(order(registry), "(a) b");
    CHECK_INT(peg_registry_unhide(registry, names, 2, NULL), PEG_OK);
    CHECK_STR(order(registry), "a b");
    peg_registry_unref(registry);
    peg_registry_unref(other);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST(registry_has_a_limit_that_is_named)
{
    peg_tool *tool = tool_named("a");
    peg_registry *registry = registry_of("a b");
    peg_registry *more = NULL;
    peg_tool *other = tool_named("c");
    peg_error error;

    CHECK_INT(peg_registry_new(&tool, (size_t)PEG_LIMIT_REGISTRY_TOOLS + 1, &more, &error),
              PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_REGISTRY_FULL");
    CHECK(strstr(error.message, "100000 tools") != NULL);

    /* As if it were full: counting up to it would take a second. */
    registry->layers.n = PEG_LIMIT_REGISTRY_TOOLS;
    CHECK_INT(peg_registry_register(registry, other, false, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_REGISTRY_FULL");
    CHECK_INT(peg_registry_register(registry, tool, true, &error), PEG_OK);
    registry->layers.n = 2;
    CHECK_STR(order(registry), "a b");
    peg_tool_unref(tool);
    peg_tool_unref(other);
    peg_registry_unref(registry);
}

TEST(registry_does_not_grow_while_tools_come_and_go)
{
    peg_registry *registry = registry_of("a");
    char name[16];

    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof(name), "t%d", i % 100);
        CHECK_INT(give(registry, tool_named(name)), PEG_OK);
        CHECK_INT(unregister(registry, name), PEG_OK);
    }

    CHECK_STR(order(registry), "a");
    CHECK(registry->layers.base->capacity <= 16);
    peg_registry_unref(registry);
}

/* ---- the host is never called under the lock ------------------------------------------------- */

static void look_around(void *user)
{
    peg_registry *registry = user;
    peg_tool_list list;

    CHECK(!has(registry, "a"));
    CHECK_INT(peg_registry_all(registry, &list, NULL), PEG_OK);
    peg_tool_list_free(&list);
    CHECK_INT(give(registry, tool_named("b")), PEG_OK);
}

TEST(tool_that_dies_may_use_the_registry_it_was_in)
{
    peg_registry *registry = registry_of("");
    const peg_tool_def lasting = {PEG_TOOL_DEF_INIT, .user = registry, .user_free = look_around};
    const peg_tool_def fleeting = {PEG_TOOL_DEF_INIT, .user = registry, .user_free = look_around,
                                   .ephemeral = true};

    CHECK_INT(give(registry, tool_of(&lasting, "a", NULL)), PEG_OK);
    CHECK_INT(unregister(registry, "a"), PEG_OK);
    CHECK_STR(order(registry), "b");

    CHECK_INT(unregister(registry, "b"), PEG_OK);
    CHECK_INT(give(registry, tool_of(&fleeting, "a", NULL)), PEG_OK);
    peg_registry_prune_ephemeral(registry);
    CHECK_STR(order(registry), "b");
    peg_registry_unref(registry);
}

/* ---- observers ---------------------------------------------------------------------------------
 */

struct counting {
    struct peg__registry_observer observer; /* the first member */
    unsigned n;
};

static void count_change(struct peg__registry_observer *observer)
{
    ((struct counting *)observer)->n++;
}

TEST(observer_hears_of_every_change_and_of_nothing_else)
{
    struct counting counting = {.observer.fn = count_change};
    const char *const names[] = {"a"};
    peg_registry *registry = registry_like("", NULL);
    peg_tool *a = tool_named("a");

    peg__registry_observe(registry, &counting.observer);
    CHECK_INT(peg_registry_unregister(registry, peg_cstr("a"), NULL), PEG_OK);
    peg_registry_prune_ephemeral(registry);
    CHECK_INT(counting.n, 0);
    CHECK_INT(peg_registry_register(registry, a, false, NULL), PEG_OK);
    CHECK_INT(counting.n, 1);
    CHECK_INT(peg_registry_register(registry, a, false, NULL), PEG_EEXISTS);
    CHECK_INT(counting.n, 1);
    CHECK_INT(peg_registry_register(registry, a, true, NULL), PEG_OK);
    CHECK_INT(peg_registry_hide(registry, names, 1, NULL), PEG_OK);
    CHECK_INT(counting.n, 3);
    CHECK_INT(peg_registry_unregister(registry, peg_cstr("a"), NULL), PEG_OK);
    CHECK_INT(counting.n, 4);
    peg__registry_unobserve(registry, &counting.observer);
    CHECK_INT(peg_registry_register(registry, a, false, NULL), PEG_OK);
    CHECK_INT(counting.n, 4);
    peg_tool_unref(a);
    peg_registry_unref(registry);
}
