/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_SERVER_SYMBOLS_H
#define PEG_GRPC_SERVER_SYMBOLS_H

/*
 * What a set of .proto files declares, found by name: files, services, methods, messages, fields,
 * enums and their values, extensions. Built once from the descriptors that tools/grpc-gen put into
 * the program, then immutable: any thread may read it.
 */

#include <protobuf-c/protobuf-c.h>

#include "grpc/server/service.h"

struct grpc_symbols;

/* Borrowed from the symbols. */
struct grpc_symbol_file {
    const struct grpc_file *file;
    /* The bytes of the file, then of everything that it imports, directly or not. */
    ProtobufCBinaryData *with_imports;
    size_t n_with_imports;
};

/* The files and all that they import; a file that is there twice counts once. The files outlive
 * the symbols. PEG_EEXISTS (E_GRPC_FILE_EXISTS): two different files of one name. PEG_EPARSE
 * (E_GRPC_DESCRIPTOR): the bytes are no descriptor. PEG_ELIMIT (names PEG_LIMIT_GRPC_FILES,
 * PEG_LIMIT_GRPC_SYMBOLS or PEG_LIMIT_GRPC_NESTING), PEG_ENOMEM. */
peg_status grpc_symbols_new(const struct grpc_file *const *files, size_t n_files,
                            struct grpc_symbols **ret_symbols, peg_error *reterr);
struct grpc_symbols *grpc_symbols_free(struct grpc_symbols *symbols);

/* Each NULL if there is none. Names are full, without a leading dot: "grpc.health.v1.Health". */
const struct grpc_symbol_file *grpc_symbols_file(const struct grpc_symbols *symbols, peg_str name);
const struct grpc_symbol_file *grpc_symbols_find(const struct grpc_symbols *symbols, peg_str name);
const struct grpc_symbol_file *grpc_symbols_extension(const struct grpc_symbols *symbols,
                                                      peg_str type, int32_t number);
/* How many extensions a type has; writes the numbers of the first `max`. */
size_t grpc_symbols_extension_numbers(const struct grpc_symbols *symbols, peg_str type,
                                      int32_t *ret_numbers, size_t max);

#endif
