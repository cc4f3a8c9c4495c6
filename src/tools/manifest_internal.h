/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_MANIFEST_INTERNAL_H
#define PEG_TOOLS_MANIFEST_INTERNAL_H

/*
 * How a manifest is read: manifest_file.c reads the text, manifest_form.c holds it against the
 * schema, manifest.c makes tools of it, of the values that manifest_values.c takes.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "pegboard/json.h"
#include "pegboard/manifest.h"

/* Owned; all strings lie in the arena. */
struct peg_manifest {
    struct peg__arena arena;
    const char *toolset;
    const char *description;
    const char *version;
    const char **tags;
    peg_registry *registry;
    struct peg__manifest_unset *unset; /* in the order of the tools; NULL: none */
    struct peg__manifest_unset **last_unset;
};

/* A variable to pass on that there is not. */
struct peg__manifest_unset {
    const char *tool;
    const char *name;
    struct peg__manifest_unset *next;
};

/* While it is read. */
struct peg__manifest_reader {
    peg_str text;
    const char *folder;
    const peg_json *root;
    peg_manifest *manifest;
    peg_error *reterr;
    size_t tool; /* its index */
};

/* ---- manifest_form.c ---- */

/* Has it every key that it needs, and no other? PEG_EPARSE with the place. */
peg_status peg__manifest_check_form(const struct peg__manifest_reader *r);

/* ---- manifest_values.c: E_MANIFEST with a place, or what a member says ---- */

extern const peg_json_options peg__manifest_limits;

peg_status peg__manifest_fail_at(const struct peg__manifest_reader *r, peg_str pointer,
                                 const char *words);
/* At the key of a member, which is what is wrong. */
peg_status peg__manifest_fail_key(const struct peg__manifest_reader *r, peg_str pointer,
                                  const char *words);
/* At a member of the tool that is read, such as "/name". */
peg_status peg__manifest_fail_tool(const struct peg__manifest_reader *r, const char *member,
                                   const char *words);

/* NULL if there is none; borrowed from the document. */
peg_status peg__manifest_text(const struct peg__manifest_reader *r, const peg_json *object,
                              const char *name, const char **ret_text);
/* An array of strings, NULL-terminated, in the arena; NULL if there is none. */
peg_status peg__manifest_list(const struct peg__manifest_reader *r, const peg_json *object,
                              const char *name, const char ***ret_list);
/* Milliseconds; 0 if there is none. */
peg_status peg__manifest_ms(const struct peg__manifest_reader *r, const peg_json *tool,
                            const char *name, int64_t most_ms, int64_t *ret_ms);
/* Bytes; 0 if there is none. */
struct peg__manifest_most {
    uint64_t bytes;
    const char *limit; /* its name */
};
peg_status peg__manifest_size(const struct peg__manifest_reader *r, const peg_json *tool,
                              const char *name, const struct peg__manifest_most *most,
                              size_t *ret_size);
/* JSON text in the arena; NULL if there is none. */
peg_status peg__manifest_schema_text(const struct peg__manifest_reader *r, const peg_json *tool,
                                     const char *name, const char **ret_text);

#endif
