/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A manifest goes through its own schema first; then each tool becomes a command.
 * Read it from peg_manifest_parse().
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/command.h"
#include "pegboard/manifest.h"
#include "pegboard/schema.h"
#include "pegboard/yaml.h"
#include "schema/compile/compile.h"
#include "tools/internal.h"
#include "json/json.h"

/* The form of a manifest, as JSON Schema. manifest_values.c checks what numbers and texts mean. */

static const char peg__manifest_schema[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"toolset\"],"
    "\"properties\":{"
    "\"toolset\":{\"$ref\":\"#/$defs/name\"},"
    "\"description\":{\"type\":\"string\",\"maxLength\":4096},"
    "\"version\":{\"type\":\"string\","
    "\"pattern\":\"^v?[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[A-Za-z0-9.]+)?$\"},"
    "\"tags\":{\"$ref\":\"#/$defs/tags\"},"
    "\"tools\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":10000,"
    "\"items\":{\"$ref\":\"#/$defs/tool\"}},"
    "\"mcp\":{\"$ref\":\"#/$defs/mcp\"}},"
    "\"$defs\":{"
    "\"name\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_.:/-]{1,256}$\"},"
    "\"tags\":{\"type\":\"array\",\"maxItems\":64,"
    "\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256}},"
    "\"amount\":{\"type\":[\"integer\",\"string\"]},"
    "\"env\":{\"type\":\"array\",\"maxItems\":1000,\"items\":{\"type\":\"string\","
    "\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*(=|$)\"}},"
    "\"globs\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":1000,"
    "\"items\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":256}},"
    "\"header\":{\"type\":[\"string\",\"object\"],\"additionalProperties\":false,"
    "\"maxLength\":8192,\"properties\":{\"env\":{\"type\":\"string\",\"minLength\":1},"
    "\"file\":{\"type\":\"string\",\"minLength\":1},\"prefix\":{\"type\":\"string\"}}},"
    "\"mcp\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"properties\":{"
    "\"command\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":4096,"
    "\"items\":{\"type\":\"string\"}},"
    "\"env\":{\"$ref\":\"#/$defs/env\"},"
    "\"directory\":{\"type\":\"string\",\"minLength\":1},"
    "\"url\":{\"type\":\"string\",\"maxLength\":8192,\"pattern\":\"^https?://[^ ]+$\"},"
    "\"headers\":{\"type\":\"object\",\"maxProperties\":64,"
    "\"propertyNames\":{\"pattern\":\"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$\"},"
    "\"additionalProperties\":{\"$ref\":\"#/$defs/header\"}},"
    "\"private_addresses\":{\"type\":\"boolean\"},"
    "\"timeout\":{\"$ref\":\"#/$defs/amount\"},"
    "\"tools\":{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
    "\"include\":{\"$ref\":\"#/$defs/globs\"},"
    "\"exclude\":{\"$ref\":\"#/$defs/globs\"}}}}},"
    "\"tool\":{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"name\",\"description\",\"command\"],\"properties\":{"
    "\"name\":{\"$ref\":\"#/$defs/name\"},"
    "\"description\":{\"type\":\"string\",\"maxLength\":4096},"
    "\"input_schema\":{\"type\":\"object\"},"
    "\"output_schema\":{\"type\":[\"object\",\"boolean\"]},"
    "\"command\":{\"type\":[\"array\",\"string\"],\"minLength\":1,\"minItems\":1,\"maxItems\":4096,"
    "\"items\":{\"type\":[\"string\",\"array\"],\"minItems\":1,\"maxItems\":4096,"
    "\"items\":{\"type\":\"string\"}}},"
    "\"shell\":{\"type\":\"boolean\"},"
    "\"output\":{\"enum\":[\"auto\",\"json\",\"text\"]},"
    "\"timeout\":{\"$ref\":\"#/$defs/amount\"},"
    "\"grace\":{\"$ref\":\"#/$defs/amount\"},"
    "\"max_memory\":{\"$ref\":\"#/$defs/amount\"},"
    "\"max_output\":{\"$ref\":\"#/$defs/amount\"},"
    "\"env\":{\"$ref\":\"#/$defs/env\"},"
    "\"directory\":{\"type\":\"string\",\"minLength\":1},"
    "\"idempotent\":{\"type\":\"boolean\"},"
    "\"read_only\":{\"type\":\"boolean\"},"
    "\"destructive\":{\"type\":\"boolean\"},"
    "\"additive\":{\"type\":\"boolean\"},"
    "\"tags\":{\"$ref\":\"#/$defs/tags\"}}}}}";

/* Unknown keys are reported first: one may be a misspelt key that seems missing. */
static const peg_failure *pick_failure(const peg_report *report)
{
    for (size_t i = 0; i < peg_report_len(report); i++) {
        const peg_failure *failure = peg_report_at(report, i);

        if (peg__str_is(failure->keyword, "additionalProperties"))
            return failure;
    }
    return peg_report_at(report, 0);
}

static size_t cut_text(peg_str message, size_t most)
{
    return message.len <= most ? message.len : peg__utf8_cut(message.ptr, most);
}

static peg_status report_failure(const struct peg__manifest_reader *r, const peg_report *report)
{
    const peg_failure *failure = pick_failure(report);
    const bool is_key =
        peg__str_is(failure->keyword, "additionalProperties") && failure->got.len > 2;
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_PATH_BYTES);
    char message[300];
    peg_status status;

    peg__buf_str(&pointer, failure->instance);
    /* 'name': the report tells of the object, and the place of the key is wanted. */
    if (is_key)
        peg__json_pointer_push(peg__strn(failure->got.ptr + 1, failure->got.len - 2), &pointer);
    snprintf(message, sizeof(message), "%.*s", (int)cut_text(failure->message, sizeof(message) - 1),
             failure->message.ptr);
    status = is_key ? peg__manifest_fail_key(r, peg__buf_view(&pointer), message)
                    : peg__manifest_fail_at(r, peg__buf_view(&pointer), message);
    if (pointer.status == PEG_ENOMEM)
        status = peg__fail_nomem(r->reterr);
    peg__buf_free(&pointer);
    return status;
}

static peg_status check_with(const struct peg__manifest_reader *r, const peg_schema *schema,
                             peg_checker *checker, peg_report *report)
{
    switch (peg_schema_report(schema, checker, r->root, report)) {
    case PEG_VALID:
        return PEG_OK;
    case PEG_INVALID:
        return report_failure(r, report);
    case PEG_UNDECIDED:
        break;
    }
    if (strcmp(peg_checker_reason(checker), "memory") == 0)
        return peg__fail_nomem(r->reterr);
    return peg__fail(r->reterr, PEG_ELIMIT, "E_MANIFEST", "the manifest is too large to check (%s)",
                     peg_checker_reason(checker));
}

/* Has it every key that it needs, and no other? PEG_EPARSE with the place. */
static peg_status check_form(const struct peg__manifest_reader *r)
{
    peg_schema *schema = NULL;
    peg_checker *checker = NULL;
    peg_report *report = NULL;
    peg_status status =
        peg_schema_compile(peg__str(peg__manifest_schema), NULL, &schema, r->reterr);

    if (!status)
        status = peg_checker_new(NULL, &checker, r->reterr);
    if (!status)
        status = peg_report_new(&report, r->reterr);
    if (!status)
        status = check_with(r, schema, checker, report);
    peg_report_free(report);
    peg_checker_free(checker);
    peg_schema_unref(schema);
    return status;
}

/* ---- one tool ---- */

static bool is_true_member(const peg_json *tool, const char *name)
{
    const peg_json *value = peg_json_get(tool, name);

    return value && peg_json_is_true(value);
}

static void take_output(const peg_json *tool, peg_command_def *def)
{
    const peg_json *output = peg_json_get(tool, "output");
    const bool is_auto = !output || peg__str_is(peg_json_str(output), "auto");

    def->answers_json = output && peg__str_is(peg_json_str(output), "json");
    def->detects_json = is_auto;
}

/* The parts of a definition: those that describe it, and those that run it. */
static peg_status take_description(const struct peg__manifest_reader *r, const peg_json *tool,
                                   peg_command_def *def)
{
    const char **tags = NULL;
    peg_status status;

    if ((status = peg__manifest_text(r, tool, "name", &def->tool.name)) ||
        (status = peg__manifest_text(r, tool, "description", &def->tool.description)) ||
        (status = peg__manifest_schema_text(r, tool, "input_schema", &def->tool.input_schema)) ||
        (status = peg__manifest_schema_text(r, tool, "output_schema", &def->tool.output_schema)) ||
        (status = peg__manifest_list(r, tool, "tags", &tags)))
        return status;
    def->tool.tags = tags;
    def->tool.idempotent = is_true_member(tool, "idempotent");
    def->tool.read_only = is_true_member(tool, "read_only");
    def->tool.destructive = is_true_member(tool, "destructive");
    def->tool.additive = is_true_member(tool, "additive");
    return PEG_OK;
}

static peg_status take_run(const struct peg__manifest_reader *r, const peg_json *tool,
                           peg_command_def *def)
{
    const char **env = NULL;
    peg_status status;

    if ((status = peg__manifest_env(r, tool, &env)) ||
        (status = peg__manifest_directory(r, tool, &def->directory)) ||
        (status = peg__manifest_ms(r, tool, "timeout", PEG_LIMIT_TURN_TIMEOUT_MS,
                                   &def->tool.timeout_ms)) ||
        (status =
             peg__manifest_ms(r, tool, "grace", PEG_LIMIT_COMMAND_GRACE_MAX_MS, &def->grace_ms)) ||
        (status =
             peg__manifest_size(r, tool, "max_output", PEG_LIMIT_RESULT_BYTES, &def->max_output)) ||
        (status =
             peg__manifest_size(r, tool, "max_memory", (uint64_t)PEG_LIMIT_COMMAND_MEMORY_MIB << 20,
                                &def->max_memory)))
        return status;
    def->env = env;
    take_output(tool, def);
    return PEG_OK;
}

/* Errors of a tool get the place of their key in the manifest. */
static peg_status place_tool_error(const struct peg__manifest_reader *r, peg_error *error)
{
    const char *where = error->where;
    const char *message = error->message;
    char member[160];
    char copied[320];

    if (error->status == PEG_ENOMEM)
        return peg__fail_nomem(r->reterr);
    if (peg__str_starts(peg__str(where), (peg_str)PEG_LIT("/argv")))
        snprintf(member, sizeof(member), "/command%s", where + 5);
    else
        snprintf(member, sizeof(member), "%s", where);
    /* The manifest's own place replaces it. It may have colons itself. */
    if (*where && peg__str_starts(peg__str(message), peg__str(where))) {
        const char *colon = strstr(message + strlen(where), ": ");

        message = colon ? colon + 2 : message;
    }
    snprintf(copied, sizeof(copied), "%s", message);
    return peg__manifest_fail_tool(r, member, copied);
}

static peg_status add_tool(const struct peg__manifest_reader *r, const peg_json *item)
{
    peg_command_def def = {PEG_COMMAND_DEF_INIT, .argv = NULL};
    struct peg__words words = {.n = 0};
    peg_tool *tool = NULL;
    peg_error error;
    peg_status status = take_description(r, item, &def);

    if (!status)
        status = peg__manifest_command(r, item, &def.argv, &words);
    if (!status)
        status = take_run(r, item, &def);
    if (status)
        return status;
    if (peg__command_tool_new(&def, words.n ? &words : NULL, &tool, &error))
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
    const peg_json *tools = peg_json_get(r->root, "tools");
    peg_status status;

    if (!tools && !peg_json_get(r->root, "mcp"))
        return peg__manifest_fail_at(r, peg__str(""),
                                     "'tools' is missing: a toolset has tools, or an MCP server "
                                     "that has some (mcp)");
    status = peg_registry_new(NULL, 0, &r->manifest->registry, r->reterr);
    if (!status)
        status = peg__manifest_take_mcp(r);
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

static peg_status fill_manifest(struct peg__manifest_reader *r)
{
    peg_status status;

    if ((status = check_form(r)) || (status = keep_text(r, "toolset", &r->manifest->toolset)) ||
        (status = keep_text(r, "description", &r->manifest->description)) ||
        (status = keep_text(r, "version", &r->manifest->version)) || (status = keep_tags(r)))
        return status;
    return add_tools(r);
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
    status = r.manifest ? fill_manifest(&r) : peg__fail_nomem(reterr);
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

static peg_status reject_file(const char *path, int error, peg_error *reterr)
{
    char message[128];

    return peg__fail(reterr, PEG_EIO, "E_MANIFEST",
                     "'%.160s' cannot be read (%s); check its name and permissions", path,
                     strerror_r(error, message, sizeof(message)));
}

static peg_status read_manifest_file(int fd, const char *path, struct peg__buf *out,
                                     peg_error *reterr)
{
    enum { STEP = 64 << 10 };

    for (;;) {
        char *at = peg__buf_reserve(out, STEP);
        ssize_t n;

        if (!at)
            return out->status == PEG_ENOMEM
                       ? peg__fail_nomem(reterr)
                       : peg__fail(reterr, PEG_ELIMIT, "E_MANIFEST",
                                   "'%.160s' is larger than 4 MiB: split the toolset", path);
        n = read(fd, at, STEP);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return reject_file(path, errno, reterr);
        if (n == 0)
            return PEG_OK;
        out->len += (size_t)n;
    }
}

/* "." for a name without a slash. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
    char *folder = peg__alloc(n + 1);

    if (folder) {
        memcpy(folder, slash ? path : ".", n);
        folder[n] = '\0';
    }
    return folder;
}

peg_status peg_manifest_read(const char *path, peg_manifest **ret_manifest, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_MANIFEST_BYTES + (64 << 10));
    PEG_CLEANUP(peg__freep) char *folder = folder_of(path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    peg_status status;

    if (fd < 0)
        return reject_file(path, errno, reterr);
    status = folder ? read_manifest_file(fd, path, &text, reterr) : peg__fail_nomem(reterr);
    close(fd);
    if (!status)
        status = peg_manifest_parse(peg__buf_view(&text), folder, ret_manifest, reterr);
    peg__buf_free(&text);
    return status;
}

struct inspection {
    void (*report_problem)(const char *tool, const char *message, void *user);
    void *user;
    peg_error *reterr;
};

static peg_status report_problem(const struct inspection *to, const char *tool,
                                 struct peg__buf *message)
{
    const peg_status status = message->status;

    if (!status)
        to->report_problem(tool, message->ptr, to->user);
    peg__buf_free(message);
    return status ? peg__fail_nomem(to->reterr) : PEG_OK;
}

struct typos {
    const struct inspection *to;
    const peg_tool *tool;
    const peg_json *schema;
    peg_status status;
};

static void report_typo(const peg_json *key, const char *keyword, void *user)
{
    struct typos *typos = user;
    struct peg__buf message = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    peg__buf_puts(&message, "its schema has no keyword ");
    peg__json_pointer_to(typos->schema, key, &message);
    peg__buf_printf(&message, ", which is ignored; did you mean '%s'?", keyword);
    if (message.status == PEG_ELIMIT || typos->status)
        peg__buf_free(&message); /* no suggestion */
    else
        typos->status = report_problem(typos->to, peg_tool_name(typos->tool), &message);
}

static peg_status inspect_schema(const struct inspection *to, const peg_tool *tool,
                                 const peg_json *schema)
{
    struct typos typos = {.to = to, .tool = tool, .schema = schema};

    if (schema)
        peg__schema_typos(schema, report_typo, &typos);
    return typos.status;
}

static peg_status inspect_tool(const struct inspection *to, const peg_tool *tool)
{
    struct peg__buf message = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    peg_status status = inspect_schema(to, tool, peg_tool_input_schema(tool));

    if (!status)
        status = inspect_schema(to, tool, peg_tool_output_schema(tool));
    if (status || peg__command_can_start(tool, &message))
        return status;
    return report_problem(to, peg_tool_name(tool), &message);
}

static peg_status inspect_variable(const struct inspection *to,
                                   const struct peg__manifest_unset *unset)
{
    struct peg__buf message = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    peg__buf_printf(&message, "the variable '%.256s' of env is not set here: it is not passed on",
                    unset->name);
    return report_problem(to, unset->tool, &message);
}

peg_status peg_manifest_inspect(const peg_manifest *manifest,
                                void (*report)(const char *tool, const char *message, void *user),
                                void *user, peg_error *reterr)
{
    const struct inspection to = {report, user, reterr};
    peg_tool_list tools;
    peg_status status = peg_registry_visible(manifest->registry, &tools, reterr);

    if (status)
        return status;
    for (size_t i = 0; !status && i < tools.len; i++)
        status = inspect_tool(&to, tools.items[i]);
    for (const struct peg__manifest_unset *unset = manifest->unset; !status && unset;
         unset = unset->next)
        status = inspect_variable(&to, unset);
    peg_tool_list_free(&tools);
    return status;
}
