/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A manifest goes through its own schema first (manifest_form.c); then each tool becomes a command.
 * Read it from peg_manifest_parse().
 */

#include "pegboard/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/command.h"
#include "pegboard/yaml.h"
#include "tools/manifest_internal.h"
#include "json/json.h"

/* ---- one tool ---- */

static bool note_unset(const struct peg__manifest_reader *r, const peg_json *tool, const char *name)
{
    peg_manifest *manifest = r->manifest;
    struct peg__manifest_unset *unset = peg__arena_alloc_zero(&manifest->arena, sizeof(*unset));

    if (!unset)
        return false;
    unset->name = name;
    unset->tool = peg__arena_copy(&manifest->arena, peg_json_str(peg_json_get(tool, "name")));
    *manifest->last_unset = unset;
    manifest->last_unset = &unset->next;
    return unset->tool;
}

/* What a name of the host stands for is looked up now. */
static peg_status take_env(const struct peg__manifest_reader *r, const peg_json *tool,
                           const char ***ret_env)
{
    struct peg__arena *arena = &r->manifest->arena;
    peg_status status = peg__manifest_list(r, tool, "env", ret_env);
    size_t n = 0;

    for (size_t i = 0; !status && *ret_env && (*ret_env)[i]; i++) {
        const char *name = (*ret_env)[i];
        const char *value;
        char *entry;
        size_t size;

        if (strchr(name, '=')) {
            (*ret_env)[n++] = name;
            continue;
        }
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): hosts do not change them while they make tools */
        value = getenv(name);
        if (!value) {
            if (!note_unset(r, tool, name))
                return peg__fail_nomem(r->reterr);
            continue;
        }
        size = strlen(name) + strlen(value) + 2;
        entry = peg__arena_alloc(arena, size);
        if (!entry)
            return peg__fail_nomem(r->reterr);
        snprintf(entry, size, "%s=%s", name, value);
        (*ret_env)[n++] = entry;
    }
    if (!status && *ret_env)
        (*ret_env)[n] = NULL;
    return status;
}

static peg_status take_directory(const struct peg__manifest_reader *r, const peg_json *tool,
                                 const char **ret_directory)
{
    const char *directory;
    peg_status status = peg__manifest_text(r, tool, "directory", &directory);
    size_t size;
    char *joined;

    if (status)
        return status;
    if (!directory || directory[0] == '/' || !r->folder) {
        *ret_directory = directory ? directory : r->folder;
        return PEG_OK;
    }
    size = strlen(r->folder) + strlen(directory) + 2;
    joined = peg__arena_alloc(&r->manifest->arena, size);
    if (!joined)
        return peg__fail_nomem(r->reterr);
    snprintf(joined, size, "%s/%s", r->folder, directory);
    *ret_directory = joined;
    return PEG_OK;
}

static peg_status take_command(const struct peg__manifest_reader *r, const peg_json *tool,
                               const char ***ret_argv)
{
    const peg_json *command = peg_json_get(tool, "command");
    const peg_json *shell = peg_json_get(tool, "shell");
    const bool wants_shell = shell && peg_json_is_true(shell);
    const char *text;
    peg_status status;

    if (command->kind == PEG_JSON_ARRAY && wants_shell)
        return peg__manifest_fail_tool(r, "/command",
                                       "with shell: true the command is one text, not a list");
    if (command->kind == PEG_JSON_STRING && !wants_shell)
        return peg__manifest_fail_tool(
            r, "/command",
            "the command is a list of words, [program, argument]; a text needs "
            "shell: true");
    if (command->kind == PEG_JSON_ARRAY)
        return peg__manifest_list(r, tool, "command", ret_argv);
    status = peg__manifest_text(r, tool, "command", &text);
    if (status)
        return status;
    *ret_argv = peg__arena_alloc_zero(&r->manifest->arena, 4 * sizeof(**ret_argv));
    if (!*ret_argv)
        return peg__fail_nomem(r->reterr);
    (*ret_argv)[0] = "/bin/sh";
    (*ret_argv)[1] = "-c";
    (*ret_argv)[2] = text;
    return PEG_OK;
}

static void take_output(const peg_json *tool, peg_command_def *def)
{
    const peg_json *output = peg_json_get(tool, "output");
    const bool is_auto = !output || peg__str_is(peg_json_str(output), "auto");

    def->answers_json = output && peg__str_is(peg_json_str(output), "json");
    def->detects_json = is_auto;
}

static bool is_set(const peg_json *tool, const char *name)
{
    const peg_json *value = peg_json_get(tool, name);

    return value && peg_json_is_true(value);
}

/* The parts of a definition: those that describe it, and those that run it. */
static peg_status take_words(const struct peg__manifest_reader *r, const peg_json *tool,
                             peg_command_def *def)
{
    peg_status status = peg__manifest_text(r, tool, "name", &def->tool.name);
    const char **tags = NULL;

    if (!status)
        status = peg__manifest_text(r, tool, "description", &def->tool.description);
    if (!status)
        status = peg__manifest_schema_text(r, tool, "input_schema", &def->tool.input_schema);
    if (!status)
        status = peg__manifest_schema_text(r, tool, "output_schema", &def->tool.output_schema);
    if (!status)
        status = peg__manifest_list(r, tool, "tags", &tags);
    def->tool.tags = tags;
    def->tool.idempotent = is_set(tool, "idempotent");
    return status;
}

static peg_status take_run(const struct peg__manifest_reader *r, const peg_json *tool,
                           peg_command_def *def)
{
    static const struct peg__manifest_most most_output = {PEG_LIMIT_RESULT_BYTES,
                                                          "PEG_LIMIT_RESULT_BYTES"};
    static const struct peg__manifest_most most_memory = {
        (uint64_t)PEG_LIMIT_COMMAND_MEMORY_MIB << 20, "PEG_LIMIT_COMMAND_MEMORY_MIB"};
    const char **argv = NULL;
    const char **env = NULL;
    peg_status status = take_command(r, tool, &argv);

    if (!status)
        status = take_env(r, tool, &env);
    if (!status)
        status = take_directory(r, tool, &def->directory);
    if (!status)
        status =
            peg__manifest_ms(r, tool, "timeout", PEG_LIMIT_TURN_TIMEOUT_MS, &def->tool.timeout_ms);
    if (!status)
        status = peg__manifest_ms(r, tool, "grace", PEG_LIMIT_COMMAND_GRACE_MAX_MS, &def->grace_ms);
    if (!status)
        status = peg__manifest_size(r, tool, "max_output", &most_output, &def->max_output);
    if (!status)
        status = peg__manifest_size(r, tool, "max_memory", &most_memory, &def->max_memory);
    def->argv = argv;
    def->env = env;
    take_output(tool, def);
    return status;
}

/* What a tool cannot be made of is told at the key of the manifest. */
static peg_status place_tool_error(const struct peg__manifest_reader *r, peg_error *error)
{
    const char *where = error->where;
    const char *message = error->message;
    char member[160];
    char words[320];

    if (error->status == PEG_ENOMEM)
        return peg__fail_nomem(r->reterr);
    if (peg__str_starts(peg__str(where), (peg_str)PEG_LIT("/argv")))
        snprintf(member, sizeof(member), "/command%s", where + 5);
    else
        snprintf(member, sizeof(member), "%s", where);
    /* The place is told with the manifest's own. It may have colons itself. */
    if (*where && peg__str_starts(peg__str(message), peg__str(where))) {
        const char *colon = strstr(message + strlen(where), ": ");

        message = colon ? colon + 2 : message;
    }
    snprintf(words, sizeof(words), "%s", message);
    return peg__manifest_fail_tool(r, member, words);
}

static peg_status add_tool(const struct peg__manifest_reader *r, const peg_json *item)
{
    peg_command_def def = {PEG_COMMAND_DEF_INIT, .argv = NULL};
    peg_tool *tool = NULL;
    peg_error error;
    peg_status status = take_words(r, item, &def);

    if (!status)
        status = take_run(r, item, &def);
    if (status)
        return status;
    if (peg_command_tool_new(&def, &tool, &error))
        return place_tool_error(r, &error);
    status = peg_registry_register(r->manifest->registry, tool, false, &error);
    peg_tool_unref(tool);
    if (status == PEG_EEXISTS)
        return peg__manifest_fail_tool(
            r, "/name", "another tool of the manifest has this name: choose another");
    return status ? place_tool_error(r, &error) : PEG_OK;
}

static peg_status add_tools(struct peg__manifest_reader *r)
{
    peg_status status = peg_registry_new(NULL, 0, &r->manifest->registry, r->reterr);
    const peg_json *tools = peg_json_get(r->root, "tools");

    if (status)
        return status;
    PEG_JSON_EACH_ITEM (tools, item) {
        status = add_tool(r, item);
        if (status)
            return status;
        r->tool++;
    }
    return PEG_OK;
}

/* ---- the toolset ---- */

static peg_status keep_text(const struct peg__manifest_reader *r, const char *name,
                            const char **ret_text)
{
    const char *text;
    const peg_status status = peg__manifest_text(r, r->root, name, &text);

    if (status)
        return status;
    *ret_text = peg__arena_copy(&r->manifest->arena, peg__str(text ? text : ""));
    return *ret_text ? PEG_OK : peg__fail_nomem(r->reterr);
}

static peg_status keep_tags(const struct peg__manifest_reader *r)
{
    peg_manifest *manifest = r->manifest;
    const peg_status status = peg__manifest_list(r, r->root, "tags", &manifest->tags);

    if (status || manifest->tags)
        return status;
    manifest->tags = peg__arena_alloc_zero(&manifest->arena, sizeof(*manifest->tags));
    return manifest->tags ? PEG_OK : peg__fail_nomem(r->reterr);
}

static peg_status fill(struct peg__manifest_reader *r)
{
    peg_status status = peg__manifest_check_form(r);

    if (!status)
        status = keep_text(r, "toolset", &r->manifest->toolset);
    if (!status)
        status = keep_text(r, "description", &r->manifest->description);
    if (!status)
        status = keep_text(r, "version", &r->manifest->version);
    if (!status)
        status = keep_tags(r);
    return status ? status : add_tools(r);
}

peg_status peg_manifest_parse(peg_str text, const char *folder, peg_manifest **ret_manifest,
                              peg_error *reterr)
{
    struct peg__manifest_reader r = {.text = text, .folder = folder, .reterr = reterr};
    peg_json_doc *doc = NULL;
    peg_status status = peg_yaml_parse(text, &peg__manifest_limits, &doc, reterr);

    if (status)
        return status;
    r.root = peg_json_root(doc);
    r.manifest = peg__alloc_zero(1, sizeof(*r.manifest));
    if (r.manifest)
        r.manifest->last_unset = &r.manifest->unset;
    status = r.manifest ? fill(&r) : peg__fail_nomem(reterr);
    peg_json_doc_free(doc);
    if (status)
        peg_manifest_free(r.manifest);
    else
        *ret_manifest = r.manifest;
    return status;
}

peg_manifest *peg_manifest_free(peg_manifest *manifest)
{
    if (!manifest)
        return NULL;
    peg_registry_unref(manifest->registry);
    peg__arena_free(&manifest->arena);
    peg__free(manifest);
    return NULL;
}

const char *peg_manifest_toolset(const peg_manifest *manifest)
{
    return manifest->toolset;
}

const char *peg_manifest_description(const peg_manifest *manifest)
{
    return manifest->description;
}

const char *peg_manifest_version(const peg_manifest *manifest)
{
    return manifest->version;
}

const char *const *peg_manifest_tags(const peg_manifest *manifest)
{
    return manifest->tags;
}

peg_registry *peg_manifest_registry(const peg_manifest *manifest)
{
    return manifest->registry;
}
