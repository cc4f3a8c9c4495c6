/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/python/python.h"

#include "base/error.h"
#include "base/text/str.h"
#include "generate/python/internal.h"

static const struct gen_file files[] = {
    {"__init__.py", GEN_PART_TYPES},
    {"types.py", GEN_PART_TYPES},
    {"provider.py", GEN_PART_PROVIDER},
    {"client.py", GEN_PART_CLIENT},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };

static void write_nothing(const struct py_names *names, struct peg__buf *out)
{
    (void)names;
    (void)out;
}

/* In the order of the files. */
static const struct part {
    const char *what;
    void (*write)(const struct py_names *names, struct peg__buf *out);
} parts[N_FILES] = {
    {"Its tools, typed.", write_nothing},
    {"What its tools take and return.", py_write_types},
    {"The methods that its owner writes, and a provider of them.", py_write_provider},
    {"Calls of its tools.", py_write_client},
};

static void put_head(struct peg__buf *out, const struct gen_service *service,
                     const struct gen_toolset *toolset, const char *what)
{
    struct peg__buf text = PEG__BUF(1 << 16);

    gen_put_head(&text, service, toolset, what);
    py_put_docstring(out, 0, peg__str(gen_text_of(out, &text)));
    peg__buf_free(&text);
}

static peg_status write_python(const struct gen_service *service, const struct gen_toolset *toolset,
                               size_t file, struct peg__buf *out, peg_error *reterr)
{
    struct peg__arena arena = {.held = 0};
    struct py_names names;
    bool is_named = py_names_make(toolset, &arena, &names);

    if (is_named) {
        put_head(out, service, toolset, parts[file].what);
        parts[file].write(&names, out);
    }
    py_names_free(&names);
    peg__arena_free(&arena);
    return is_named ? gen_finish(out, files[file].name, reterr) : peg__fail_nomem(reterr);
}

const struct gen_language gen_python = {
    .name = "python",
    .files = files,
    .n_files = N_FILES,
    .write = write_python,
    .folder = py_safe,
};
