/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_GRPC_GZIP_H
#define PEG_GRPC_GZIP_H

#include "base/buf.h"

/* Appends to `out`. PEG_EPARSE (E_GZIP): no gzip, cut off, a wrong checksum, or bytes behind it.
 * PEG_ELIMIT: the result has more than `max` bytes; no more than that is ever held.
 * A failure leaves `out` as long as it was. */
peg_status grpc_gunzip(peg_str bytes, size_t max, struct peg__buf *out, peg_error *reterr);
/* Appends to `out`, fast rather than small. */
peg_status grpc_gzip(peg_str bytes, struct peg__buf *out, peg_error *reterr);

#endif
