/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_MESSAGE_H
#define PEG_GRPC_MESSAGE_H

/*
 * Messages of protobuf-c in the memory of their call. Nothing that is unpacked here is freed
 * singly: it dies with the arena.
 *
 * What comes from a peer is walked once before protobuf-c sees it, which has no bound of its own
 * for messages inside messages (it recurses), and does not look at the text of strings.
 */

#include "base/arena.h"
#include "pegboard/common.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

/* *ret_message lies in the arena, and so do its strings: `bytes` may go. A failure leaves in the
 * arena what was unpacked so far, which nobody can reach.
 * PEG_EPARSE (E_PROTOBUF): no message of this type, or a string that is no UTF-8 or contains a
 * NUL, which a C string would be cut at. PEG_ELIMIT (names the limit): more than
 * PEG_LIMIT_GRPC_MESSAGE_DEPTH messages inside each other, or more than
 * PEG_LIMIT_GRPC_UNPACKED_BYTES of memory. PEG_ENOMEM. */
peg_status grpc_message_unpack(const struct ProtobufCMessageDescriptor *descriptor,
                               struct peg__arena *arena, peg_str bytes,
                               const struct ProtobufCMessage **ret_message, peg_error *reterr);

/* Bytes of a message on the wire; then writes exactly so many. The message must not change in
 * between. */
size_t grpc_message_packed_size(const struct ProtobufCMessage *message);
void grpc_message_pack(const struct ProtobufCMessage *message, uint8_t *ret_bytes);

#endif
