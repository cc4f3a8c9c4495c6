/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/c/c.h"

#include "base/error.h"
#include "generate/c/internal.h"

static const struct gen_file files[] = {
    {"types.h", GEN_PART_TYPES},       {"types.c", GEN_PART_TYPES},
    {"provider.h", GEN_PART_PROVIDER}, {"provider.c", GEN_PART_PROVIDER},
    {"client.h", GEN_PART_CLIENT},     {"client.c", GEN_PART_CLIENT},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };

/* In the order of the files. */
static const struct part {
    const char *what;
    void (*write)(const struct c_names *names, struct peg__buf *out);
} parts[N_FILES] = {
    {"What its tools take and return.", c_write_types_h},
    {"How that is decoded and encoded.", c_write_types_c},
    {"The functions that its owner writes.", c_write_provider_h},
    {"A registry of these functions.", c_write_provider_c},
    {"Calls of its tools.", c_write_client_h},
    {"Calls of its tools.", c_write_client_c},
};

static peg_status write_c(const struct gen_service *service, const struct gen_toolset *toolset,
                          size_t file, struct peg__buf *out, peg_error *reterr)
{
    struct peg__arena arena = {.held = 0};
    struct c_names names;
    bool is_named = c_names_make(toolset, &arena, &names);

    if (is_named) {
        c_put_head(out, service, toolset, parts[file].what);
        parts[file].write(&names, out);
    }
    c_names_free(&names);
    peg__arena_free(&arena);
    return is_named ? gen_finish(out, files[file].name, reterr) : peg__fail_nomem(reterr);
}

const struct gen_language gen_c = {
    .name = "c", .files = files, .n_files = N_FILES, .write = write_c};
