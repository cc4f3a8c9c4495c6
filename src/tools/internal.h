/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TOOLS_INTERNAL_H
#define PEG_TOOLS_INTERNAL_H

/* The parts of command tools and manifests: spawn.c, descendants.c and process.c run a program,
 * command_output.c reports its output, manifest.c reads a file of such tools; template.h has
 * command lines with placeholders. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "core/context/context.h"
#include "pegboard/command.h"
#include "pegboard/common.h"
#include "pegboard/ctx.h"
#include "pegboard/json.h"
#include "pegboard/manifest.h"
#include "pegboard/tool.h"
#include "tools/spawn.h"
#include "tools/template.h"
#include "tools/tools.h"

/*
 * Runs a program to its end: writes its input, reads what it writes, and ends it when the context
 * says stop. No process, no descriptor and no signal is left over.
 *
 * Ending it means SIGTERM to its process group and, after the grace, SIGKILL. What left the group
 * (setsid) is found only in a process that has adopted it (descendants.c).
 *
 * Once the program itself has exited, whatever it started may hold the pipes for
 * PEG_LIMIT_COMMAND_DRAIN_MS more; then its group is killed. What let go of the pipes lives on,
 * unless the program was ended.
 *
 * The context's clock decides when its deadline has come. The grace is real time, as the
 * process is real. A clock that is not the system's cannot wake a thread that waits for a process,
 * so it is looked at every PEG_LIMIT_COMMAND_STEP_MS.
 */

enum peg__process_stream { PEG__PROCESS_STDOUT, PEG__PROCESS_STDERR };

struct peg__process_def {
    struct peg__program program;
    peg_str input;
    size_t max_output; /* bytes of standard output */
    int64_t grace_ms;
    /* Receives its output as it comes, on the thread that runs it; must not block. NULL: none.
     * Of standard output only what goes into the result. */
    void (*on_output)(enum peg__process_stream stream, peg_str bytes, void *user);
    void *user;
};

enum peg__process_end {
    PEG__PROCESS_EXITED,      /* number: its exit status */
    PEG__PROCESS_SIGNALED,    /* number: the signal, not ours */
    PEG__PROCESS_NOT_STARTED, /* number: errno */
    PEG__PROCESS_OUTPUT,      /* more than max_output: killed */
    PEG__PROCESS_TIMEOUT,     /* deadline or budget: ended */
    PEG__PROCESS_CANCELED,    /* ended */
    PEG__PROCESS_LOST,        /* somebody else has waited for it: its exit status is not known */
};

enum { PEG__TAIL_BYTES = 2048 };

struct peg__process_result {
    enum peg__process_end end;
    int number;
    struct peg__buf output;     /* as far as it was read; whole if it EXITED */
    char tail[PEG__TAIL_BYTES]; /* the last of standard error, any bytes */
    size_t tail_len;
    bool is_tail_cut; /* there was more before it */
};

/* Fills *ret_result, whose output is the caller's to free. PEG_ENOMEM: the output did not fit into
 * memory, and the program was killed. */
peg_status peg__process_run(const struct peg__process_def *def, peg_ctx *ctx,
                            struct peg__process_result *ret_result, peg_error *reterr);

/*
 * What a command writes, told to a caller who listens while it runs (core/context/notify.h):
 * standard error, and standard output if that is text. The result does not depend on it, and
 * nothing waits for it: what a slow listener does not take is left out, and the next piece says how
 * much that was.
 */

enum peg__output_kind {
    PEG__OUTPUT_JSON, /* standard output is a value: nothing to read until it is whole */
    PEG__OUTPUT_TEXT,
    PEG__OUTPUT_MAYBE, /* JSON if it begins like an object or an array */
};

struct peg__output_stream {
    const char *name;
    char held[4]; /* the beginning of a character whose rest has not come */
    size_t n_held;
    uint64_t n_left_out; /* bytes since the last piece that was taken */
};

/* Of one call; lives on the handler's stack. */
struct peg__output_relay {
    peg_call *call;
    const struct peg__listener *listener;
    enum peg__output_kind output;
    struct peg__output_stream out;
    struct peg__output_stream err;
};

/* Guesses the kind of output that begins so; MAYBE as long as it is white space. */
enum peg__output_kind peg__output_kind_of(peg_str output);

/* False: there is no listener, and the rest need not be called. */
bool peg__output_relay_begin(struct peg__output_relay *relay, peg_call *call,
                             enum peg__output_kind output);
/* What came; `user` is the relay. As peg__process_def wants it. */
void peg__output_relay_handle(enum peg__process_stream stream, peg_str bytes, void *user);
/* No more will come. */
void peg__output_relay_end(struct peg__output_relay *relay);

/* ---- commands ---- */

/* The words of a command line with placeholders; borrowed. */
struct peg__words {
    const struct peg__word *items;
    size_t n;
};

/* As peg_command_tool_new(). With words, which are well formed, these are its command line, of
 * which def->argv has the program alone, and it gets no standard input. */
peg_status peg__command_tool_new(const peg_command_def *def, const struct peg__words *words,
                                 peg_tool **ret_tool, peg_error *reterr);

/* Would the program of a tool that peg_command_tool_new() made be found, and may it be executed?
 * If not, `out` gets the sentence. */
bool peg__command_can_start(const peg_tool *tool, struct peg__buf *out);

/*
 * How a manifest is read: manifest.c reads the text, checks it against a schema and makes tools of
 * it, with the values that manifest_values.c takes and the commands of manifest_command.c.
 */

/* Owned; all strings lie in the arena. */
struct peg_manifest {
    struct peg__arena arena;
    const char *toolset;
    const char *description;
    const char *version;
    const char **tags;
    peg_registry *registry;
    struct peg__manifest_mcp *mcp;     /* NULL: none */
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

/* ---- manifest_values.c: E_MANIFEST with a place, or what a member says ---- */

extern const peg_json_options peg__manifest_limits;

peg_status peg__manifest_fail_at(const struct peg__manifest_reader *r, peg_str pointer,
                                 const char *message);
/* At the key of a member, which is what is wrong. */
peg_status peg__manifest_fail_key(const struct peg__manifest_reader *r, peg_str pointer,
                                  const char *message);
/* At a member of the tool that is read, such as "/name". */
peg_status peg__manifest_fail_tool(const struct peg__manifest_reader *r, const char *member,
                                   const char *message);

/* NULL if there is none; borrowed from the document. */
peg_status peg__manifest_text(const struct peg__manifest_reader *r, const peg_json *object,
                              const char *name, const char **ret_text);
/* An array of strings, NULL-terminated, in the arena; NULL if there is none. */
peg_status peg__manifest_list(const struct peg__manifest_reader *r, const peg_json *object,
                              const char *name, const char ***ret_list);
/* Milliseconds; 0 if there is none. */
peg_status peg__manifest_ms(const struct peg__manifest_reader *r, const peg_json *tool,
                            const char *name, int64_t most_ms, int64_t *ret_ms);
/* Bytes, at most `most`; 0 if there is none. */
peg_status peg__manifest_size(const struct peg__manifest_reader *r, const peg_json *tool,
                              const char *name, uint64_t most, size_t *ret_size);
/* NULL-terminated NAME=value; what a name of the host stands for is looked up now. */
peg_status peg__manifest_env(const struct peg__manifest_reader *r, const peg_json *tool,
                             const char ***ret_env);
/* From the folder of the manifest. */
peg_status peg__manifest_directory(const struct peg__manifest_reader *r, const peg_json *tool,
                                   const char **ret_directory);
/* JSON text in the arena; NULL if there is none. */
peg_status peg__manifest_schema_text(const struct peg__manifest_reader *r, const peg_json *tool,
                                     const char *name, const char **ret_text);

/* ---- manifest_command.c ---- */

/* The command line of a tool, NULL-terminated, in the arena. If it has placeholders they fit its
 * input_schema, *ret_argv is the program and *ret_words all of it; else these stay empty. */
peg_status peg__manifest_command(const struct peg__manifest_reader *r, const peg_json *tool,
                                 const char *const **ret_argv, struct peg__words *ret_words);

/* ---- manifest_mcp.c ---- */

/* What `mcp` says, if it is there. */
peg_status peg__manifest_take_mcp(const struct peg__manifest_reader *r);

#endif
