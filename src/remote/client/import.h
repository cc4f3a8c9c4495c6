/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_REMOTE_CLIENT_IMPORT_H
#define PEG_REMOTE_CLIENT_IMPORT_H

/* A tool of a local registry that calls one behind a gateway. */

#include "remote/client/remote.h"

/* What its handler needs; dies with the tool. */
struct remote__imported {
    peg_client *client; /* a reference */
    const char *registry;
    const char *toolset;
    const char *tool;
    bool with_output;
    bool has_output_schema;
    struct peg__arena arena; /* of the names */
};
struct remote__imported *remote__imported_free(struct remote__imported *imported);

/* The handler; user is a remote__imported. */
void remote__imported_run(peg_call *call, const peg_json *args, void *user);

#endif
