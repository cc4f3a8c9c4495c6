/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_RESULT_ENVELOPE_H
#define PEG_CORE_RESULT_ENVELOPE_H

#include "base/buf.h"
#include "pegboard/envelope.h"

/* Appends the envelope around the body. Requires a nonce that is one, and a kind. */
void peg__envelope_write(const peg_envelope *envelope, peg_str body, struct peg__buf *out);

/* Appends s for a place between double quotes: & < > " and characters that cannot be seen are
 * written as references. */
void peg__quoted_write(peg_str s, struct peg__buf *out);

/* The first character of s and its bytes; U+FFFD and 1 where it is no UTF-8. Requires s.len > 0. */
size_t peg__char_decode(peg_str s, uint32_t *ret_char);
/* Controls, and what turns or hides text without being seen: bidirectional marks, zero widths, tag
 * characters, line and paragraph separators. */
bool peg__char_is_unseen(uint32_t c);

/* Appends one media as text. nonce and tool may be NULL; may_trust false makes it untrusted. */
struct peg__media_frame {
    const char *nonce;
    const char *tool;
    bool may_trust;
};
void peg__media_write(const peg_media *media, const struct peg__media_frame *frame,
                      struct peg__buf *out);
void peg__media_marker_write(const peg_media *media, struct peg__buf *out);

#endif
