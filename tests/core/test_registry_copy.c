/* SPDX-License-Identifier: Apache-2.0 */

/* Copies share what they can, and nothing that a change could reach. */

#include "registry_world.h"

/* Room for the names n0, n1, ... of a registry of this size, as order() tells them. */
enum { MANY = 300 };

static peg_registry *registry_of_many(int n)
{
    peg_registry *registry = registry_of("");
    char name[16];

    for (int i = 0; registry && i < n; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        if (give(registry, tool_named(name)))
            return peg_registry_unref(registry);
    }
    return registry;
}

static peg_registry *copy_of(peg_registry *registry)
{
    peg_registry *copy = NULL;

    CHECK_INT(peg_registry_copy(registry, &copy, NULL), PEG_OK);
    return copy;
}

TEST(copy_has_the_same_tools_in_the_same_order)
{
    peg_registry *registry = registry_of("a b ~x c");
    peg_registry *copy;
    peg_tool *tool = get(registry, "b");

    CHECK_INT(hide(registry, "c"), PEG_OK);
    copy = copy_of(registry);

    CHECK_STR(order(copy), "a b x (c)");
    CHECK_INT(peg_registry_len(copy), 4);
    CHECK(holds(copy, "b", tool));
    peg_tool_unref(tool);
    peg_registry_unref(registry);
    CHECK_STR(order(copy), "a b x (c)");
    peg_registry_unref(copy);
}

/* G43 */
TEST(copy_and_original_do_not_see_each_others_changes)
{
    peg_registry *registry = registry_of("a b c d");
    peg_registry *copy = copy_of(registry);
    peg_tool *tool = tool_named("b");

    CHECK_INT(unregister(copy, "a"), PEG_OK);
    CHECK_INT(peg_registry_register(copy, tool, true, NULL), PEG_OK);
    CHECK_INT(hide(copy, "c"), PEG_OK);
    CHECK_INT(give(copy, tool_named("e")), PEG_OK);
    CHECK_STR(order(registry), "a b c d");
    CHECK(!holds(registry, "b", tool));
    CHECK(!has(registry, "e"));

    CHECK_INT(unregister(registry, "d"), PEG_OK);
    CHECK_INT(give(registry, tool_named("f")), PEG_OK);
    CHECK_INT(hide(registry, "a"), PEG_OK);
    CHECK_STR(order(registry), "(a) b c f");
    CHECK_STR(order(copy), "b (c) d e");
    CHECK_INT(peg_registry_len(copy), 4);
    CHECK(holds(copy, "b", tool));
    peg_tool_unref(tool);
    peg_registry_unref(registry);
    peg_registry_unref(copy);
}

TEST(copy_of_a_copy_has_the_changes_of_both)
{
    peg_registry *registry = registry_of("a b c ~x");
    peg_registry *middle = copy_of(registry);
    peg_registry *last;

    CHECK_INT(unregister(middle, "b"), PEG_OK);
    CHECK_INT(hide(middle, "c"), PEG_OK);
    CHECK_INT(give(middle, ephemeral_named("y")), PEG_OK);
    last = copy_of(middle);
    CHECK_INT(give(last, tool_named("d")), PEG_OK);
    peg_registry_prune_ephemeral(last);

    CHECK_STR(order(registry), "a b c x");
    CHECK_STR(order(middle), "a (c) x y");
    CHECK_STR(order(last), "a (c) d");
    peg_registry_unref(middle);
    peg_registry_unref(registry);
    CHECK_STR(order(last), "a (c) d");
    peg_registry_unref(last);
}

TEST(copy_takes_a_removed_tool_back_at_the_end)
{
    peg_registry *other;
    peg_registry *registry = shared_registry_of("a b c", &other);
    peg_tool *tool = get(registry, "a");

    CHECK_INT(unregister(registry, "a"), PEG_OK);
    CHECK_INT(peg_registry_register(registry, tool, false, NULL), PEG_OK);
    CHECK_STR(order(registry), "b c a");
    CHECK_INT(unregister(registry, "a"), PEG_OK);
    CHECK_STR(order(registry), "b c");
    CHECK(!has(registry, "a"));
    CHECK_INT(peg_registry_register(registry, tool, false, NULL), PEG_OK);
    CHECK_STR(order(registry), "b c a");
    CHECK_INT(peg_registry_len(registry), 3);
    peg_tool_unref(tool);
    peg_registry_unref(registry);
    peg_registry_unref(other);
}

/* T60 */
TEST(pruning_a_copy_leaves_the_original_as_it_is)
{
    peg_registry *registry = registry_of("a ~x");
    peg_registry *copy = copy_of(registry);

    peg_registry_prune_ephemeral(copy);
    CHECK_STR(order(copy), "a");
    CHECK_STR(order(registry), "a x");

    peg_registry_unref(copy);
    copy = copy_of(registry);
    peg_registry_prune_ephemeral(registry);
    CHECK_STR(order(copy), "a x");
    CHECK_STR(order(registry), "a");
    peg_registry_unref(copy);
    peg_registry_unref(registry);
}

TEST(copy_that_is_changed_a_lot_gets_a_base_of_its_own)
{
    peg_registry *registry = registry_of_many(MANY);
    peg_registry *copy = copy_of(registry);
    char name[16];

    for (int i = 0; i < MANY; i += 2) {
        snprintf(name, sizeof(name), "n%d", i);
        CHECK_INT(unregister(copy, name), PEG_OK);
        snprintf(name, sizeof(name), "m%d", i);
        CHECK_INT(give(copy, tool_named(name)), PEG_OK);
        CHECK(copy->layers.n_patches + (copy->layers.added ? copy->layers.added->n : 0) <=
              PEG__MAX_CHANGES);
    }

    CHECK(copy->layers.base != registry->layers.base);
    CHECK_INT(peg_registry_len(copy), MANY);
    CHECK_INT(peg_registry_len(registry), MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        CHECK_INT(has(copy, name), i % 2);
        CHECK(has(registry, name));
    }
    peg_registry_unref(copy);
    peg_registry_unref(registry);
}

TEST(many_marks_on_a_copy_are_all_kept)
{
    peg_registry *registry = registry_of_many(MANY);
    peg_registry *copy = copy_of(registry);
    static char names[MANY][16];
    const char *list[MANY];
    peg_tool_list hidden;

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        list[i] = names[i];
    }
    CHECK_INT(peg_registry_hide(copy, list, MANY, NULL), PEG_OK);
    CHECK_INT(peg_registry_hidden(copy, &hidden, NULL), PEG_OK);
    CHECK_INT(hidden.len, MANY);
    peg_tool_list_free(&hidden);
    CHECK_INT(peg_registry_hidden(registry, &hidden, NULL), PEG_OK);
    CHECK_INT(hidden.len, 0);
    peg_tool_list_free(&hidden);

    CHECK_INT(peg_registry_set_hidden(copy, list + 7, 1, NULL), PEG_OK);
    CHECK_INT(peg_registry_hidden(copy, &hidden, NULL), PEG_OK);
    CHECK_STR(names_in(&hidden), "n7");
    peg_tool_list_free(&hidden);
    peg_registry_unref(copy);
    peg_registry_unref(registry);
}

/* ---- what it costs --------------------------------------------------------------------------- */

TEST(copy_and_its_first_change_take_the_same_memory_for_any_number_of_tools)
{
    static const int sizes[] = {1, MANY};
    size_t blocks[2];
    size_t bytes[2];

    for (int i = 0; i < 2; i++) {
        peg_registry *registry = registry_of_many(sizes[i]);
        peg_tool *tool = tool_named("new");
        const size_t before = peg__mem_live();
        peg_registry *copy = copy_of(registry);

        CHECK_INT(peg_registry_register(copy, tool, false, NULL), PEG_OK);
        CHECK_INT(unregister(copy, "n0"), PEG_OK);
        blocks[i] = peg__mem_live() - before;
        bytes[i] = copy->layers.added->capacity + copy->layers.patches_capacity;
        CHECK(copy->layers.base == registry->layers.base);
        peg_registry_unref(copy);
        peg_registry_unref(registry);
        peg_tool_unref(tool);
    }

    CHECK_INT(blocks[0], blocks[1]);
    CHECK_INT(bytes[0], bytes[1]);
}

TEST(registry_that_nobody_shares_changes_its_base)
{
    peg_registry *registry = registry_of_many(MANY);
    const struct peg__table *base = registry->layers.base;
    peg_registry *copy = copy_of(registry);

    peg_registry_unref(copy);
    CHECK_INT(unregister(registry, "n0"), PEG_OK);
    CHECK_INT(give(registry, tool_named("new")), PEG_OK);

    CHECK(registry->layers.base == base);
    CHECK_INT(registry->layers.n_patches, 0);
    CHECK(!registry->layers.added);
    peg_registry_unref(registry);
}

/* ---- against a model that does it the simple way --------------------------------------------- */

/* Names enough for more changes than layers take. */
enum { N_NAMES = 90, N_REGISTRIES = 3, N_STEPS = 20000 };

struct simple {
    peg_tool *tools[N_NAMES]; /* in order; borrowed */
    bool is_hidden[N_NAMES];
    int n;
};

static char name_texts[N_NAMES][8];
static peg_tool *pool[N_NAMES][3]; /* of each name: lasting, lasting, ephemeral */

static uint32_t roll(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525 + 1013904223;
    return (uint32_t)(((uint64_t)(*state >> 8) * below) >> 24);
}

static int simple_find(const struct simple *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(peg_tool_name(s->tools[i]), name))
            return i;
    return -1;
}

static void simple_remove(struct simple *s, int at)
{
    for (int i = at; i + 1 < s->n; i++) {
        s->tools[i] = s->tools[i + 1];
        s->is_hidden[i] = s->is_hidden[i + 1];
    }
    s->n--;
}

static void simple_register(struct simple *s, peg_tool *tool)
{
    const int at = simple_find(s, peg_tool_name(tool));

    if (at >= 0) {
        s->tools[at] = tool;
    } else {
        s->is_hidden[s->n] = false;
        s->tools[s->n++] = tool;
    }
}

static void simple_prune(struct simple *s)
{
    for (int i = s->n - 1; i >= 0; i--)
        if (peg_tool_is_ephemeral(s->tools[i]))
            simple_remove(s, i);
}

static void simple_absorb(struct simple *s, const struct simple *source, bool replaces)
{
    for (int i = 0; i < source->n; i++) {
        const int at = simple_find(s, peg_tool_name(source->tools[i]));

        if (at < 0 || replaces)
            simple_register(s, source->tools[i]);
        if (source->is_hidden[i])
            s->is_hidden[simple_find(s, peg_tool_name(source->tools[i]))] = true;
    }
}

static void check_equal(peg_registry *registry, const struct simple *s)
{
    struct peg__walk walk = {.layers = &registry->layers};
    int i = 0;

    for (; peg__layers_next(&walk); i++) {
        CHECK(i < s->n);
        CHECK(walk.spot.tool == s->tools[i]);
        CHECK_INT(walk.spot.is_hidden, s->is_hidden[i]);
        CHECK(holds(registry, peg_tool_name(s->tools[i]), s->tools[i]));
    }
    CHECK_INT(i, s->n);
    CHECK_INT(peg_registry_len(registry), s->n);
    for (int name = 0; name < N_NAMES; name++)
        CHECK_INT(has(registry, name_texts[name]), simple_find(s, name_texts[name]) >= 0);
}

static void step(peg_registry **registry, struct simple *s, peg_registry *source,
                 const struct simple *source_simple, uint32_t *state)
{
    const uint32_t which = roll(state, N_NAMES);
    const char *name = name_texts[which];
    peg_tool *tool = pool[which][roll(state, 3)];
    const int at = simple_find(s, name);
    const uint32_t what = roll(state, 100);

    if (what < 35) {
        CHECK_INT(peg_registry_register(*registry, tool, true, NULL), PEG_OK);
        simple_register(s, tool);
    } else if (what < 60) {
        CHECK_INT(unregister(*registry, name), PEG_OK);
        if (at >= 0)
            simple_remove(s, at);
    } else if (what < 75) {
        CHECK_INT(hide(*registry, name), PEG_OK);
        if (at >= 0)
            s->is_hidden[at] = true;
    } else if (what < 85) {
        CHECK_INT(peg_registry_unhide(*registry, &name, 1, NULL), PEG_OK);
        if (at >= 0)
            s->is_hidden[at] = false;
    } else if (what < 87) {
        CHECK_INT(peg_registry_set_hidden(*registry, &name, 1, NULL), PEG_OK);
        for (int i = 0; i < s->n; i++)
            s->is_hidden[i] = i == at;
    } else if (what < 88) {
        peg_registry_prune_ephemeral(*registry);
        simple_prune(s);
    } else if (what < 89) {
        const bool replaces = roll(state, 2);

        CHECK_INT(peg_registry_absorb(*registry, source,
                                      replaces ? PEG_COLLISION_REPLACE : PEG_COLLISION_KEEP, NULL),
                  PEG_OK);
        simple_absorb(s, source_simple, replaces);
    } else if (what < 90) {
        peg_registry_unref(*registry);
        CHECK_INT(peg_registry_copy(source, registry, NULL), PEG_OK);
        *s = *source_simple;
    }
}

TEST(registries_do_what_the_simple_model_does_over_many_random_changes)
{
    peg_registry *registries[N_REGISTRIES] = {NULL};
    struct simple simples[N_REGISTRIES] = {0};
    uint32_t state = 20250117;

    for (int i = 0; i < N_NAMES; i++) {
        snprintf(name_texts[i], sizeof(name_texts[i]), "t%d", i);
        pool[i][0] = tool_named(name_texts[i]);
        pool[i][1] = tool_named(name_texts[i]);
        pool[i][2] = ephemeral_named(name_texts[i]);
    }
    for (int i = 0; i < N_REGISTRIES; i++)
        registries[i] = registry_of("");

    for (int i = 0; i < N_STEPS; i++) {
        const uint32_t at = roll(&state, N_REGISTRIES);
        const uint32_t other = roll(&state, N_REGISTRIES);

        if (at != other)
            step(&registries[at], &simples[at], registries[other], &simples[other], &state);
        for (int k = 0; i % 50 == 0 && k < N_REGISTRIES; k++)
            check_equal(registries[k], &simples[k]);
    }

    for (int i = 0; i < N_REGISTRIES; i++)
        peg_registry_unref(registries[i]);
    for (int i = 0; i < N_NAMES; i++)
        for (int k = 0; k < 3; k++)
            peg_tool_unref(pool[i][k]);
}

/* ---- memory ---------------------------------------------------------------------------------- */

TORTURE(registry_is_as_it_was_when_a_copy_runs_out_of_memory)
{
    peg_registry *registry = registry_of("a b ~x");
    peg_registry *middle = NULL;
    peg_registry *copy = NULL;
    peg_status status = registry ? peg_registry_copy(registry, &middle, NULL) : PEG_ENOMEM;

    if (!status && !(status = hide(middle, "a")) && !(status = give(middle, tool_named("c"))))
        status = peg_registry_copy(middle, &copy, NULL);
    if (status == PEG_OK)
        CHECK_STR(order(copy), "(a) b x c");
    peg_registry_unref(copy);
    peg_registry_unref(middle);
    peg_registry_unref(registry);
    return status;
}

/* One change on a base of one's own, or one that is shared. */
static peg_status change_one(peg_registry *registry, peg_tool *tool, int which)
{
    const char *const names[] = {"a", "c"};

    switch (which) {
    case 0:
        return peg_registry_register(registry, tool, true, NULL);
    case 1:
        return unregister(registry, "b");
    case 2:
        return peg_registry_hide(registry, names, 2, NULL);
    case 3:
        return peg_registry_set_hidden(registry, names, 2, NULL);
    default:
        return peg_registry_clear_hidden(registry, NULL);
    }
}

static peg_status change_all(peg_registry *registry)
{
    peg_tool *known = tool_named("b");
    peg_tool *fresh = tool_named("d");
    peg_status status = known && fresh ? PEG_OK : PEG_ENOMEM;

    for (int i = 0; i < 10 && status == PEG_OK; i++) {
        char before[64];

        snprintf(before, sizeof(before), "%.*s", PEG_ARG(order(registry)));
        status = change_one(registry, i < 5 ? fresh : known, i % 5);
        if (status)
            CHECK_STR(order(registry), before);
    }
    peg_tool_unref(known);
    peg_tool_unref(fresh);
    return status;
}

TORTURE(registry_of_ones_own_is_as_it_was_when_a_change_runs_out_of_memory)
{
    peg_registry *registry = registry_of("a b ~x c");
    const peg_status status = registry ? change_all(registry) : PEG_ENOMEM;

    peg_registry_unref(registry);
    return status;
}

TORTURE(registry_that_is_shared_is_as_it_was_when_a_change_runs_out_of_memory)
{
    peg_registry *other = NULL;
    peg_registry *registry = shared_registry_of("a b ~x c", &other);
    const peg_status status = registry ? change_all(registry) : PEG_ENOMEM;

    if (registry)
        CHECK_STR(order(other), "a b x c");
    peg_registry_unref(registry);
    peg_registry_unref(other);
    return status;
}

TORTURE(registry_is_as_it_was_when_making_a_base_of_its_own_runs_out_of_memory)
{
    peg_registry *registry = registry_of_many(80);
    peg_registry *copy = NULL;
    peg_status status = registry ? peg_registry_copy(registry, &copy, NULL) : PEG_ENOMEM;
    size_t n = 80;

    for (int i = 0; i < 70 && status == PEG_OK; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%d", i);
        status = unregister(copy, name);
        n -= status == PEG_OK;
    }
    if (copy)
        CHECK_INT(peg_registry_len(copy), n);
    peg_registry_unref(copy);
    peg_registry_unref(registry);
    return status;
}

TORTURE(lists_survive_any_allocation_failure)
{
    peg_registry *registry = registry_of("a b");
    peg_tool_list all = {0};
    peg_tool_list visible = {0};
    peg_status status = registry ? peg_registry_all(registry, &all, NULL) : PEG_ENOMEM;

    if (status == PEG_OK)
        status = peg_registry_visible(registry, &visible, NULL);
    peg_tool_list_free(&all);
    peg_tool_list_free(&visible);
    peg_registry_unref(registry);
    return status;
}

TORTURE(registry_of_a_list_survives_any_allocation_failure)
{
    peg_tool *tools[] = {tool_named("a"), tool_named("b")};
    peg_registry *registry = NULL;
    peg_status status = tools[0] && tools[1] ? PEG_OK : PEG_ENOMEM;

    if (status == PEG_OK)
        status = peg_registry_new(tools, 2, &registry, NULL);
    peg_registry_unref(registry);
    peg_tool_unref(tools[0]);
    peg_tool_unref(tools[1]);
    return status;
}
