/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts in the shape of tool-call arguments: compact, nested objects, short strings with now
 * and then an escape or a character beyond ASCII, integers, decimals, booleans, arrays.
 *
 * As calls of one tool look alike, a text follows one of a few shapes: which members, in which
 * order, of which kind is thrown from the shape's own dice, values and lengths of strings and
 * arrays from the text's. A large text is an array of such records.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { N_SHAPES = 8, RECORD_BYTES = 700, MAX_NESTING = 3, COUNT_OF_WORDS = 32 };

static const char *const words[COUNT_OF_WORDS] = {
    "query",  "filters", "path",    "content", "limit",    "offset",   "user_id", "created_at",
    "title",  "status",  "price",   "tags",    "location", "language", "count",   "enabled",
    "start",  "end",     "options", "mode",    "region",   "currency", "score",   "message",
    "source", "target",  "version", "comment", "email",    "timeout",  "headers", "body",
};

/* As they stand in a JSON text. */
static const char *const special_words[] = {
    "caf\xc3\xa9",      "Z\xc3\xbcrich", "\xe6\x9d\xb1\xe4\xba\xac",
    "\xf0\x9f\x99\x82", "line\\nbreak",  "\\\"quoted\\\"",
    "C:\\\\temp",       "tab\\tstop",    "\\u00e9t\\u00e9",
};

struct writer {
    char *text;
    size_t len;
    size_t capacity;
    uint64_t shape; /* dice that decide on members and kinds */
    uint64_t dice;  /* dice that decide on values */
    bool failed;
};

static void write_bytes(struct writer *w, const char *bytes, size_t n)
{
    if (w->failed || n > w->capacity - w->len - BENCH_PADDING) {
        w->failed = true;
        return;
    }
    memcpy(w->text + w->len, bytes, n);
    w->len += n;
}

static void write_text(struct writer *w, const char *text)
{
    write_bytes(w, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void write_format(struct writer *w, const char *format,
                                                               ...)
{
    char text[128];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    write_text(w, text);
}

/* xorshift64*: the same throws everywhere. */
static unsigned throw_below(uint64_t *dice, unsigned limit)
{
    *dice ^= *dice >> 12;
    *dice ^= *dice << 25;
    *dice ^= *dice >> 27;
    return (unsigned)((*dice * UINT64_C(2685821657736338717)) >> 33) % limit;
}

static const char *any_word(struct writer *w)
{
    return words[throw_below(&w->dice, COUNT_OF_WORDS)];
}

static void write_string(struct writer *w)
{
    const unsigned n = 1 + throw_below(&w->dice, 6);

    write_text(w, "\"");
    for (unsigned i = 0; i < n; i++) {
        if (i)
            write_text(w, " ");
        if (throw_below(&w->dice, 20) == 0)
            write_text(
                w, special_words[throw_below(&w->dice, sizeof(special_words) / sizeof(char *))]);
        else
            write_text(w, any_word(w));
    }
    write_text(w, "\"");
}

static void write_number(struct writer *w)
{
    const char *sign = throw_below(&w->dice, 8) ? "" : "-";
    const unsigned a = throw_below(&w->dice, 1000);
    const unsigned b = throw_below(&w->dice, 1000000);

    switch (throw_below(&w->shape, 5)) {
    case 0:
        write_format(w, "%s%u.%02u5", sign, a, b % 100);
        break;
    case 1:
        write_format(w, "%s%u.%u3", sign, a % 180, b);
        break;
    case 2:
        write_format(w, "%u%06u", 1700 + a, b);
        break;
    default:
        write_format(w, "%s%u", sign, b % 10000);
        break;
    }
}

static void write_object(struct writer *w, unsigned n, unsigned nesting);

/* All items have one shape. */
/* NOLINTNEXTLINE(misc-no-recursion): as write_value */
static void write_array(struct writer *w, unsigned nesting)
{
    const unsigned kind = throw_below(&w->shape, nesting < MAX_NESTING ? 3 : 2);
    const unsigned n_members = 2 + throw_below(&w->shape, 4);
    const unsigned n = throw_below(&w->dice, 7);
    const uint64_t shape = w->shape;

    write_text(w, "[");
    for (unsigned i = 0; i < n; i++) {
        w->shape = shape;
        if (i)
            write_text(w, ",");
        if (kind == 0)
            write_string(w);
        else if (kind == 1)
            write_number(w);
        else
            write_object(w, n_members, nesting + 1);
    }
    w->shape = shape;
    write_text(w, "]");
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by MAX_NESTING */
static void write_value(struct writer *w, unsigned nesting)
{
    const unsigned kind = throw_below(&w->shape, 100);

    if (kind < 45)
        write_string(w);
    else if (kind < 68)
        write_number(w);
    else if (kind < 78)
        write_text(w, throw_below(&w->dice, 2) ? "true" : "false");
    else if (kind < 81)
        write_text(w, "null");
    else if (kind < 91 || nesting >= MAX_NESTING)
        write_array(w, nesting);
    else
        write_object(w, 3 + throw_below(&w->shape, 5), nesting + 1);
}

/* Keys are words in turn, numbered from the second time around, so that none comes twice. */
/* NOLINTNEXTLINE(misc-no-recursion): as write_value */
static void write_member(struct writer *w, unsigned first, unsigned i, unsigned nesting)
{
    const char *word = words[(first + i) % COUNT_OF_WORDS];

    if (i)
        write_text(w, ",");
    if (i < COUNT_OF_WORDS)
        write_format(w, "\"%s\":", word);
    else
        write_format(w, "\"%s_%u\":", word, i / COUNT_OF_WORDS);
    write_value(w, nesting);
}

/* NOLINTNEXTLINE(misc-no-recursion): as write_value */
static void write_object(struct writer *w, unsigned n, unsigned nesting)
{
    const unsigned first = throw_below(&w->shape, COUNT_OF_WORDS);

    write_text(w, "{");
    for (unsigned i = 0; i < n; i++)
        write_member(w, first, i, nesting);
    write_text(w, "}");
}

/* One call: members in the order of one of the shapes, until there are `bytes`. */
static void write_record(struct writer *w, size_t bytes)
{
    const size_t until = w->len + bytes;

    w->shape = UINT64_C(0xd1342543de82ef95) * (1 + throw_below(&w->dice, N_SHAPES));
    write_text(w, "{");
    for (unsigned i = 0; i == 0 || (w->len < until && !w->failed); i++)
        write_member(w, 0, i, 0);
    write_text(w, "}");
}

static void write_records(struct writer *w, size_t size)
{
    write_text(w, "[");
    while (w->len < size && !w->failed) {
        if (w->len > 1)
            write_text(w, ",");
        write_record(w, RECORD_BYTES);
    }
    write_text(w, "]");
}

static bool make_doc(struct bench_doc *doc, size_t size, uint64_t seed)
{
    struct writer w = {.capacity = size + 8192, .dice = UINT64_C(0x9e3779b97f4a7c15) * (seed + 1)};

    w.text = calloc(1, w.capacity);
    if (!w.text)
        return false;
    if (size < 5000)
        write_record(&w, size * 5 / 8); /* the last member goes beyond it */
    else
        write_records(&w, size - 400);
    *doc = (struct bench_doc){w.text, w.len};
    return !w.failed;
}

bool bench_docs_make(struct bench_docs *docs, const char *label, size_t n, size_t size)
{
    *docs = (struct bench_docs){.label = label, .n = n, .docs = calloc(n, sizeof(*docs->docs))};
    if (!docs->docs)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!make_doc(&docs->docs[i], size, size + i))
            return false;
        docs->bytes += docs->docs[i].len;
    }
    return true;
}

void bench_docs_done(struct bench_docs *docs)
{
    for (size_t i = 0; i < docs->n; i++)
        free(docs->docs[i].text);
    free(docs->docs);
}
