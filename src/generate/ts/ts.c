/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/ts/ts.h"

#include "base/error.h"
#include "generate/ts/internal.h"

static const struct gen_file files[] = {
    {"types.ts", GEN_PART_TYPES},
    {"provider.ts", GEN_PART_PROVIDER},
    {"client.ts", GEN_PART_CLIENT},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };

/* In the order of the files. */
static const struct part {
    const char *what;
    void (*write)(const struct ts_names *names, struct peg__buf *out);
} parts[N_FILES] = {
    {"What its tools take and return.", ts_write_types},
    {"The methods that its owner writes, and a provider of them.", ts_write_provider},
    {"Calls of its tools.", ts_write_client},
};

static peg_status write_ts(const struct gen_service *service, const struct gen_toolset *toolset,
                           size_t file, struct peg__buf *out, peg_error *reterr)
{
    struct peg__arena arena = {.held = 0};
    struct ts_names names;
    bool is_named = ts_names_make(toolset, &arena, &names);

    if (is_named) {
        ts_put_head(out, service, toolset, parts[file].what);
        parts[file].write(&names, out);
    }
    ts_names_free(&names);
    peg__arena_free(&arena);
    return is_named ? gen_finish(out, files[file].name, reterr) : peg__fail_nomem(reterr);
}

const struct gen_language gen_ts = {
    .name = "ts", .files = files, .n_files = N_FILES, .write = write_ts};
