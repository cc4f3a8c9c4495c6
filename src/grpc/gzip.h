/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_GZIP_H
#define PEG_GRPC_GZIP_H

#include "base/buf.h"

/*
 * A gzip member that comes in pieces. What a piece unpacks to is there when the piece was fed, so
 * that nobody has to unpack much at once because little came late. Owned.
 */
struct grpc_inflater;

/* What one has allocated, at most: zlib's state, and a window of 32 KiB as soon as a member is not
 * unpacked in one go. */
enum { GRPC_INFLATER_BYTES = 40 << 10 };

/* NULL: out of memory. All pieces together may unpack to `max` bytes. */
struct grpc_inflater *grpc_inflater_new(size_t max);
struct grpc_inflater *grpc_inflater_free(struct grpc_inflater *inflater);
/* Appends to `out`, which must take `max` bytes and be the same for all pieces. Fails as
 * grpc_gunzip() does, as soon as a piece shows it; a member that is cut off, when the last piece
 * is fed. Nothing may be fed after a failure or the last piece, and what a failure leaves behind
 * in `out` is of no use. */
peg_status grpc_inflater_feed(struct grpc_inflater *inflater, peg_str piece, bool is_last,
                              struct peg__buf *out, peg_error *reterr);

/* Appends to `out`. PEG_EPARSE (E_GZIP): no gzip, cut off, a wrong checksum, or bytes behind it; a
 * second member behind the first is such bytes, since no gRPC library writes one.
 * PEG_ELIMIT (E_GZIP_TOO_LARGE): the result has more than `max` bytes, or more than `out` takes;
 * no more than that is ever held. PEG_ENOMEM. A failure leaves `out` as it was. */
peg_status grpc_gunzip(peg_str bytes, size_t max, struct peg__buf *out, peg_error *reterr);
/* Appends to `out`, fast rather than small. PEG_ELIMIT (E_GZIP_TOO_LARGE): `out` does not take it.
 * PEG_ENOMEM. A failure leaves `out` as it was. */
peg_status grpc_gzip(peg_str bytes, struct peg__buf *out, peg_error *reterr);

#endif
