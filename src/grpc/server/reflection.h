/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_REFLECTION_H
#define PEG_GRPC_SERVER_REFLECTION_H

/*
 * Server reflection, grpc.reflection.v1 and v1alpha: tells clients which services a server has and
 * what their messages look like, from the descriptors that tools/grpc-gen put into the program.
 */

#include "pegboard/common.h"

struct grpc_file;
struct grpc_server;
struct grpc_reflection;

/* Adds both to the server, as its last services: it tells of itself and of those that were added
 * before. As grpc_server_add() and grpc_symbols_new(); after a failure the server can only be
 * freed, because it may have one of the two. */
peg_status grpc_reflection_new(struct grpc_server *server, struct grpc_reflection **ret_reflection,
                               peg_error *reterr);
/* The same with files that no service names: those of details of errors. */
peg_status grpc_reflection_new_with(struct grpc_server *server,
                                    const struct grpc_file *const *files, size_t n_files,
                                    struct grpc_reflection **ret_reflection, peg_error *reterr);
/* After the server. */
struct grpc_reflection *grpc_reflection_free(struct grpc_reflection *reflection);

#endif
