/* SPDX-License-Identifier: Apache-2.0 */

/* Several manifests: what is wrong with one of them, or with two together. */

#include "cli/tools/manifests.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "pegboard/tool_config.h"
#include "pegboard/yaml.h"
#include "json/json.h"

int manifests_complain(const char *path, const peg_error *error)
{
    struct peg__buf place = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    int answer;

    cli_put_place(&place, path, error);
    answer = remote_complain_local(place.status ? path : place.ptr, error);
    peg__buf_free(&place);
    return answer;
}

static void warn_of_tool(const char *tool, const char *message, void *user)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_printf(&line, "pegboard: %s: warning: tool '%s': ", *(const char **)user, tool);
    cli_put_safe(&line, peg__str(message));
    cli_print_line(&line);
}

/* What is not here now may be there when it is called: no reason to refuse the manifest. */
void manifests_inspect(const char *path, const peg_manifest *manifest)
{
    peg_error error;

    if (peg_manifest_inspect(manifest, warn_of_tool, &path, &error))
        remote_complain_local(NULL, &error);
}

int manifests_read(char *const *paths, size_t n, struct manifest_file *files)
{
    int answer = CLI_OK;

    for (size_t i = 0; i < n; i++) {
        peg_error error;

        files[i] = (struct manifest_file){.path = paths[i]};
        if (peg_manifest_read(paths[i], &files[i].manifest, &error))
            answer = manifests_complain(paths[i], &error);
    }
    return answer;
}

void manifests_free(struct manifest_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        files[i].manifest = peg_manifest_free(files[i].manifest);
}

/* ---- showing one ---- */

/* The first line of a text. */
static peg_str first_line(const char *text)
{
    return peg__strn(text, strcspn(text, "\n"));
}

static void put_timeout(struct peg__buf *out, int64_t timeout_ms)
{
    char text[PEG_DURATION_TEXT];

    peg_duration_text((timeout_ms > 0 ? timeout_ms : PEG_LIMIT_GATEWAY_CALL_MS) * PEG_NS_PER_MS,
                      text);
    peg__buf_printf(out, " (timeout %s%s)\n", text, timeout_ms > 0 ? "" : " by default");
}

int manifests_print(const char *toolset, const peg_manifest *manifest)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_tool_list tools;
    peg_error error;

    if (peg_registry_visible(peg_manifest_registry(manifest), &tools, &error))
        return remote_complain_local(NULL, &error);
    peg__buf_printf(&out, "toolset %s%s%s: %zu tool%s\n", toolset,
                    peg_manifest_version(manifest)[0] ? " " : "", peg_manifest_version(manifest),
                    tools.len, tools.len == 1 ? "" : "s");
    for (size_t i = 0; i < tools.len; i++) {
        peg__buf_printf(&out, "  %s  ", peg_tool_name(tools.items[i]));
        cli_put_safe(&out, first_line(peg_tool_description(tools.items[i])));
        put_timeout(&out, peg_tool_timeout_ms(tools.items[i]));
    }
    peg_tool_list_free(&tools);
    return remote_print(&out);
}

/* ---- two together ---- */

/* Line and column of a member of a manifest, as the file is now; 0 if that cannot be told. */
static void locate_member(const char *path, const char *pointer, peg_error *ret_place)
{
    const peg_json_options limits = {PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_MANIFEST_BYTES};
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MANIFEST_BYTES);

    *ret_place = (peg_error){.message = ""};
    if (!cli_read_file(path, &text, NULL))
        peg__error_at(ret_place, peg__buf_view(&text),
                      peg__yaml_locate(peg__buf_view(&text), &limits, peg__str(pointer)));
    peg__buf_free(&text);
}

static peg_status reject_clash(const struct manifest_file *first, const char *first_pointer,
                               const struct manifest_file *second, const char *second_pointer,
                               const char *named, peg_error *reterr)
{
    peg_error place;
    struct peg__buf other = PEG__BUF(4096);

    locate_member(first->path, first_pointer, &place);
    cli_put_place(&other, first->path, &place);
    peg__fail(reterr, PEG_EEXISTS, "E_MANIFEST", "%s is also at %.160s: rename one of them", named,
              other.status ? first->path : other.ptr);
    peg__buf_free(&other);
    locate_member(second->path, second_pointer, &place);
    reterr->line = place.line;
    reterr->column = place.column;
    return PEG_EEXISTS;
}

peg_status manifests_check_toolsets(const struct manifest_file *files, size_t n, size_t *ret_at,
                                    peg_error *reterr)
{
    char named[128];

    for (size_t i = 1; i < n; i++) {
        const char *toolset = peg_manifest_toolset(files[i].manifest);

        for (size_t k = 0; k < i; k++) {
            if (strcmp(peg_manifest_toolset(files[k].manifest), toolset) != 0)
                continue;
            *ret_at = i;
            snprintf(named, sizeof(named), "the toolset '%.64s'", toolset);
            return reject_clash(&files[k], "/toolset", &files[i], "/toolset", named, reterr);
        }
    }
    return PEG_OK;
}

/* The place of a tool's name in a manifest; false if it has none of that name. */
static bool point_to_tool(const struct manifest_file *file, const char *name, char pointer[48])
{
    peg_tool_list tools;
    bool is_there = false;

    if (peg_registry_visible(peg_manifest_registry(file->manifest), &tools, NULL))
        return false;
    for (size_t i = 0; i < tools.len && !is_there; i++) {
        is_there = strcmp(peg_tool_name(tools.items[i]), name) == 0;
        snprintf(pointer, 48, "/tools/%zu/name", i);
    }
    peg_tool_list_free(&tools);
    return is_there;
}

static peg_status reject_tool(const struct manifest_file *files, size_t at, const char *name,
                              peg_error *reterr)
{
    char first[48];
    char second[48] = "";
    char named[128];

    snprintf(named, sizeof(named), "the tool '%.64s'", name);
    point_to_tool(&files[at], name, second);
    for (size_t k = 0; k < at; k++) {
        if (point_to_tool(&files[k], name, first))
            return reject_clash(&files[k], first, &files[at], second, named, reterr);
    }
    return peg__fail_nomem(reterr);
}

static peg_status add_tools_of(const struct manifest_file *files, size_t at, peg_registry *registry,
                               peg_error *reterr)
{
    peg_tool_list tools;
    peg_status status =
        peg_registry_visible(peg_manifest_registry(files[at].manifest), &tools, reterr);

    if (status)
        return status;
    for (size_t i = 0; i < tools.len && !status; i++) {
        status = peg_registry_register(registry, tools.items[i], false, reterr);
        if (status == PEG_EEXISTS)
            reject_tool(files, at, peg_tool_name(tools.items[i]), reterr);
    }
    peg_tool_list_free(&tools);
    return status;
}

peg_status manifests_join(const struct manifest_file *files, size_t n, peg_registry **ret_registry,
                          size_t *ret_at, peg_error *reterr)
{
    peg_registry *registry = NULL;
    peg_status status = peg_registry_new(NULL, 0, &registry, reterr);

    for (*ret_at = 0; *ret_at < n && !status; ++*ret_at)
        status = add_tools_of(files, *ret_at, registry, reterr);
    if (status && *ret_at)
        --*ret_at;
    if (status)
        peg_registry_unref(registry);
    else
        *ret_registry = registry;
    return status;
}
