/* SPDX-License-Identifier: Apache-2.0 */

#include "base/limits.h"
#include "registry_world.h"

/* ---- fixture: merge what is given, and look at the result ------------------------------------ */

static const peg_tool_def throwing = {PEG_TOOL_DEF_INIT, .on_collision = PEG_COLLISION_FAIL};
static const peg_tool_def replacing = {PEG_TOOL_DEF_INIT, .on_collision = PEG_COLLISION_REPLACE};
static const peg_tool_def keeping = {PEG_TOOL_DEF_INIT, .on_collision = PEG_COLLISION_KEEP};

/* Which of two tools named "a" wins: 1 or 2; 0 if the merge is refused. */
static int winner(const peg_tool_def *first, const peg_tool_def *second, peg_collision policy)
{
    peg_registry *sources[] = {registry_like("a", first), registry_like("a", second)};
    peg_tool *tools[] = {get(sources[0], "a"), get(sources[1], "a")};
    peg_registry *merged = NULL;
    peg_error error;
    int won = 0;

    if (peg_registry_merge(sources, 2, policy, &merged, &error) == PEG_OK)
        won = holds(merged, "a", tools[0]) ? 1 : 2;
    else
        CHECK_STR(peg__str(error.code), "E_TOOL_ALREADY_REGISTERED");
    for (int i = 0; i < 2; i++) {
        CHECK(holds(sources[i], "a", tools[i]));
        peg_tool_unref(tools[i]);
        peg_registry_unref(sources[i]);
    }
    peg_registry_unref(merged);
    return won;
}

static peg_registry *merge(peg_registry **sources, size_t n, peg_collision policy)
{
    peg_registry *merged = NULL;
    peg_error error;

    CHECK_STATUS(peg_registry_merge(sources, n, policy, &merged, &error), PEG_OK, error);
    return merged;
}

static void unref_all(peg_registry **registries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        peg_registry_unref(registries[i]);
}

/* ---- merging --------------------------------------------------------------------------------- */

/* T45 */
TEST(merge_of_nothing_is_empty)
{
    peg_registry *merged = merge(NULL, 0, PEG_COLLISION_FAIL);

    CHECK_STR(order(merged), "");
    CHECK_INT(peg_registry_len(merged), 0);
    peg_registry_unref(merged);
}

TEST(merge_of_one_is_a_copy)
{
    peg_registry *source = registry_of("a b");
    peg_registry *merged = merge(&source, 1, PEG_COLLISION_FAIL);

    CHECK_INT(unregister(merged, "a"), PEG_OK);
    CHECK_STR(order(merged), "b");
    CHECK_STR(order(source), "a b");
    peg_registry_unref(merged);
    peg_registry_unref(source);
}

/* T46 */
TEST(merge_without_a_clash_goes_from_left_to_right_under_every_policy)
{
    for (int policy = PEG_COLLISION_FAIL; policy <= PEG_COLLISION_KEEP; policy++) {
        peg_registry *sources[] = {registry_of("z y"), registry_of(""), registry_of("b"),
                                   registry_of("a x")};
        peg_registry *merged = merge(sources, 4, (peg_collision)policy);

        CHECK_STR(order(merged), "z y b a x");
        peg_registry_unref(merged);
        unref_all(sources, 4);
    }
}

/* T47, G44 */
TEST(merge_with_a_clash_that_nobody_resolves_fails_and_changes_no_source)
{
    peg_registry *sources[] = {registry_of("a b"), registry_of("c b d")};
    peg_registry *merged = NULL;
    peg_error error;

    CHECK_INT(peg_registry_merge(sources, 2, PEG_COLLISION_FAIL, &merged, &error), PEG_EEXISTS);

    CHECK(!merged);
    CHECK_STR(peg__str(error.code), "E_TOOL_ALREADY_REGISTERED");
    CHECK(strstr(error.message, "'b'") != NULL);
    CHECK_STR(order(sources[0]), "a b");
    CHECK_STR(order(sources[1]), "c b d");
    unref_all(sources, 2);
}

/* T48, G44 */
TEST(merge_option_decides_where_tools_do_not)
{
    CHECK_INT(winner(NULL, NULL, PEG_COLLISION_REPLACE), 2);
    CHECK_INT(winner(NULL, NULL, PEG_COLLISION_KEEP), 1);
    CHECK_INT(winner(NULL, NULL, PEG_COLLISION_FAIL), 0);
}

/* T49 */
TEST(incoming_tool_that_replaces_beats_the_option)
{
    CHECK_INT(winner(NULL, &replacing, PEG_COLLISION_FAIL), 2);
    CHECK_INT(winner(NULL, &replacing, PEG_COLLISION_KEEP), 2);
}

/* T50 */
TEST(incoming_tool_that_keeps_beats_the_option)
{
    CHECK_INT(winner(NULL, &keeping, PEG_COLLISION_REPLACE), 1);
    CHECK_INT(winner(NULL, &keeping, PEG_COLLISION_FAIL), 1);
}

/* T51 */
TEST(incoming_tool_that_throws_leaves_it_to_the_option)
{
    CHECK_INT(winner(NULL, &throwing, PEG_COLLISION_REPLACE), 2);
    CHECK_INT(winner(NULL, &throwing, PEG_COLLISION_KEEP), 1);
}

/* T52 */
TEST(tool_that_is_there_is_never_asked)
{
    CHECK_INT(winner(&keeping, NULL, PEG_COLLISION_REPLACE), 2);
    CHECK_INT(winner(&keeping, NULL, PEG_COLLISION_FAIL), 0);
    CHECK_INT(winner(&replacing, NULL, PEG_COLLISION_KEEP), 1);
    CHECK_INT(winner(&replacing, NULL, PEG_COLLISION_FAIL), 0);
    CHECK_INT(winner(&keeping, &replacing, PEG_COLLISION_FAIL), 2);
    CHECK_INT(winner(&replacing, &keeping, PEG_COLLISION_FAIL), 1);
}

/* T53 */
TEST(one_tool_in_two_registries_is_a_clash_too)
{
    peg_tool *tool = tool_named("a");
    peg_registry *sources[2];
    peg_registry *merged = NULL;

    CHECK_INT(peg_registry_new(&tool, 1, &sources[0], NULL), PEG_OK);
    CHECK_INT(peg_registry_new(&tool, 1, &sources[1], NULL), PEG_OK);

    CHECK_INT(peg_registry_merge(sources, 2, PEG_COLLISION_FAIL, &merged, NULL), PEG_EEXISTS);
    sources[1] = peg_registry_unref(sources[1]);
    sources[1] = peg_registry_ref(sources[0]);
    CHECK_INT(peg_registry_merge(sources, 2, PEG_COLLISION_FAIL, &merged, NULL), PEG_EEXISTS);
    unref_all(sources, 2);
    peg_tool_unref(tool);
}

/* T54 */
TEST(merge_keeps_what_is_ephemeral_and_what_is_hidden)
{
    peg_registry *sources[] = {registry_of("a ~x b"), registry_of("c")};
    peg_registry *merged;

    CHECK_INT(hide(sources[0], "b"), PEG_OK);
    CHECK_INT(hide(sources[1], "c"), PEG_OK);
    merged = merge(sources, 2, PEG_COLLISION_FAIL);
    CHECK_STR(order(merged), "a x (b) (c)");

    peg_registry_prune_ephemeral(merged);
    CHECK_STR(order(merged), "a (b) (c)");
    CHECK_STR(order(sources[0]), "a x (b)");
    peg_registry_unref(merged);
    unref_all(sources, 2);
}

/* T54 */
TEST(name_that_is_hidden_in_any_source_is_hidden_in_the_merge)
{
    static const peg_collision policies[] = {PEG_COLLISION_REPLACE, PEG_COLLISION_KEEP};

    for (int p = 0; p < 2; p++)
        for (int which = 0; which < 2; which++) {
            peg_registry *sources[] = {registry_of("a b"), registry_of("a")};
            peg_registry *merged;

            CHECK_INT(hide(sources[which], "a"), PEG_OK);
            merged = merge(sources, 2, policies[p]);
            CHECK_STR(order(merged), "(a) b");
            peg_registry_unref(merged);
            unref_all(sources, 2);
        }
}

/* T55 */
TEST(clash_of_three_is_resolved_two_by_two_from_the_left)
{
    peg_registry *sources[] = {registry_like("a", &throwing), registry_like("a", &replacing),
                               registry_like("a b", &keeping)};
    peg_tool *second = get(sources[1], "a");
    peg_registry *merged = merge(sources, 3, PEG_COLLISION_FAIL);

    CHECK(holds(merged, "a", second));
    CHECK_STR(order(merged), "a b");
    peg_registry_unref(merged);

    peg_registry_unref(sources[2]);
    sources[2] = registry_of("b a");
    CHECK_INT(peg_registry_merge(sources, 3, PEG_COLLISION_FAIL, &merged, NULL), PEG_EEXISTS);
    CHECK_STR(order(sources[0]), "a");
    peg_tool_unref(second);
    unref_all(sources, 3);
}

TEST(merge_keeps_the_place_of_the_tool_that_is_replaced)
{
    peg_registry *sources[] = {registry_of("a b c"), registry_of("d b a")};
    peg_registry *merged = merge(sources, 2, PEG_COLLISION_REPLACE);

    CHECK_STR(order(merged), "a b c d");
    peg_registry_unref(merged);
    unref_all(sources, 2);
}

TEST(merge_of_many_tools_has_them_all)
{
    enum { N = 200 };
    peg_registry *sources[] = {registry_of(""), registry_of(""), registry_of("")};
    peg_registry *merged;
    char name[16];

    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        CHECK_INT(give(sources[i % 3], tool_named(name)), PEG_OK);
    }
    merged = merge(sources, 3, PEG_COLLISION_FAIL);

    CHECK_INT(peg_registry_len(merged), N);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        CHECK(has(merged, name));
    }
    peg_registry_unref(merged);
    unref_all(sources, 3);
}

TEST(merge_refuses_a_policy_or_a_source_that_is_none)
{
    peg_registry *sources[] = {registry_of("a"), NULL};
    peg_registry *merged = NULL;
    peg_error error;

    CHECK_INT(peg_registry_merge(sources, 1, (peg_collision)7, &merged, &error), PEG_EINVAL);
    CHECK_INT(peg_registry_merge(sources, 2, PEG_COLLISION_KEEP, &merged, &error), PEG_EINVAL);
    CHECK(strstr(error.message, "source 1") != NULL);
    CHECK_INT(peg_registry_absorb(sources[0], sources[0], (peg_collision)-1, &error), PEG_EINVAL);
    CHECK(!merged);
    peg_registry_unref(sources[0]);
}

/* ---- absorbing ------------------------------------------------------------------------------- */

TEST(absorb_merges_into_a_live_registry)
{
    peg_registry *registry = registry_of("a b");
    peg_registry *source = registry_of("b ~x c");
    peg_tool *b = get(source, "b");

    CHECK_INT(hide(source, "c"), PEG_OK);
    CHECK_INT(peg_registry_absorb(registry, source, PEG_COLLISION_REPLACE, NULL), PEG_OK);

    CHECK_STR(order(registry), "a b x (c)");
    CHECK(holds(registry, "b", b));
    CHECK_STR(order(source), "b x (c)");
    CHECK_INT(unregister(source, "b"), PEG_OK);
    CHECK(has(registry, "b"));
    peg_tool_unref(b);
    peg_registry_unref(registry);
    peg_registry_unref(source);
}

TEST(absorb_is_all_or_nothing)
{
    peg_registry *registry = registry_of("a b");
    peg_registry *source = registry_of("c d b e");
    peg_error error;

    CHECK_INT(peg_registry_absorb(registry, source, PEG_COLLISION_FAIL, &error), PEG_EEXISTS);

    CHECK(strstr(error.message, "'b'") != NULL);
    CHECK_STR(order(registry), "a b");
    CHECK_INT(peg_registry_len(registry), 2);
    peg_registry_unref(registry);
    peg_registry_unref(source);
}

TEST(absorb_asks_the_incoming_tool_first)
{
    peg_registry *registry = registry_of("a b");
    peg_registry *keep = registry_like("a", &keeping);
    peg_registry *replace = registry_like("b", &replacing);
    peg_tool *a = get(registry, "a");
    peg_tool *b = get(replace, "b");

    CHECK_INT(peg_registry_absorb(registry, keep, PEG_COLLISION_REPLACE, NULL), PEG_OK);
    CHECK_INT(peg_registry_absorb(registry, replace, PEG_COLLISION_KEEP, NULL), PEG_OK);

    CHECK(holds(registry, "a", a));
    CHECK(holds(registry, "b", b));
    peg_tool_unref(a);
    peg_tool_unref(b);
    peg_registry_unref(registry);
    peg_registry_unref(keep);
    peg_registry_unref(replace);
}

TEST(absorbing_oneself_is_a_clash_or_nothing)
{
    peg_registry *registry = registry_of("a b");

    CHECK_INT(peg_registry_absorb(registry, registry, PEG_COLLISION_FAIL, NULL), PEG_EEXISTS);
    CHECK_INT(peg_registry_absorb(registry, registry, PEG_COLLISION_REPLACE, NULL), PEG_OK);
    CHECK_INT(peg_registry_absorb(registry, registry, PEG_COLLISION_KEEP, NULL), PEG_OK);

    CHECK_STR(order(registry), "a b");
    peg_registry_unref(registry);
}

TEST(absorb_refuses_no_registry_and_no_policy)
{
    peg_registry *registry = registry_of("a");
    peg_error error;

    CHECK_INT(peg_registry_absorb(registry, NULL, PEG_COLLISION_KEEP, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK_INT(peg_registry_absorb(registry, registry, (peg_collision)7, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK_STR(order(registry), "a");
    peg_registry_unref(registry);
}

TEST(absorb_stops_at_the_limit_before_it_changes_anything)
{
    peg_registry *registry = registry_of("a");
    peg_registry *source = registry_of("b");
    peg_error error;

    registry->layers.n = PEG_LIMIT_REGISTRY_TOOLS; /* as if it were full */
    CHECK_INT(peg_registry_absorb(registry, source, PEG_COLLISION_FAIL, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_REGISTRY_FULL");
    CHECK(strstr(error.message, "100000 tools") != NULL);
    registry->layers.n = 1;
    CHECK_STR(order(registry), "a");
    peg_registry_unref(registry);
    peg_registry_unref(source);
}

/* ---- what an owner forged -------------------------------------------------------------------- */

static const char forge[] = "test.forge";

static peg_tool *forged(const char *name)
{
    return tool_of(&(peg_tool_def){PEG_TOOL_DEF_INIT, .ephemeral = true,
                                   .on_collision = PEG_COLLISION_REPLACE},
                   name, forge);
}

/* Replaces what is owned by tools with these two names; NULL: none. */
static peg_status forge_two(peg_registry *registry, const char *one, const char *two,
                            size_t *ret_n_shadowed)
{
    peg_tool *tools[2] = {NULL, NULL};
    size_t n = 0;
    peg_status status = PEG_ENOMEM;

    if (one)
        tools[n++] = forged(one);
    if (two)
        tools[n++] = forged(two);
    if ((n < 1 || tools[0]) && (n < 2 || tools[1]))
        status = peg__registry_replace_owned(registry, forge, tools, n, ret_n_shadowed, NULL);
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
    return status;
}

TEST(forged_tools_replace_those_that_were_forged_before)
{
    peg_registry *registry = registry_of("a");

    CHECK_INT(forge_two(registry, "head", "tail", NULL), PEG_OK);
    CHECK_STR(order(registry), "a head tail");
    CHECK_INT(forge_two(registry, "grep", "tail", NULL), PEG_OK);
    CHECK_STR(order(registry), "a tail grep");
    CHECK_INT(forge_two(registry, NULL, NULL, NULL), PEG_OK);
    CHECK_STR(order(registry), "a");
    CHECK_INT(peg_registry_len(registry), 1);
    peg_registry_unref(registry);
}

TEST(forged_tools_are_new_ones_each_time)
{
    peg_registry *registry = registry_of("");
    peg_tool *before;

    CHECK_INT(forge_two(registry, "head", NULL, NULL), PEG_OK);
    before = get(registry, "head");
    CHECK_INT(forge_two(registry, "head", NULL, NULL), PEG_OK);

    CHECK(!holds(registry, "head", before));
    peg_tool_unref(before);
    peg_registry_unref(registry);
}

TEST(forging_does_not_touch_what_others_have_registered)
{
    peg_registry *registry = registry_of("a ~x");
    peg_tool *theirs =
        tool_of(&(peg_tool_def){PEG_TOOL_DEF_INIT, .ephemeral = true}, "y", "somebody.else");

    CHECK_INT(peg_registry_register(registry, theirs, false, NULL), PEG_OK);
    CHECK_INT(forge_two(registry, "head", NULL, NULL), PEG_OK);
    CHECK_INT(forge_two(registry, NULL, NULL, NULL), PEG_OK);

    CHECK_STR(order(registry), "a x y");
    peg_tool_unref(theirs);
    peg_registry_unref(registry);
}

TEST(forged_tool_does_not_take_the_name_of_a_hosts_tool)
{
    peg_registry *registry = registry_of("head ~tail");
    peg_tool *head = get(registry, "head");
    size_t n_shadowed = 99;

    CHECK_INT(forge_two(registry, "head", "tail", &n_shadowed), PEG_OK);
    CHECK_INT(n_shadowed, 2);
    CHECK_STR(order(registry), "head tail");
    CHECK(holds(registry, "head", head));

    CHECK_INT(unregister(registry, "head"), PEG_OK);
    CHECK_INT(forge_two(registry, "head", "grep", &n_shadowed), PEG_OK);
    CHECK_INT(n_shadowed, 0);
    CHECK_STR(order(registry), "tail head grep");
    peg_tool_unref(head);
    peg_registry_unref(registry);
}

TEST(forged_tools_keep_their_hidden_marks)
{
    peg_registry *registry = registry_of("a");

    CHECK_INT(forge_two(registry, "head", "tail", NULL), PEG_OK);
    CHECK_INT(hide(registry, "tail"), PEG_OK);
    CHECK_INT(forge_two(registry, "tail", "grep", NULL), PEG_OK);

    CHECK_STR(order(registry), "a (tail) grep");
    peg_registry_unref(registry);
}

TEST(of_two_forged_tools_with_one_name_the_later_counts)
{
    peg_registry *registry = registry_of("");
    peg_tool *tools[] = {forged("head"), forged("head")};

    CHECK_INT(peg__registry_replace_owned(registry, forge, tools, 2, NULL, NULL), PEG_OK);

    CHECK_STR(order(registry), "head");
    CHECK(holds(registry, "head", tools[1]));
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
    peg_registry_unref(registry);
}

TEST(forged_tools_on_a_shared_base_are_the_copys_own)
{
    peg_registry *other;
    peg_registry *registry = shared_registry_of("a b", &other);
    peg_registry *later;

    CHECK_INT(forge_two(registry, "head", "tail", NULL), PEG_OK);
    CHECK_INT(peg_registry_copy(registry, &later, NULL), PEG_OK);
    CHECK_INT(forge_two(registry, "grep", NULL, NULL), PEG_OK);

    CHECK_STR(order(other), "a b");
    CHECK_STR(order(registry), "a b grep");
    CHECK_STR(order(later), "a b head tail");
    peg_registry_prune_ephemeral(later);
    CHECK_STR(order(later), "a b");
    peg_registry_unref(later);
    peg_registry_unref(registry);
    peg_registry_unref(other);
}

TEST(forging_more_tools_than_a_copy_can_have_changes_works)
{
    enum { N = 150 };
    peg_registry *other;
    peg_registry *registry = shared_registry_of("a b", &other);
    peg_tool *tools[N];
    char name[16];

    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "f%d", i);
        tools[i] = forged(name);
    }
    CHECK_INT(peg__registry_replace_owned(registry, forge, tools, N, NULL, NULL), PEG_OK);
    CHECK_INT(peg_registry_len(registry), N + 2);
    CHECK_INT(peg__registry_replace_owned(registry, forge, tools, N / 2, NULL, NULL), PEG_OK);
    CHECK_INT(peg_registry_len(registry), N / 2 + 2);
    CHECK_INT(forge_two(registry, NULL, NULL, NULL), PEG_OK);
    CHECK_STR(order(registry), "a b");
    for (int i = 0; i < N; i++)
        peg_tool_unref(tools[i]);
    peg_registry_unref(registry);
    peg_registry_unref(other);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(merge_survives_any_allocation_failure)
{
    peg_registry *sources[] = {registry_of("a ~x"), registry_of("a b"), registry_of("c")};
    peg_registry *merged = NULL;
    peg_status status = sources[0] && sources[1] && sources[2] ? hide(sources[1], "a") : PEG_ENOMEM;

    if (status == PEG_OK)
        status = peg_registry_merge(sources, 3, PEG_COLLISION_REPLACE, &merged, NULL);
    if (status == PEG_OK)
        CHECK_STR(order(merged), "(a) x b c");
    if (sources[0])
        CHECK_STR(order(sources[0]), "a x");
    peg_registry_unref(merged);
    unref_all(sources, 3);
    return status;
}

TORTURE(absorb_is_all_or_nothing_when_memory_runs_out)
{
    peg_registry *registry = registry_of("a b");
    peg_registry *source = registry_of("b c d e f");
    peg_status status = PEG_ENOMEM;

    if (registry && source)
        status = peg_registry_absorb(registry, source, PEG_COLLISION_REPLACE, NULL);
    if (registry)
        CHECK_STR(order(registry), status ? "a b" : "a b c d e f");
    peg_registry_unref(registry);
    peg_registry_unref(source);
    return status;
}

TORTURE(forging_is_all_or_nothing_when_memory_runs_out)
{
    peg_registry *other = NULL;
    peg_registry *registry = shared_registry_of("a b", &other);
    peg_status status = registry ? forge_two(registry, "head", "tail", NULL) : PEG_ENOMEM;

    if (registry && status)
        CHECK_STR(order(registry), "a b");
    if (status == PEG_OK) {
        status = forge_two(registry, "grep", "tail", NULL);
        CHECK_STR(order(registry), status ? "a b head tail" : "a b tail grep");
    }
    peg_registry_unref(registry);
    peg_registry_unref(other);
    return status;
}

/* ---- all at once -------------------------------------------------------------------------------
 */

TEST(replace_leaves_exactly_the_tools_of_the_other)
{
    peg_registry *registry = registry_of("a b c");
    peg_registry *source = registry_of("d b");
    peg_tool *kept = get(registry, "a");

    CHECK_INT(hide(source, "d"), PEG_OK);
    CHECK_INT(peg_registry_replace(registry, source, NULL), PEG_OK);
    CHECK_STR(order(registry), "(d) b");
    CHECK_INT(peg_registry_len(registry), 2);
    CHECK_INT(give(registry, tool_named("e")), PEG_OK);
    CHECK_STR(order(source), "(d) b"); /* they share nothing that a change could reach */
    CHECK_INT(peg_registry_replace(registry, registry, NULL), PEG_OK);
    CHECK_STR(order(registry), "(d) b e");
    CHECK_INT(peg_registry_replace(registry, NULL, NULL), PEG_EINVAL);
    peg_tool_unref(kept);
    peg_registry_unref(source);
    peg_registry_unref(registry);
}

TORTURE(replace_survives_any_allocation_failure)
{
    peg_registry *registry = registry_of("a b");
    peg_registry *source = registry_of("c");
    peg_status status = PEG_ENOMEM;

    if (registry && source) {
        status = peg_registry_replace(registry, source, NULL);
        CHECK_STR(order(registry), status ? "a b" : "c");
    }
    peg_registry_unref(source);
    peg_registry_unref(registry);
    return status;
}
