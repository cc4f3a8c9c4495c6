/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEGBOARD_MANIFEST_H
#define PEGBOARD_MANIFEST_H

/*
 * A toolset of commands, described in YAML (or JSON): what `pegboard provide` reads.
 *
 *   toolset: files                    [A-Za-z0-9_.:/-]{1,256}
 *   description: Looks at files
 *   version: 1.0.0                    optional, as are the two above and below it but the name
 *   tags: [local]
 *   tools:
 *     - name: count_lines
 *       description: Counts the lines of a file.
 *       input_schema:                 JSON Schema; without it the tool takes no arguments
 *         type: object
 *         properties: {path: {type: string}}
 *         required: [path]
 *       command: [python3, count.py]  words, no shell; the arguments are JSON on standard input
 *
 * or with arguments in the command line, still without a shell (docs/providers.md):
 *
 *       command: [grep, -n, [--max-count, "{limit}"], --, "{text}", "{files}"]
 *
 *   {name}    a member of the arguments, as a word or a part of one; the word of an array is
 *             repeated for each item. A word that begins with it must not come to begin with '-',
 *             unless a word "--" stands before it
 *   {-name}   the same, and may begin with '-'
 *   {?name}   a word of a group: the group is there if the member is true
 *   {{name}}  the text {name}
 *   [...]     a group: it vanishes if one of its members is absent, null or an empty array
 *
 * Standard input is empty then. Of each tool, where it is wanted:
 *
 *       output_schema: {type: integer}
 *       shell: true                   command is one text for /bin/sh -c
 *       output: auto                  what standard output is, or json, text. auto: JSON if it
 *                                     is an object or an array (with output_schema: any JSON)
 *       timeout: 10s                  as Go writes durations: 1m30s, 500ms
 *       grace: 2s                     between SIGTERM and SIGKILL
 *       max_memory: 256MiB            of address space, of each process
 *       max_output: 1MiB              of standard output; at most 8MiB, as a result
 *       env: [HOME, LANG=C]           variables of the host to pass on, or new ones; PATH always is
 *       directory: data               to run in, from the folder of the manifest [that folder]
 *       idempotent: true              may be run again if it is not known whether it ran
 *       read_only: true               changes nothing; may be run again, too
 *       destructive: true             may remove or overwrite what was there
 *       additive: true                changes something, but only adds
 *       tags: [text]
 *
 * A toolset may have the tools of an MCP server, in place of tools of its own or beside them:
 *
 *   mcp:
 *     command: [npx, -y, "@modelcontextprotocol/server-filesystem", /srv/data]
 *     env: [HOME]                     as above, and
 *     directory: data
 *     timeout: 30s                    of each call
 *     tools:                          globs
 *       include: ["read_*", list_directory]
 *       exclude: [read_media_file]
 *
 * peg_mcp_import_manifest() of mcp.h starts it; peg_manifest_registry() has the commands alone.
 *
 * Whatever else stands there is refused, with its place and the key that was meant.
 */

#include <pegboard/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Owned. */
typedef struct peg_manifest peg_manifest;

/* folder: where the manifest lies, which its commands run in; NULL: the host's working directory.
 * PEG_EPARSE (E_MANIFEST, and the codes of peg_yaml_parse()) with line, column and `where`,
 * PEG_ELIMIT, PEG_ENOMEM. Whether programs exist is found out when they are called, or by
 * peg_manifest_inspect(). */
PEG_API PEG_MUST_USE peg_status peg_manifest_parse(peg_str text, const char *folder,
                                                   peg_manifest **ret_manifest, peg_error *reterr);
/* The same from a file, whose folder it is. PEG_EIO (E_MANIFEST) too. */
PEG_API PEG_MUST_USE peg_status peg_manifest_read(const char *path, peg_manifest **ret_manifest,
                                                  peg_error *reterr);
PEG_API peg_manifest *peg_manifest_free(peg_manifest *manifest);

/* Looks for what would keep its tools from running here and now: a program that is not found or may
 * not be executed, a directory that is none, a variable of `env` that is not set; and for members
 * of schemas that are ignored and one edit from a keyword. `tell` is called for each with a
 * sentence that is valid meanwhile. PEG_ENOMEM. */
PEG_API PEG_MUST_USE peg_status peg_manifest_inspect(const peg_manifest *manifest,
                                                     void (*tell)(const char *tool,
                                                                  const char *words, void *user),
                                                     void *user, peg_error *reterr);

/* ---- what it says: borrowed from the manifest ----------------------------------------------- */

PEG_API const char *peg_manifest_toolset(const peg_manifest *manifest);
PEG_API const char *peg_manifest_description(const peg_manifest *manifest); /* "" if none */
PEG_API const char *peg_manifest_version(const peg_manifest *manifest);     /* "" if none */
PEG_API const char *const *peg_manifest_tags(const peg_manifest *manifest); /* NULL-terminated */
PEG_API peg_registry *peg_manifest_registry(const peg_manifest *manifest);  /* its tools */

#ifdef __cplusplus
}
#endif
#endif
