/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A manifest goes through its own schema first, which knows every key and says which one was meant;
 * then each tool becomes a command. Read it from peg_manifest_parse() at the bottom.
 */

#include "pegboard/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "pegboard/command.h"
#include "pegboard/schema.h"
#include "pegboard/tool_config.h"
#include "pegboard/yaml.h"
#include "tools/manifest_schema.h"
#include "json/json.h"
#include "json/locate.h"

/* Owned; all strings lie in the arena. */
struct peg_manifest {
    struct peg__arena arena;
    const char *toolset;
    const char *description;
    const char *version;
    const char **tags;
    peg_registry *registry;
};

/* While it is read. */
struct reader {
    peg_str text;
    const char *folder;
    const peg_json *root;
    peg_manifest *manifest;
    peg_error *reterr;
    size_t tool; /* its index */
};

static const peg_json_options limits = {.max_bytes = PEG_LIMIT_MANIFEST_BYTES,
                                        .duplicates = PEG_JSON_REFUSE};

/* ---- failing with a place ----------------------------------------------------------------------
 */

static peg_status put_place(const struct reader *r, peg_status status, peg_str pointer)
{
    if (!r->reterr || status == PEG_ENOMEM)
        return status;
    peg__error_at(r->reterr, r->text, peg__yaml_locate(r->text, &limits, pointer));
    peg__error_where(r->reterr, pointer);
    return status;
}

static peg_status fail_at(const struct reader *r, peg_str pointer, const char *words)
{
    return put_place(r, peg__fail(r->reterr, PEG_EPARSE, "E_MANIFEST", "%s", words), pointer);
}

/* At a member of the tool that is read. */
static peg_status fail_tool(const struct reader *r, const char *member, const char *words)
{
    char pointer[160];
    const int n = snprintf(pointer, sizeof(pointer), "/tools/%zu%s", r->tool, member);

    return fail_at(r, peg__strn(pointer, n < (int)sizeof(pointer) ? (size_t)n : 0), words);
}

/* ---- the schema --------------------------------------------------------------------------------
 */

/* A key that nobody knows is told first: what is missing may be what it was meant to be. */
static const peg_failure *pick_failure(const peg_report *report)
{
    for (size_t i = 0; i < peg_report_len(report); i++) {
        const peg_failure *failure = peg_report_at(report, i);

        if (peg__str_is(failure->keyword, "additionalProperties"))
            return failure;
    }
    return peg_report_at(report, 0);
}

static size_t cut(peg_str words, size_t most)
{
    return words.len <= most ? words.len : peg__utf8_cut(words.ptr, most);
}

static peg_status tell_failure(const struct reader *r, const peg_report *report)
{
    const peg_failure *failure = pick_failure(report);
    struct peg__buf pointer = PEG__BUF(PEG_LIMIT_PATH_BYTES);
    char words[300];
    peg_status status;

    peg__buf_str(&pointer, failure->instance);
    /* 'name': the report tells of the object, and the place of the key is wanted. */
    if (peg__str_is(failure->keyword, "additionalProperties") && failure->got.len > 2)
        peg__json_pointer_push(peg__strn(failure->got.ptr + 1, failure->got.len - 2), &pointer);
    snprintf(words, sizeof(words), "%.*s", (int)cut(failure->message, sizeof(words) - 1),
             failure->message.ptr);
    status = fail_at(r, peg__buf_view(&pointer), words);
    if (pointer.status == PEG_ENOMEM)
        status = peg__fail_nomem(r->reterr);
    peg__buf_free(&pointer);
    return status;
}

static peg_status check_with(const struct reader *r, const peg_schema *schema, peg_checker *checker,
                             peg_report *report)
{
    switch (peg_schema_report(schema, checker, r->root, report)) {
    case PEG_VALID:
        return PEG_OK;
    case PEG_INVALID:
        return tell_failure(r, report);
    case PEG_UNDECIDED:
        break;
    }
    if (strcmp(peg_checker_reason(checker), "memory") == 0)
        return peg__fail_nomem(r->reterr);
    return peg__fail(r->reterr, PEG_ELIMIT, "E_MANIFEST", "the manifest is too large to check (%s)",
                     peg_checker_reason(checker));
}

static peg_status check(const struct reader *r)
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

/* ---- values ------------------------------------------------------------------------------------
 */

/* The text of a member, or NULL if there is none. Strings of a document end with a NUL; what comes
 * behind one of their own would be lost. */
static peg_status take_text(const struct reader *r, const peg_json *object, const char *name,
                            const char **ret_text)
{
    const peg_json *value = peg_json_get(object, name);
    char member[64];

    *ret_text = NULL;
    if (!value)
        return PEG_OK;
    *ret_text = value->u.ptr;
    if (strlen(value->u.ptr) == value->len)
        return PEG_OK;
    snprintf(member, sizeof(member), "/%s", name);
    if (object == r->root)
        return fail_at(r, peg__str(member), "a text must not contain a NUL: take it out");
    return fail_tool(r, member, "a text must not contain a NUL: take it out");
}

/* An array of strings, NULL-terminated, in the arena; *ret_list is NULL if there is none. */
static peg_status take_list(const struct reader *r, const peg_json *object, const char *name,
                            const char ***ret_list)
{
    const peg_json *array = peg_json_get(object, name);
    const char **list;
    size_t n = 0;
    char member[64];

    *ret_list = NULL;
    if (!array || array->kind != PEG_JSON_ARRAY)
        return PEG_OK;
    list = peg__arena_alloc_zero(&r->manifest->arena, (peg_json_len(array) + 1) * sizeof(*list));
    if (!list)
        return peg__fail_nomem(r->reterr);
    PEG_JSON_EACH_ITEM (array, item) {
        list[n++] = peg__arena_copy(&r->manifest->arena, peg_json_str(item));
        if (!list[n - 1])
            return peg__fail_nomem(r->reterr);
        if (strlen(list[n - 1]) == item->len)
            continue;
        snprintf(member, sizeof(member), "/%s/%zu", name, n - 1);
        if (object == r->root)
            return fail_at(r, peg__str(member), "a text must not contain a NUL: take it out");
        return fail_tool(r, member, "a text must not contain a NUL: take it out");
    }
    *ret_list = list;
    return PEG_OK;
}

/* A duration in milliseconds, as text or as a number of them; 0 if there is none. */
static peg_status take_ms(const struct reader *r, const peg_json *tool, const char *name,
                          int64_t most_ms, int64_t *ret_ms)
{
    enum { NS_PER_MS = 1000000 };
    const peg_json *value = peg_json_get(tool, name);
    char member[32];
    char words[160];
    int64_t ms = 0;

    *ret_ms = 0;
    if (!value)
        return PEG_OK;
    if (value->kind != PEG_JSON_STRING) {
        if (!peg_json_int64(value, &ms))
            ms = 0;
    } else if (peg_duration_parse(peg_json_str(value), &ms, NULL) == PEG_OK) {
        ms /= NS_PER_MS;
    }
    if (ms >= 1 && ms <= most_ms) {
        *ret_ms = ms;
        return PEG_OK;
    }
    snprintf(member, sizeof(member), "/%s", name);
    snprintf(words, sizeof(words),
             "%s is between 1ms and %lldms: write 30s, 1m30s, or a number of milliseconds", name,
             (long long)most_ms);
    return fail_tool(r, member, words);
}

static const struct {
    peg_str name;
    uint64_t bytes;
} size_units[] = {
    {PEG_LIT(""), 1},          {PEG_LIT("B"), 1},           {PEG_LIT("KiB"), 1 << 10},
    {PEG_LIT("K"), 1 << 10},   {PEG_LIT("MiB"), 1 << 20},   {PEG_LIT("M"), 1 << 20},
    {PEG_LIT("GiB"), 1 << 30}, {PEG_LIT("G"), 1 << 30},     {PEG_LIT("KB"), 1000},
    {PEG_LIT("MB"), 1000000},  {PEG_LIT("GB"), 1000000000},
};

/* "64MiB", "64 MiB"; 0 if it is none. */
static uint64_t read_size(peg_str text)
{
    uint64_t number = 0;
    size_t i = 0;

    for (; i < text.len && i < 12 && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
    if (i == 0)
        return 0;
    text = peg__str_from(text, i);
    if (text.len && text.ptr[0] == ' ')
        text = peg__str_from(text, 1);
    for (i = 0; i < sizeof(size_units) / sizeof(size_units[0]); i++) {
        if (peg__str_eq(text, size_units[i].name))
            return number * size_units[i].bytes; /* below 2^70 / 2^30: it fits */
    }
    return 0;
}

static peg_status take_size(const struct reader *r, const peg_json *tool, const char *name,
                            uint64_t most, size_t *ret_size)
{
    const peg_json *value = peg_json_get(tool, name);
    char member[32];
    char words[128];
    int64_t number = 0;
    uint64_t size;

    *ret_size = 0;
    if (!value)
        return PEG_OK;
    if (value->kind == PEG_JSON_STRING)
        size = read_size(peg_json_str(value));
    else
        size = peg_json_int64(value, &number) && number > 0 ? (uint64_t)number : 0;
    if (size >= 1 && size <= most) {
        *ret_size = (size_t)size;
        return PEG_OK;
    }
    snprintf(member, sizeof(member), "/%s", name);
    snprintf(words, sizeof(words), "%s is between 1 and %lluMiB: write 64MiB, 512KiB or bytes",
             name, (unsigned long long)(most >> 20));
    return fail_tool(r, member, words);
}

static peg_status take_schema(const struct reader *r, const peg_json *tool, const char *name,
                              const char **ret_text)
{
    const peg_json *schema = peg_json_get(tool, name);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_SCHEMA_BYTES);
    char member[32];

    *ret_text = NULL;
    if (!schema)
        return PEG_OK;
    peg__json_write(schema, PEG_JSON_COMPACT, &out);
    if (out.status == PEG_ELIMIT) {
        peg__buf_free(&out);
        snprintf(member, sizeof(member), "/%s", name);
        return fail_tool(r, member, "the schema is larger than PEG_LIMIT_SCHEMA_BYTES (1 MiB)");
    }
    if (!out.status)
        *ret_text = peg__arena_copy(&r->manifest->arena, peg__buf_view(&out));
    peg__buf_free(&out);
    return *ret_text ? PEG_OK : peg__fail_nomem(r->reterr);
}

/* ---- one tool ----------------------------------------------------------------------------------
 */

/* What a name of the host stands for is looked up now. */
static peg_status take_env(const struct reader *r, const peg_json *tool, const char ***ret_env)
{
    struct peg__arena *arena = &r->manifest->arena;
    peg_status status = take_list(r, tool, "env", ret_env);
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
        if (!value)
            continue;
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

static peg_status take_directory(const struct reader *r, const peg_json *tool,
                                 const char **ret_directory)
{
    const char *directory;
    peg_status status = take_text(r, tool, "directory", &directory);
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

static peg_status take_command(const struct reader *r, const peg_json *tool, const char ***ret_argv)
{
    const peg_json *command = peg_json_get(tool, "command");
    const peg_json *shell = peg_json_get(tool, "shell");
    const bool wants_shell = shell && peg_json_is_true(shell);
    const char *text;
    peg_status status;

    if (command->kind == PEG_JSON_ARRAY && wants_shell)
        return fail_tool(r, "/command", "with shell: true the command is one text, not a list");
    if (command->kind == PEG_JSON_STRING && !wants_shell)
        return fail_tool(r, "/command",
                         "the command is a list of words, [program, argument]; a text needs "
                         "shell: true");
    if (command->kind == PEG_JSON_ARRAY)
        return take_list(r, tool, "command", ret_argv);
    status = take_text(r, tool, "command", &text);
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
static peg_status take_words(const struct reader *r, const peg_json *tool, peg_command_def *def)
{
    peg_status status = take_text(r, tool, "name", &def->tool.name);
    const char **tags = NULL;

    if (!status)
        status = take_text(r, tool, "description", &def->tool.description);
    if (!status)
        status = take_schema(r, tool, "input_schema", &def->tool.input_schema);
    if (!status)
        status = take_schema(r, tool, "output_schema", &def->tool.output_schema);
    if (!status)
        status = take_list(r, tool, "tags", &tags);
    def->tool.tags = tags;
    def->tool.idempotent = is_set(tool, "idempotent");
    return status;
}

static peg_status take_run(const struct reader *r, const peg_json *tool, peg_command_def *def)
{
    const char **argv = NULL;
    const char **env = NULL;
    peg_status status = take_command(r, tool, &argv);

    if (!status)
        status = take_env(r, tool, &env);
    if (!status)
        status = take_directory(r, tool, &def->directory);
    if (!status)
        status = take_ms(r, tool, "timeout", PEG_LIMIT_TURN_TIMEOUT_MS, &def->tool.timeout_ms);
    if (!status)
        status = take_ms(r, tool, "grace", PEG_LIMIT_COMMAND_GRACE_MAX_MS, &def->grace_ms);
    if (!status)
        status = take_size(r, tool, "max_output", PEG_LIMIT_TEXT_BYTES, &def->max_output);
    if (!status)
        status = take_size(r, tool, "max_memory", (uint64_t)PEG_LIMIT_COMMAND_MEMORY_MIB << 20,
                           &def->max_memory);
    def->argv = argv;
    def->env = env;
    take_output(tool, def);
    return status;
}

/* What a tool cannot be made of is told at the key of the manifest. */
static peg_status place_tool_error(const struct reader *r, peg_error *error)
{
    const char *where = error->where;
    char member[160];
    char words[320];

    if (error->status == PEG_ENOMEM)
        return peg__fail_nomem(r->reterr);
    if (peg__str_starts(peg__str(where), (peg_str)PEG_LIT("/argv")))
        snprintf(member, sizeof(member), "/command%s", where + 5);
    else
        snprintf(member, sizeof(member), "%s", where);
    snprintf(words, sizeof(words), "%s", error->message);
    return fail_tool(r, member, words);
}

static peg_status add_tool(const struct reader *r, const peg_json *item)
{
    peg_command_def def = {.argv = NULL};
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
        return fail_tool(r, "/name", "another tool of the manifest has this name: choose another");
    return status ? place_tool_error(r, &error) : PEG_OK;
}

static peg_status add_tools(struct reader *r)
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

/* ---- the toolset -------------------------------------------------------------------------------
 */

static peg_status keep_text(const struct reader *r, const char *name, const char **ret_text)
{
    const char *text;
    const peg_status status = take_text(r, r->root, name, &text);

    if (status)
        return status;
    *ret_text = peg__arena_copy(&r->manifest->arena, peg__str(text ? text : ""));
    return *ret_text ? PEG_OK : peg__fail_nomem(r->reterr);
}

static peg_status keep_tags(const struct reader *r)
{
    peg_manifest *manifest = r->manifest;
    const peg_status status = take_list(r, r->root, "tags", &manifest->tags);

    if (status || manifest->tags)
        return status;
    manifest->tags = peg__arena_alloc_zero(&manifest->arena, sizeof(*manifest->tags));
    return manifest->tags ? PEG_OK : peg__fail_nomem(r->reterr);
}

static peg_status fill(struct reader *r)
{
    peg_status status = check(r);

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
    struct reader r = {.text = text, .folder = folder, .reterr = reterr};
    peg_json_doc *doc = NULL;
    peg_status status = peg_yaml_parse(text, &limits, &doc, reterr);

    if (status)
        return status;
    r.root = peg_json_root(doc);
    r.manifest = peg__alloc_zero(1, sizeof(*r.manifest));
    status = r.manifest ? fill(&r) : peg__fail_nomem(reterr);
    peg_json_doc_free(doc);
    if (status)
        peg_manifest_free(r.manifest);
    else
        *ret_manifest = r.manifest;
    return status;
}

/* ---- from a file -------------------------------------------------------------------------------
 */

static peg_status refuse_file(const char *path, int error, peg_error *reterr)
{
    char words[128];

    return peg__fail(reterr, PEG_EIO, "E_MANIFEST_FILE", "'%.160s' cannot be read (%s)", path,
                     strerror_r(error, words, sizeof(words)));
}

static peg_status read_all(int fd, const char *path, struct peg__buf *out, peg_error *reterr)
{
    enum { STEP = 64 << 10 };

    for (;;) {
        char *at = peg__buf_reserve(out, STEP);
        ssize_t n;

        if (!at)
            return out->status == PEG_ENOMEM
                       ? peg__fail_nomem(reterr)
                       : peg__fail(reterr, PEG_ELIMIT, "E_MANIFEST_FILE",
                                   "'%.160s' is larger than PEG_LIMIT_MANIFEST_BYTES (4 MiB)",
                                   path);
        n = read(fd, at, STEP);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return refuse_file(path, errno, reterr);
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
        return refuse_file(path, errno, reterr);
    status = folder ? read_all(fd, path, &text, reterr) : peg__fail_nomem(reterr);
    close(fd);
    if (!status)
        status = peg_manifest_parse(peg__buf_view(&text), folder, ret_manifest, reterr);
    peg__buf_free(&text);
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
