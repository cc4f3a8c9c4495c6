/* SPDX-License-Identifier: Apache-2.0 */

/* Writing: one pass over the values, with a stack of the containers that are open. */

#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"
#include "json/number/number.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- strings ------------------------------------------------------------------------ */

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

#if defined(__SSE2__)

enum { BLOCK = 16 };

/* One bit for each byte that needs an escape. */
static uint64_t find_special(const char *p)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i slash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    /* Unsigned c <= 0x1F. */
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);

    return (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, slash), control));
}

static size_t first_special(uint64_t special)
{
    return (size_t)__builtin_ctzll(special);
}

#else

enum { BLOCK = 8 };

/* Sets the highest bit of each byte of the result that is zero in the word; other bits are 0. */
static uint64_t zero_bytes(uint64_t word)
{
    const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;

    return ~(((word & low) + low) | word | low);
}

/* The highest bit of each byte that needs an escape. */
static uint64_t find_special(const char *p)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    /* A control character has none of its three highest bits. */
    return zero_bytes(word & ones * 0xE0) | zero_bytes(word ^ ones * '"') |
           zero_bytes(word ^ ones * '\\');
}

static size_t first_special(uint64_t special)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(special) / 8;
#else
    return (size_t)__builtin_clzll(special) / 8;
#endif
}

#endif

/* How many bytes from the start stand for themselves. A string of a document may be read beyond
 * its end, which saves the loop over the last bytes. */
static size_t plain_len(peg_str s, bool is_padded)
{
    size_t i = 0;

    while (s.len - i >= BLOCK || (is_padded && i < s.len)) {
        const uint64_t special = find_special(s.ptr + i);

        i += special ? first_special(special) : BLOCK;
        if (special || i >= s.len)
            return i < s.len ? i : s.len;
    }
    while (i < s.len && !needs_escape((unsigned char)s.ptr[i]))
        i++;
    return i;
}

static const char short_escapes[0x20] = {
    ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

/* Of a character that needs it. */
static size_t escaped_len(unsigned char c)
{
    return c >= 0x20 || short_escapes[c] ? 2 : 6;
}

static char *put_escape(char *p, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";

    *p++ = '\\';
    if (c >= 0x20) {
        *p++ = (char)c;
    } else if (short_escapes[c]) {
        *p++ = short_escapes[c];
    } else {
        *p++ = 'u';
        *p++ = '0';
        *p++ = '0';
        *p++ = hex[c >> 4];
        *p++ = hex[c & 15];
    }
    return p;
}

static size_t json_len(peg_str s, bool is_padded)
{
    size_t len = 2;

    while (s.len) {
        const size_t n = plain_len(s, is_padded);

        len += n;
        s = peg__str_from(s, n);
        if (s.len) {
            len += escaped_len((unsigned char)s.ptr[0]);
            s = peg__str_from(s, 1);
        }
    }
    return len;
}

static char *put_escaped_string(char *p, peg_str s, size_t n_plain, bool is_padded)
{
    for (;;) {
        memcpy(p, s.ptr, n_plain);
        p += n_plain;
        s = peg__str_from(s, n_plain);
        if (s.len == 0)
            return p;
        p = put_escape(p, (unsigned char)s.ptr[0]);
        s = peg__str_from(s, 1);
        n_plain = plain_len(s, is_padded);
    }
}

/* Computes the exact length first, so that the buffer grows once and never too much. */
static void write_string(peg_str s, bool is_padded, struct peg__buf *out)
{
    const size_t n_plain = plain_len(s, is_padded);
    const size_t len = n_plain == s.len ? n_plain + 2 : json_len(s, is_padded);
    char *p = peg__buf_reserve(out, len);

    if (!p)
        return;
    out->len += len;
    *p++ = '"';
    if (s.len)
        p = put_escaped_string(p, s, n_plain, is_padded);
    *p++ = '"';
    *p = '\0';
}

void peg__json_write_string(peg_str utf8, struct peg__buf *out)
{
    write_string(utf8, false, out);
}

void peg__json_write_doc_string(const peg_json *string, struct peg__buf *out)
{
    write_string(peg_json_str(string), true, out);
}

/* ---- values --------------------------------------------------------------------------- */

enum { INLINE_DEPTH = 32 };

struct open_container {
    const peg_json *end; /* behind its last value */
    bool is_object;
};

struct writer {
    struct peg__buf *out;
    bool is_pretty;
    size_t depth;
    size_t capacity;
    struct open_container *open; /* `few`, or allocated for deep documents */
    struct open_container few[INLINE_DEPTH];
};

/* Most of what is written between strings is one character that fits. */
static inline void put_char(struct peg__buf *out, char c)
{
    if (out->status || out->len + 1 >= out->capacity || out->len >= out->max) {
        peg__buf_putc(out, c);
        return;
    }
    out->ptr[out->len++] = c;
    out->ptr[out->len] = '\0';
}

static void break_line(struct writer *w)
{
    char *p;

    if (!w->is_pretty)
        return;
    p = peg__buf_reserve(w->out, 1 + 2 * w->depth);
    if (!p)
        return;
    *p++ = '\n';
    memset(p, ' ', 2 * w->depth);
    p[2 * w->depth] = '\0';
    w->out->len += 1 + 2 * w->depth;
}

static bool grow_stack(struct writer *w)
{
    size_t capacity = w->capacity;
    const bool is_inline = w->open == w->few;
    struct open_container *grown =
        peg__grow(is_inline ? NULL : w->open, sizeof(*grown), capacity + 1, &capacity);

    if (!grown) {
        w->out->status = PEG_ENOMEM;
        return false;
    }
    if (is_inline)
        memcpy(grown, w->few, sizeof(w->few));
    w->open = grown;
    w->capacity = capacity;
    return true;
}

static void open_container(struct writer *w, const peg_json *value)
{
    const bool is_object = value->kind == PEG_JSON_OBJECT;

    if (value->len == 0) {
        peg__buf_add(w->out, is_object ? "{}" : "[]", 2);
        return;
    }
    if (w->depth == w->capacity && !grow_stack(w))
        return;
    w->open[w->depth++] = (struct open_container){peg_json_next(value), is_object};
    put_char(w->out, is_object ? '{' : '[');
    break_line(w);
}

static void write_value_head(struct writer *w, const peg_json *value)
{
    switch (peg_json_kind_of(value)) {
    case PEG_JSON_NULL:
        peg__buf_add(w->out, "null", 4);
        break;
    case PEG_JSON_BOOL:
        peg__buf_add(w->out, value->u.truth ? "true" : "false", value->u.truth ? 4 : 5);
        break;
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        peg__number_write(value, w->out);
        break;
    case PEG_JSON_STRING:
        write_string(peg_json_str(value), true, w->out);
        break;
    case PEG_JSON_ARRAY:
    case PEG_JSON_OBJECT:
        open_container(w, value);
        break;
    }
}

/* Closes what ends before `next`; then a comma, if something goes on. */
static void close_and_separate(struct writer *w, const peg_json *next)
{
    while (w->depth && w->open[w->depth - 1].end == next) {
        const bool is_object = w->open[--w->depth].is_object;

        break_line(w);
        put_char(w->out, is_object ? '}' : ']');
    }
    if (w->depth) {
        put_char(w->out, ',');
        break_line(w);
    }
}

void peg__json_write(const peg_json *value, peg_json_style style, struct peg__buf *out)
{
    struct writer w = {.out = out, .is_pretty = style == PEG_JSON_PRETTY, .capacity = INLINE_DEPTH};
    const peg_json *end = peg_json_next(value);

    w.open = w.few;
    for (const peg_json *at = value; at < end && !out->status; at++) {
        if (w.depth && w.open[w.depth - 1].is_object) {
            write_string(peg_json_str(at++), true, out);
            put_char(out, ':');
            if (w.is_pretty)
                put_char(out, ' ');
        }
        write_value_head(&w, at);
        /* A container that was just opened has its first value next, and no comma. */
        if (at->kind < PEG_JSON_ARRAY || at->len == 0)
            close_and_separate(&w, at + 1);
    }
    if (w.open != w.few)
        peg__free(w.open);
}

peg_status peg_json_write(const peg_json *value, peg_json_style style, char **ret_text,
                          size_t *ret_len, peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__json_write(peg__json_or_null(value), style, &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
