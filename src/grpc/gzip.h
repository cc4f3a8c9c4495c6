/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_GZIP_H
#define PEG_GRPC_GZIP_H

#include "base/buf.h"

/* Appends to `out`. PEG_EPARSE (E_GZIP): no gzip, cut off, a wrong checksum, or bytes behind it; a
 * second member behind the first is such bytes, since no gRPC library writes one.
 * PEG_ELIMIT (E_GZIP_TOO_LARGE): the result has more than `max` bytes, or more than `out` takes;
 * no more than that is ever held. PEG_ENOMEM. A failure leaves `out` as it was. */
peg_status grpc_gunzip(peg_str bytes, size_t max, struct peg__buf *out, peg_error *reterr);
/* Appends to `out`, fast rather than small. PEG_ELIMIT (E_GZIP_TOO_LARGE): `out` does not take it.
 * PEG_ENOMEM. A failure leaves `out` as it was. */
peg_status grpc_gzip(peg_str bytes, struct peg__buf *out, peg_error *reterr);

#endif
