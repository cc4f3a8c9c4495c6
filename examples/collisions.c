/* SPDX-License-Identifier: Apache-2.0 */

/* Two tools of one name: what register, merge and absorb do about it. */

#include <pegboard/pegboard.h>
#include <stdio.h>

static void find(peg_call *call, const peg_json *args, void *user)
{
    (void)user;
    peg_call_reply_json(call, args);
}

static peg_status make(const char *name, const char *version, peg_collision on_collision,
                       peg_tool **ret_tool, peg_error *reterr)
{
    peg_tool_def def = {PEG_TOOL_DEF_INIT, name, "Finds things", .run = find};

    def.version = version;
    def.on_collision = on_collision; /* what the tool wishes when it comes into a merge */
    return peg_tool_new(&def, ret_tool, reterr);
}

static void show(const char *what, peg_status status, const peg_error *error, peg_registry *tools)
{
    peg_tool_list list = {NULL, 0};

    printf("%-25s", what);
    if (status || peg_registry_all(tools, &list, NULL))
        printf(" %s", status ? error->message : "out of memory");
    for (size_t i = 0; i < list.len; i++)
        printf(" %s@%s", peg_tool_name(list.items[i]), peg_tool_version(list.items[i]));
    printf("\n");
    peg_tool_list_free(&list);
}

static void merge(const char *what, peg_registry *a, peg_registry *b, peg_collision policy)
{
    peg_registry *const sources[] = {a, b};
    peg_registry *merged = NULL;
    peg_error e;
    peg_status status = peg_registry_merge(sources, 2, policy, &merged, &e);

    show(what, status, &e, merged); /* the sources are as they were, whatever happened */
    peg_registry_unref(merged);
}

int main(void)
{
    peg_tool *t[5] = {NULL};
    peg_registry *files = NULL, *web = NULL, *bold = NULL; /* barrels: tools that belong together */
    peg_error e;
    int failed = make("search", "1", PEG_COLLISION_FAIL, &t[0], &e) ||
                 make("grep", "1", PEG_COLLISION_FAIL, &t[1], &e) ||
                 make("search", "2", PEG_COLLISION_FAIL, &t[2], &e) ||
                 make("crawl", "2", PEG_COLLISION_FAIL, &t[3], &e) ||
                 make("search", "3", PEG_COLLISION_REPLACE, &t[4], &e) ||
                 peg_registry_new(&t[0], 2, &files, &e) || peg_registry_new(&t[2], 2, &web, &e) ||
                 peg_registry_new(&t[4], 1, &bold, &e);
    if (failed) {
        fprintf(stderr, "%s: %s\n", e.code, e.message);
    } else {
        show("files", PEG_OK, &e, files);
        merge("merge web", files, web, PEG_COLLISION_FAIL);
        merge("merge web, keep", files, web, PEG_COLLISION_KEEP);
        merge("merge web, replace", files, web, PEG_COLLISION_REPLACE);
        merge("merge bold, keep", files, bold, PEG_COLLISION_KEEP);
        show("register search@3", peg_registry_register(files, t[4], false, &e), &e, files);
        show("register, overwrite", peg_registry_register(files, t[4], true, &e), &e, files);
        show("absorb web, keep", peg_registry_absorb(files, web, PEG_COLLISION_KEEP, &e), &e,
             files);
    }
    peg_registry_unref(files);
    peg_registry_unref(web);
    peg_registry_unref(bold);
    for (size_t i = 0; i < 5; i++)
        peg_tool_unref(t[i]);
    return failed;
}
