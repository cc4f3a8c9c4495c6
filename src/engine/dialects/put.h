/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_DIALECTS_PUT_H
#define PEG_ENGINE_DIALECTS_PUT_H

/*
 * Writes JSON as json/out.h does, quickly: where the buffer has room, which it nearly always has, a
 * piece of text is one copy of a fixed size without a call. What is beyond its end is overwritten
 * by the next piece. Where there is no room, json/out.h does it, and its limits hold.
 */

#include <string.h>

#include "engine/dialects/keyword.h"
#include "json/json.h"

/* A literal and its length. */
#define PEG__LIT(literal) (literal), sizeof(literal) - 1

/* Is there room for n bytes, a comma before and a NUL behind them? */
static inline bool peg__put_fits(const struct peg__buf *buf, size_t n)
{
    const size_t end = buf->len + n + 2;

    return end <= buf->capacity && end <= buf->max && !buf->status;
}

/* Where the next value starts, behind the comma if one is needed. Requires room. */
static inline char *peg__put_begin(const struct peg__out *out)
{
    char *p = out->buf->ptr + out->buf->len;

    *p = ',';
    return p + out->needs_comma;
}

static inline void peg__put_end(struct peg__out *out, char *end, bool needs_comma)
{
    *end = '\0';
    out->buf->len = (size_t)(end - out->buf->ptr);
    out->needs_comma = needs_comma;
}

/* JSON text as it is, as peg__out_raw() writes it. */
static inline void peg__put(struct peg__out *out, const char *text, size_t n)
{
    char *p;

    if (!peg__put_fits(out->buf, n)) {
        peg__out_raw(out, (peg_str){text, n});
        return;
    }
    p = peg__put_begin(out);
    memcpy(p, text, n);
    peg__put_end(out, p + n, true);
}

/* The same of a text in a field of a fixed size. */
static inline void peg__put_text(struct peg__out *out, const struct peg__kw_text *text)
{
    char *p;

    if (!peg__put_fits(out->buf, sizeof(text->bytes))) {
        peg__out_raw(out, (peg_str){text->bytes, text->len});
        return;
    }
    p = peg__put_begin(out);
    memcpy(p, text->bytes, sizeof(text->bytes));
    peg__put_end(out, p + text->len, true);
}

/* "keyword": */
static inline void peg__put_kw(struct peg__out *out, enum peg__kw keyword)
{
    peg__put_text(out, &peg__kw_texts[keyword]);
    out->needs_comma = false;
}

/* A literal that ends in a colon, or opens what comes next. */
static inline void peg__put_before(struct peg__out *out, const char *literal)
{
    peg__put(out, literal, strlen(literal));
    out->needs_comma = false;
}

static inline void peg__put_open(struct peg__out *out, const char *bracket)
{
    peg__put(out, bracket, 1);
    out->needs_comma = false;
}

/* No comma comes before it. */
static inline void peg__put_close(struct peg__out *out, const char *bracket)
{
    char *p;

    if (!peg__put_fits(out->buf, 1)) {
        out->needs_comma = false;
        peg__out_raw(out, (peg_str){bracket, 1});
        return;
    }
    p = out->buf->ptr + out->buf->len;
    *p++ = *bracket;
    peg__put_end(out, p, true);
}

/* The name of a member, as the document has it. */
void peg__put_key(struct peg__out *out, const peg_json *key);
/* A string of a document. */
void peg__put_string(struct peg__out *out, const peg_json *string);
/* A value of a document. */
void peg__put_value(struct peg__out *out, const peg_json *value);

#endif
