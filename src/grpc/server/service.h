/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_SERVICE_H
#define PEG_GRPC_SERVER_SERVICE_H

/* What tools/grpc-gen writes for each .proto file: constants, from which routes, stubs and
 * reflection are made. */

#include "pegboard/common.h"

struct ProtobufCMessageDescriptor;

struct grpc_method {
    const char *name; /* "Check" */
    const char *path; /* "/grpc.health.v1.Health/Check" */
    /* NULL: its messages are bytes, and what is handed over as a message is a peg_str. */
    const struct ProtobufCMessageDescriptor *input;
    const struct ProtobufCMessageDescriptor *output;
    bool client_streams;
    bool server_streams;
};

/* A FileDescriptorProto as bytes. */
struct grpc_file {
    const char *name; /* "grpc/health/v1/health.proto" */
    const uint8_t *bytes;
    size_t len;
    const struct grpc_file *const *imports;
    size_t n_imports;
};

struct grpc_service {
    const char *name; /* "grpc.health.v1.Health" */
    const struct grpc_method *methods;
    size_t n_methods;
    const struct grpc_file *file; /* NULL: reflection does not know it */
};

#endif
