/* SPDX-License-Identifier: Apache-2.0 */

/* A registry per turn: copies, changes after a copy, and look-ups, by size. */

#include "bench.h"

struct pair {
    peg_registry *baseline;
    peg_registry *copy;
    peg_tool *extra;
    const char *name;
};

static void copy_once(void *user)
{
    struct pair *p = user;
    peg_registry *copy;

    must(peg_registry_copy(p->baseline, &copy, NULL), "copy");
    peg_registry_unref(copy);
}

/* What a middleware does: a tool more, a tool less, one hidden. */
static void edit_once(void *user)
{
    struct pair *p = user;
    const char *hidden = "tool_0";
    peg_registry *copy;

    must(peg_registry_copy(p->baseline, &copy, NULL), "copy");
    must(peg_registry_register(copy, p->extra, false, NULL), "register");
    must(peg_registry_unregister(copy, peg_cstr(p->name), NULL), "unregister");
    must(peg_registry_hide(copy, &hidden, 1, NULL), "hide");
    peg_registry_unref(copy);
}

static void get_once(void *user)
{
    struct pair *p = user;

    peg_tool_unref(peg_registry_get(p->baseline, peg_cstr(p->name)));
}

static void measure(const struct bench *bench, size_t n)
{
    struct pair p = {.name = "tool_7"};
    peg_tool **tools = make_tools(n);
    peg_tool **extra = make_tools(n + 1);
    char name[64];

    must(peg_registry_new(tools, n, &p.baseline, NULL), "registry");
    p.extra = extra[n];
    snprintf(name, sizeof(name), "copy for a turn, %zu tools", n);
    report(bench, "registry", name, fastest(bench, 1000, copy_once, &p), "ns");
    snprintf(name, sizeof(name), "copy, register, unregister, hide, %zu tools", n);
    report(bench, "registry", name, fastest(bench, 100, edit_once, &p), "ns");
    snprintf(name, sizeof(name), "look up, %zu tools", n);
    report(bench, "registry", name, fastest(bench, 1000, get_once, &p), "ns");
    peg_registry_unref(p.baseline);
    free_tools(tools, n);
    free_tools(extra, n + 1);
}

void bench_registries(const struct bench *bench)
{
    printf("registries\n");
    measure(bench, 10);
    measure(bench, 1000);
    measure(bench, 10000);
}
