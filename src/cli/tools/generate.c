/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard generate: code from the schemas of tools. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/limits/generate.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "generate/declaration.h"
#include "generate/language.h"

/* What was asked for. Strings are borrowed from argv. */
struct generate_args {
    struct remote_args remote; /* first: see remote_read() */
    const char *out;
    const char *lang;
    const struct gen_language *language;
    const char *toolset; /* of a gateway */
    const char *service;
    const char *name;
    struct gen_options options;
    bool has_client;
    bool has_provider;
    bool is_flat;
    bool quiet;
};

/* ---- reading ------------------------------------------------------------------------------ */

/* YAML reads JSON, too, but tells less of what is wrong with it. */
static bool is_json_file(const char *path, peg_str text)
{
    size_t i = 0;

    if (!cli_is_stdin(path))
        return cli_syntax_of(path) != CLI_SYNTAX_YAML;
    while (i < text.len && (unsigned char)text.ptr[i] <= ' ')
        i++;
    return i < text.len && (text.ptr[i] == '[' || text.ptr[i] == '{');
}

static peg_status read_declaration(const char *path, peg_json_doc **ret_doc, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_JSON_BYTES);
    peg_status status = cli_read_file(path, &text, reterr);

    if (!status)
        status = cli_parse(peg__buf_view(&text), !is_json_file(path, peg__buf_view(&text)), ret_doc,
                           reterr);
    peg__buf_free(&text);
    return status;
}

static void out_tool(struct peg__out *out, const peg_toolset_tool *tool)
{
    peg__out_object(out);
    peg__out_cmember(out, "name", tool->name);
    peg__out_cmember(out, "description", tool->description);
    cli_out_raw(out, "input_schema", tool->input_schema);
    cli_out_raw(out, "output_schema", tool->output_schema);
    cli_out_raw(out, "examples", tool->examples);
    peg__out_cmember(out, "version", tool->version ? tool->version : "");
    toolset_out_strings(out, "tags", tool->tags, tool->n_tags);
    cli_out_integer(out, "timeout_ms", tool->timeout_ms);
    cli_out_bool(out, "idempotent", tool->is_idempotent);
    cli_out_bool(out, "read_only", tool->is_read_only);
    cli_out_bool(out, "destructive", tool->is_destructive);
    cli_out_bool(out, "additive", tool->is_additive);
    peg__out_end_object(out);
}

/* A toolset of a gateway as the document that a file would be. */
static peg_status toolset_document(const peg_toolset *toolset, peg_json_doc **ret_doc,
                                   peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &text};
    peg_status status;

    peg__out_object(&out);
    peg__out_cmember(&out, "toolset", toolset->info.name);
    peg__out_cmember(&out, "description", toolset->info.description);
    peg__out_cmember(&out, "version", toolset->info.version);
    toolset_out_strings(&out, "tags", toolset->info.tags, toolset->info.n_tags);
    cli_out_array(&out, "tools");
    for (size_t i = 0; i < toolset->n_tools; i++)
        out_tool(&out, &toolset->tools[i]);
    peg__out_end_array(&out);
    peg__out_end_object(&out);
    status = text.status ? peg__fail_nomem(reterr)
                         : peg_json_parse(peg__buf_view(&text), NULL, ret_doc, reterr);
    peg__buf_free(&text);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------ */

static peg_status fail_file(const char *path, const char *what, peg_error *reterr)
{
    char words[128] = "";

    return peg__fail(reterr, PEG_EIO, "E_FILE", "%.160s cannot be %s: %s", path, what,
                     strerror_r(errno, words, sizeof(words)));
}

/* Makes all folders of a path that ends in a file. */
static peg_status make_folders(char *path, peg_error *reterr)
{
    for (char *at = path + 1; *at; at++) {
        bool is_made;

        if (*at != '/')
            continue;
        *at = 0;
        is_made = mkdir(path, 0777) == 0 || errno == EEXIST;
        if (!is_made)
            fail_file(path, "made", reterr);
        *at = '/';
        if (!is_made)
            return PEG_EIO;
    }
    return PEG_OK;
}

/* Does the text have the sentence that each generated file has? The stars of a comment and the ends
 * of its lines may be within it. */
static bool is_generated(peg_str text)
{
    static const char *const sentence[] = {"Generated", "by", "`pegboard", "generate`"};
    const size_t n = sizeof(sentence) / sizeof(sentence[0]);
    size_t found = 0;

    for (peg_str word = gen_next_word(&text); word.len && found < n; word = gen_next_word(&text)) {
        if (!peg__str_is(word, "*"))
            found = peg__str_is(word, sentence[found]) ? found + 1 : 0;
    }
    return found == n;
}

static peg_status write_generated(const char *path, peg_str text, peg_error *reterr)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool is_written;

    if (fd < 0)
        return fail_file(path, "written", reterr);
    is_written = peg__file_write_all(fd, text);
    if (close(fd) < 0)
        is_written = false;
    return is_written ? PEG_OK : fail_file(path, "written", reterr);
}

/* A file that has the text already is left as it is, so that nothing is built again; one that
 * a person wrote is not lost. */
static peg_status update_file(const char *path, peg_str text, bool is_quiet, peg_error *reterr)
{
    struct peg__buf old = PEG__BUF(PEG_LIMIT_GENERATE_BYTES);
    const bool is_there = !cli_read_file(path, &old, NULL);
    const bool is_same = is_there && peg__str_eq(peg__buf_view(&old), text);
    const bool is_foreign = is_there && old.len && !is_generated(peg__buf_view(&old));
    peg_status status;

    peg__buf_free(&old);
    if (is_same)
        return PEG_OK;
    if (is_foreign)
        return peg__fail(reterr, PEG_EINVAL, "E_FILE",
                         "%.160s exists, and `pegboard generate` did not write it: move it, or "
                         "choose another folder",
                         path);
    status = write_generated(path, text, reterr);
    if (!status && !is_quiet)
        puts(path);
    return status;
}

struct output {
    const struct generate_args *args;
    const struct gen_service *service;
    const struct gen_toolset *toolset;
    const char *service_folder;
    const char *toolset_folder;
};

static peg_status write_file(const struct output *o, size_t file, peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_GENERATE_BYTES);
    struct peg__buf path = PEG__BUF(PEG_LIMIT_PATH_BYTES);
    const struct gen_language *language = o->args->language;
    const char *name = language->files[file].name;
    peg_status status = language->write(o->service, o->toolset, file, &text, reterr);

    if (o->args->is_flat)
        peg__buf_printf(&path, "%s/%s", o->args->out, name);
    else
        peg__buf_printf(&path, "%s/%s/toolsets/%s/%s", o->args->out, o->service_folder,
                        o->toolset_folder, name);
    if (!status && path.status)
        status = peg__fail(reterr, PEG_EINVAL, "E_FILE", "the name of the folder is too long");
    if (!status)
        status = make_folders(path.ptr, reterr);
    if (!status)
        status = update_file(path.ptr, peg__buf_view(&text), o->args->quiet, reterr);
    peg__buf_free(&text);
    peg__buf_free(&path);
    return status;
}

/* What peg_tool_new() would refuse later. */
static peg_status check_descriptions(const struct gen_toolset *toolset, peg_error *reterr)
{
    for (size_t i = 0; i < toolset->n_tools; i++) {
        if (!toolset->tools[i].description.len)
            return peg__fail(reterr, PEG_EINVAL, "E_GENERATE",
                             "tool '%.64s' has no description: say what it does and when to use it",
                             toolset->tools[i].name.ptr);
    }
    return PEG_OK;
}

static peg_status write_toolset(const struct output *o, peg_error *reterr)
{
    const bool has_provider = o->args->has_provider || !o->args->has_client;
    const struct gen_language *language = o->args->language;
    const bool is_wanted[] = {
        [GEN_PART_TYPES] = true,
        [GEN_PART_PROVIDER] = has_provider,
        [GEN_PART_CLIENT] = o->args->has_client,
    };
    peg_status status = has_provider ? check_descriptions(o->toolset, reterr) : PEG_OK;

    for (size_t i = 0; i < language->n_files && !status; i++) {
        if (is_wanted[language->files[i].part])
            status = write_file(o, i, reterr);
    }
    return status;
}

/* ---- both --------------------------------------------------------------------------------- */

/* NULL: out of memory, as the word may be. */
static const char *folder_of(const struct generate_args *args, struct peg__arena *arena,
                             const char *word)
{
    return word && args->language->folder ? args->language->folder(arena, word) : word;
}

static peg_status generate_from(const struct generate_args *args, const peg_json *root,
                                struct peg__arena *arena, peg_error *reterr)
{
    const struct gen_names names = {.service = args->service, .toolset = args->name};
    struct gen_service service;
    struct output output = {.args = args, .service = &service};
    peg_status status = gen_declaration_read(root, &names, arena, &service, reterr);

    if (!status)
        status = gen_type_service(&service, root, &args->options, arena, reterr);
    if (status)
        return status;
    if (args->is_flat && service.n_toolsets > 1)
        return peg__fail(reterr, PEG_EINVAL, "E_GENERATE",
                         "there are %zu toolsets, and --flat has a place for one",
                         service.n_toolsets);
    output.service_folder = folder_of(args, arena, gen_word(arena, service.name));
    for (size_t i = 0; i < service.n_toolsets && !status; i++) {
        output.toolset = &service.toolsets[i];
        output.toolset_folder = folder_of(args, arena, output.toolset->word);
        status = output.service_folder && output.toolset_folder ? write_toolset(&output, reterr)
                                                                : peg__fail_nomem(reterr);
    }
    return status;
}

/* "pegboard: file: /tools/0/...: what is wrong (E_CODE)"; frees the document. */
static int finish_document(const struct generate_args *args, const char *path, peg_json_doc *doc)
{
    struct peg__arena arena = {.held = 0};
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_error error;
    const bool is_written = !generate_from(args, peg_json_root(doc), &arena, &error);

    peg__arena_free(&arena);
    peg_json_doc_free(doc);
    if (is_written)
        return CLI_OK;
    peg__buf_puts(&line, "pegboard: ");
    cli_put_place(&line, path, &error);
    peg__buf_puts(&line, ": ");
    cli_put_error(&line, "", &error);
    cli_print_line(&line);
    return error.status == PEG_ESCHEMA ? CLI_NO : CLI_UNUSABLE;
}

static int generate_from_gateway(struct remote_args *remote, peg_client *client)
{
    const struct generate_args *args = peg__container_of(remote, struct generate_args, remote);
    peg_toolset *toolset = NULL;
    peg_json_doc *doc = NULL;
    peg_error error;
    int answer;

    if (peg_client_get(client, NULL, NULL, args->toolset, &toolset, &error)) {
        cli_suggestion_toolset(client, args->toolset, &error);
        return remote_complain(remote, &error);
    }
    if (toolset_document(toolset, &doc, &error))
        answer = remote_complain_local(args->toolset, &error);
    else
        answer = finish_document(args, args->toolset, doc);
    peg_toolset_unref(toolset);
    return answer;
}

static int generate_from_file(const struct generate_args *args, const char *path)
{
    peg_json_doc *doc = NULL;
    peg_error error;

    if (read_declaration(path, &doc, &error))
        return remote_complain_local(cli_file_label(path), &error);
    return finish_document(args, path, doc);
}

/* ---- the command -------------------------------------------------------------------------- */

#define GENERATE_STRING(option, member, kind_of_value, text)                                       \
    {                                                                                              \
        .name = option, .value = kind_of_value, .help = text, .kind = CLI_STRING, .least = 1,      \
        .at = offsetof(struct generate_args, member)                                               \
    }
#define GENERATE_FLAG(letter, option, member, text)                                                \
    CLI_OPTION_FLAG(struct generate_args, member, letter, option, text)

static const struct cli_option option_table[] = {
    GENERATE_STRING("out", out, "DIR", "folder to write to; needed"),
    GENERATE_STRING("lang", lang, "LANG", "language to write: c (default), python or ts"),
    GENERATE_FLAG(0, "client", has_client, "write calls of the tools instead of a provider"),
    GENERATE_FLAG(0, "provider", has_provider, "write a provider beside the calls of --client"),
    GENERATE_FLAG(0, "flat", is_flat, "write into DIR itself; for one toolset"),
    GENERATE_STRING("toolset", toolset, "NAME",
                    "take this toolset of a running gateway instead of FILE"),
    GENERATE_STRING("service", service, "NAME",
                    "name of the service; what FILE says, or the toolset's, by\ndefault"),
    GENERATE_STRING("name", name, "NAME",
                    "name of the toolset where FILE has none; tools by default"),
    GENERATE_FLAG(0, "raw", options.raw,
                  "keep what has no type as raw JSON, instead of refusing it"),
    GENERATE_FLAG(0, "raw-numbers", options.raw_numbers,
                  "keep numbers as raw JSON that a schema does not keep\nwithin 64 bits"),
    GENERATE_FLAG('q', "quiet", quiet, "do not print the names of the files that changed"),
    REMOTE_OPTIONS,
    {.name = NULL},
};

static int run_generate(const struct cli_command *self, int argc, char **argv)
{
    struct generate_args generate = {.remote = {.address = NULL}, .lang = "c"};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};

    if (!remote_read(&generate.remote, &args, NULL))
        return args.exit;
    if (!generate.out)
        return cli_bad_use(self, "--out is needed: the folder to write to");
    generate.language = gen_language_find(generate.lang);
    if (!generate.language)
        return cli_bad_use(self, "'%.64s' is no language of --lang: %s", generate.lang,
                           gen_language_names);
    if (!generate.toolset == !args.n_operands)
        return cli_bad_use(self, "a file or --toolset is needed, and not both");
    if (generate.toolset)
        return remote_work(&generate.remote, generate_from_gateway);
    return generate_from_file(&generate, args.operands[0]);
}

const struct cli_command cli_generate = {
    .name = "generate",
    .usage = "[options] --out DIR FILE",
    .summary = "write typed code for tools",
    .about =
        "Writes code for the tools of a declaration, a manifest, definitions or a turn: types\n"
        "of what they take and return, and a function to write for each tool (provider.h,\n"
        "provider.py, provider.ts), or one to call (client.h and so on, with --client).\n"
        "\n"
        "Files are DIR/SERVICE/toolsets/TOOLSET/types.h and so on. The same schemas give the\n"
        "same files; what has not changed is not written again. A file of such a name that\n"
        "this command did not write is an error.",
    .options = option_table,
    .max_operands = 1,
    .notes = "exit status:\n"
             "  0  all files are there\n"
             "  1  a schema has no type, or there is no such toolset\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard generate tools.yaml --out gen\n"
             "  pegboard generate tools.yaml --out gen --client --lang ts\n"
             "  pegboard generate --toolset weather --registry gateway:9090 --out gen",
    .run = run_generate,
};
