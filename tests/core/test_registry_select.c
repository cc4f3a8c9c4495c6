/* SPDX-License-Identifier: Apache-2.0 */

#include "registry_world.h"

/* G55 */
TEST(select_takes_exactly_what_is_asked_for_in_that_order)
{
    const char *const names[] = {"c", "a"};
    const char *const hidden = "a";
    peg_registry *registry = registry_of("a b c");
    peg_registry *selected = NULL;

    CHECK_INT(peg_registry_hide(registry, &hidden, 1, NULL), PEG_OK);
    CHECK_INT(peg_registry_select(registry, names, 2, &selected, NULL), PEG_OK);
    CHECK_STR(order(selected), "c (a)");
    CHECK_INT(peg_registry_len(registry), 3);
    peg_registry_unref(selected);
    peg_registry_unref(registry);
}

/* G55 */
TEST(select_names_what_is_not_registered)
{
    const char *const names[] = {"a", "nope"};
    peg_registry *registry = registry_of("a b");
    peg_registry *selected = NULL;
    peg_error error;

    CHECK_INT(peg_registry_select(registry, names, 2, &selected, &error), PEG_ENOTFOUND);
    CHECK_STR(peg__str(error.code), "E_TOOL_NOT_FOUND");
    CHECK(strstr(error.message, "'nope'"));
    CHECK(!selected);
    peg_registry_unref(registry);
}

TEST(select_refuses_a_name_twice_and_takes_no_names_at_all)
{
    const char *const names[] = {"a", "a"};
    peg_registry *registry = registry_of("a b");
    peg_registry *selected = NULL;

    CHECK_INT(peg_registry_select(registry, names, 2, &selected, NULL), PEG_EEXISTS);
    CHECK_INT(peg_registry_select(registry, NULL, 0, &selected, NULL), PEG_OK);
    CHECK_INT(peg_registry_len(selected), 0);
    peg_registry_unref(selected);
    peg_registry_unref(registry);
}

TORTURE(select_survives_any_allocation_failure)
{
    const char *const names[] = {"b", "a"};
    const char *const hidden = "a";
    peg_registry *registry = registry_of("a b c");
    peg_registry *selected = NULL;
    peg_status status = PEG_ENOMEM;

    if (registry)
        status = peg_registry_hide(registry, &hidden, 1, NULL);
    if (!status)
        status = peg_registry_select(registry, names, 2, &selected, NULL);
    peg_registry_unref(selected);
    peg_registry_unref(registry);
    return status;
}
