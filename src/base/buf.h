/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_BUF_H
#define PEG_BASE_BUF_H

/*
 * A growable run of bytes with a maximum. The first failure sticks: later adds
 * do nothing, and peg__buf_status() tells it once at the end.
 *
 *   struct peg__buf buf = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
 *   peg__buf_puts(&buf, "hello");
 *   status = peg__buf_take(&buf, &text, &len, reterr);
 */

#include <stdarg.h>

#include "pegboard/common.h"

struct peg__buf {
    char *ptr; /* owned; NUL-terminated once anything was added */
    size_t len;
    size_t capacity;
    size_t max; /* adding beyond it is PEG_ELIMIT */
    peg_status status;
};

#define PEG__BUF(maximum)                                                                          \
    {                                                                                              \
        .max = (maximum)                                                                           \
    }

/* Reserves n more bytes and a NUL. Returns where to write, or NULL; the caller adds to len. */
char *peg__buf_reserve(struct peg__buf *buf, size_t n);
void peg__buf_add(struct peg__buf *buf, const void *bytes, size_t n);
void peg__buf_str(struct peg__buf *buf, peg_str s);
void peg__buf_puts(struct peg__buf *buf, const char *s);
void peg__buf_putc(struct peg__buf *buf, char c);
/* Bytes from outside: what is not UTF-8 becomes U+FFFD, one for each byte. */
void peg__buf_as_utf8(struct peg__buf *buf, peg_str bytes);
/* A character of Unicode. */
void peg__buf_utf8(struct peg__buf *buf, uint32_t c);
void peg__buf_repeat(struct peg__buf *buf, char c, size_t n);
void peg__buf_printf(struct peg__buf *buf, const char *fmt, ...) PEG_PRINTF(2, 3);
void peg__buf_vprintf(struct peg__buf *buf, const char *fmt, va_list args) PEG_PRINTF(2, 0);
/* The same for a text of any length: leaves out the characters that exceed the maximum. */
void peg__buf_vprintf_cut(struct peg__buf *buf, const char *fmt, va_list args) PEG_PRINTF(2, 0);

/* Forgets the bytes and the failure, keeps the memory. */
void peg__buf_clear(struct peg__buf *buf);
void peg__buf_free(struct peg__buf *buf);
static inline peg_str peg__buf_view(const struct peg__buf *buf)
{
    return (peg_str){buf->ptr ? buf->ptr : "", buf->len};
}

/* Hands over the bytes (never NULL on success, NUL-terminated) or reports what went wrong
 * (E_OUT_OF_MEMORY, E_TEXT_TOO_LARGE). The buffer is empty and freed in either case. ret_len
 * may be NULL. */
peg_status peg__buf_take(struct peg__buf *buf, char **ret_text, size_t *ret_len, peg_error *reterr);

#endif
