/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CLI_CHAT_CHAT_H
#define PEG_CLI_CHAT_CHAT_H

/*
 * What the files of `pegboard chat` share:
 *
 *   chat.c    options, the conversation, and commands such as /save
 *   ask.c     what is asked while a call waits: approvals, and questions of tools
 *   show.c    what happens in a turn, printed while it happens
 *   tools.c   the tools of manifests and of a gateway, in one registry
 *   model.c   the model behind HTTP, or a script in its place
 *   input.c   lines of standard input, and the signals that interrupt
 */

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/map.h"
#include "cli/cli.h"
#include "cli/remote/remote.h"
#include "cli/terminal/terminal.h"
#include "cli/tools/manifests.h"
#include "cli/tools/mcp.h"
#include "cli/tools/mcp_servers.h"
#include "pegboard/engine.h"
#include "pegboard/runner.h"
#include "pegboard/script.h"

enum { CHAT_MAX_FILES = 64, CHAT_MAX_TOOLSETS = 64 };

/* What was asked for. Strings are borrowed from argv. */
struct chat_options {
    struct remote_args remote;
    const char *model;
    const char *url;     /* NULL: the vendor's own */
    peg_vendor vendor;   /* PEG_VENDOR_NEUTRAL: not given */
    const char *key_env; /* NULL: the vendor's variable */
    const char *script;  /* in place of a model */
    const char *system;
    const char *resume;
    const char *toolsets[CHAT_MAX_TOOLSETS];
    size_t n_toolsets;
    bool approves_all;
};

/* ---- input.c ---- */

/* Owned. One thread reads; a thread of its own waits for signals. */
struct chat_input {
    bool is_terminal;     /* there is a person to ask */
    struct peg__buf text; /* read from standard input */
    size_t n_taken;       /* of it handed out */
    sigset_t signals;
    pthread_t reader;
    pthread_t thread;
    int wake;                     /* an eventfd: a signal came */
    atomic_bool is_ending;        /* SIGTERM or SIGHUP came */
    atomic_bool is_closing;       /* the thread is to end */
    atomic_bool is_interruptible; /* a read of the reader's thread ends when a signal comes */
    pthread_mutex_t lock;         /* of what follows */
    peg_cancel *running;          /* fired by a signal; NULL: nothing runs */
};

enum chat_line {
    CHAT_LINE,
    CHAT_LINE_INTERRUPTED, /* ^C */
    CHAT_LINE_END,
    CHAT_LINE_FAILED, /* too long, or no memory: after a complaint; there are no more */
};

/* Before there are other threads, which leave signals to it. */
peg_status chat_input_open(struct chat_input *in, peg_error *reterr);
void chat_input_close(struct chat_input *in);
/* Forgets ^C that came before. */
void chat_input_forget_signals(struct chat_input *in);
/* The next line without its end, borrowed until the next call. The prompt is for terminals. */
enum chat_line chat_input_line(struct chat_input *in, const char *prompt, peg_str *ret_line);
/* Throws away what was typed before it could be meant as an answer. */
void chat_input_discard(struct chat_input *in);
/* What a signal cancels from now on; NULL: nothing. */
void chat_input_set_running(struct chat_input *in, peg_cancel *cancel);

/* ---- model.c ---- */

/* Owned: one of the two. */
struct chat_model {
    peg_model *model;
    peg_script *script;
    peg_error error; /* what it failed with last, in its own words */
};

/* CLI_OK, or what to exit with after a complaint. */
int chat_model_open(const struct cli_command *command, const struct chat_options *o,
                    struct chat_model *ret_model);
void chat_model_close(struct chat_model *model);
/* Borrowed. */
peg_engine chat_model_engine(struct chat_model *model);

/* ---- tools.c ---- */

/* Owned. */
struct chat_tools {
    struct manifest_file files[CHAT_MAX_FILES];
    size_t n_files;
    peg_registry *local; /* tools of the files */
    peg_http *http;      /* of MCP servers; NULL until one needs it */
    peg_mcp_client *servers[CHAT_MAX_FILES];
    struct mcp_bridge *gateway; /* NULL: none */
};

/* CLI_OK, or what to exit with after a complaint. To be closed in either case. */
int chat_tools_open(const struct chat_options *o, struct chat_tools *tools);
void chat_tools_close(struct chat_tools *tools);
/* Those that there are now. A tool of a file hides one of the gateway that has its name. */
peg_status chat_tools_join(const struct chat_tools *tools, peg_registry **ret_registry,
                           peg_error *reterr);

/* ---- show.c ---- */

/* Value. */
struct chat_view {
    const struct cli_style *style;
    FILE *midline;      /* what was printed last ends within a line there; NULL: it does not */
    bool is_call_known; /* the next call that begins was shown when it was approved */
};

/* The style is plain unless standard output and standard error are terminals. */
void chat_view_init(struct chat_view *view, enum cli_color color);
/* A peg_event_fn; user: a struct chat_view. */
void chat_show_event(const peg_event *event, void *user);
/* "forecast {"city":"Rome"}", harmless. */
void chat_put_call(struct peg__buf *out, const struct chat_view *view, peg_str tool, peg_str args);
/* Prints and frees. What was printed before ends its line. */
void chat_show(struct chat_view *view, FILE *to, struct peg__buf *text);

/* ---- the conversation ---- */

/* Owned. */
struct chat {
    const struct chat_options *options;
    struct chat_input input;
    struct chat_view view;
    struct chat_model model;
    struct chat_tools tools;
    struct peg__map approved; /* name -> tool, a reference, that runs without being asked about */
    peg_turn *turn;
    char file[PATH_MAX]; /* what /save writes; "" until there is one */
    int exit;
};

/* ---- ask.c ---- */

/* Is a person asked before it runs: does it not say that it is harmless, and was it not approved
 * for the rest of the chat? Another tool of an approved one's name is asked about. */
bool chat_is_asked_about(const struct chat *c, const peg_tool *tool);
/* At the end. */
void chat_forget_approved(struct chat *c);
/* is_allowed of a peg_run_hooks; user: the struct chat. */
bool chat_is_allowed(peg_call *call, const peg_json *args, void *user);
/* A peg_gate_fn; user: the struct chat. */
void chat_answer_gate(peg_gate *gate, void *user);

#endif
