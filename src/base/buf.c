/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"

char *peg__buf_reserve(struct peg__buf *buf, size_t n)
{
    if (buf->status)
        return NULL;
    if (n > buf->max - buf->len) {
        buf->status = PEG_ELIMIT;
        return NULL;
    }
    if (buf->len + n + 1 > buf->capacity) {
        char *grown = peg__grow(buf->ptr, 1, buf->len + n + 1, &buf->capacity);

        if (!grown) {
            buf->status = PEG_ENOMEM;
            return NULL;
        }
        buf->ptr = grown;
    }
    return buf->ptr + buf->len;
}

void peg__buf_add(struct peg__buf *buf, const void *bytes, size_t n)
{
    char *to = peg__buf_reserve(buf, n);

    if (!to)
        return;
    if (n)
        memcpy(to, bytes, n);
    buf->len += n;
    buf->ptr[buf->len] = '\0';
}

void peg__buf_str(struct peg__buf *buf, peg_str s)
{
    peg__buf_add(buf, s.ptr, s.len);
}

void peg__buf_puts(struct peg__buf *buf, const char *s)
{
    peg__buf_add(buf, s, strlen(s));
}

void peg__buf_putc(struct peg__buf *buf, char c)
{
    peg__buf_add(buf, &c, 1);
}

void peg__buf_utf8(struct peg__buf *buf, uint32_t c)
{
    char bytes[4];

    peg__buf_add(buf, bytes, (size_t)(peg__utf8_put(bytes, c) - bytes));
}

void peg__buf_as_utf8(struct peg__buf *buf, peg_str bytes)
{
    if (peg__utf8_is_valid(bytes)) {
        peg__buf_str(buf, bytes);
        return;
    }
    while (bytes.len && !buf->status) {
        const size_t n = peg__utf8_char_len(bytes);

        if (n)
            peg__buf_add(buf, bytes.ptr, n);
        else
            peg__buf_utf8(buf, 0xFFFD);
        bytes = peg__str_from(bytes, n ? n : 1);
    }
}

void peg__buf_repeat(struct peg__buf *buf, char c, size_t n)
{
    char *to = peg__buf_reserve(buf, n);

    if (!to)
        return;
    memset(to, c, n);
    buf->len += n;
    buf->ptr[buf->len] = '\0';
}

static int formatted_len(const char *fmt, va_list args) PEG_PRINTF(1, 0);
static int formatted_len(const char *fmt, va_list args)
{
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    return len;
}

/* How much of a text ends with a whole character, if at most one at its end is split. */
static size_t whole_len(const char *text, size_t len)
{
    size_t last = len;
    size_t n;

    while (last > 0 && len - last < 3 && ((unsigned char)text[last - 1] & 0xC0) == 0x80)
        last--;
    if (last == 0)
        return len;
    last--;
    n = (unsigned char)text[last] < 0xC0   ? 1
        : (unsigned char)text[last] < 0xE0 ? 2
        : (unsigned char)text[last] < 0xF0 ? 3
                                           : 4;
    return len - last < n ? last : len;
}

static void add_formatted(struct peg__buf *buf, size_t len, const char *fmt, va_list args)
    PEG_PRINTF(3, 0);
static void add_formatted(struct peg__buf *buf, size_t len, const char *fmt, va_list args)
{
    char *to = peg__buf_reserve(buf, len);

    if (!to)
        return;
    vsnprintf(to, len + 1, fmt, args);
    buf->len += len;
}

void peg__buf_vprintf(struct peg__buf *buf, const char *fmt, va_list args)
{
    const int len = formatted_len(fmt, args);

    if (len >= 0)
        add_formatted(buf, (size_t)len, fmt, args);
}

void peg__buf_vprintf_cut(struct peg__buf *buf, const char *fmt, va_list args)
{
    const size_t left = buf->max - buf->len;
    const size_t before = buf->len;
    const int len = formatted_len(fmt, args);

    if (len < 0 || (size_t)len <= left) {
        peg__buf_vprintf(buf, fmt, args);
        return;
    }
    add_formatted(buf, left, fmt, args);
    if (buf->status)
        return;
    buf->len = before + whole_len(buf->ptr + before, left);
    buf->ptr[buf->len] = '\0';
}

void peg__buf_printf(struct peg__buf *buf, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    peg__buf_vprintf(buf, fmt, args);
    va_end(args);
}

void peg__buf_clear(struct peg__buf *buf)
{
    buf->len = 0;
    buf->status = PEG_OK;
}

void peg__buf_free(struct peg__buf *buf)
{
    peg__free(buf->ptr);
    *buf = (struct peg__buf){.max = buf->max};
}

peg_status peg__buf_take(struct peg__buf *buf, char **ret_text, size_t *ret_len, peg_error *reterr)
{
    const peg_status status = buf->status;

    if (status == PEG_OK && !buf->ptr)
        peg__buf_add(buf, "", 0);
    if (buf->status == PEG_OK) {
        *ret_text = buf->ptr;
        if (ret_len)
            *ret_len = buf->len;
        *buf = (struct peg__buf){.max = buf->max};
        return PEG_OK;
    }
    if (buf->status == PEG_ELIMIT)
        peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                  "the text would be longer than %zu bytes; write a smaller value", buf->max);
    else
        peg__fail_nomem(reterr);
    peg__buf_free(buf);
    return status ? status : PEG_ENOMEM;
}
