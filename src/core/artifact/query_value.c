/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers as text: the rendering rule, and how an answer that is too long is cut. The buffer's
 * maximum ends the writing; the text is then cut back to the end of a line, and a last line reports
 * the cut.
 */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/artifact/query.h"
#include "json/json.h"

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* ---- bytes from outside ---------------------------------------------------------------- */

static void put_valid(struct peg__buf *out, peg_str text)
{
    size_t left;

    if (out->status)
        return;
    left = out->max > out->len ? out->max - out->len : 0;
    if (text.len <= left) {
        peg__buf_str(out, text);
        return;
    }
    peg__buf_add(out, text.ptr, peg__utf8_cut(text.ptr, left));
    if (!out->status)
        out->status = PEG_ELIMIT;
}

void peg__query_put(struct peg__buf *out, peg_str bytes)
{
    if (peg__utf8_is_valid(bytes)) {
        put_valid(out, bytes);
        return;
    }
    while (bytes.len && !out->status) {
        const size_t len = peg__utf8_char_len(bytes);

        put_valid(out, len ? peg__strn(bytes.ptr, len) : peg__str(replacement));
        bytes = peg__str_from(bytes, len ? len : 1);
    }
}

/* ---- too long -------------------------------------------------------------------------- */

/* Cuts the answer, at the end of a line if there is one, so that so many bytes fit behind it. */
static void cut_answer(struct peg__buf *out, size_t n_bytes)
{
    const size_t most = out->max > n_bytes ? out->max - n_bytes : 0;
    const char *end;

    out->status = PEG_OK;
    if (!out->ptr)
        return;
    /* A line that ends exactly where the text has to end is whole. */
    end = memrchr(out->ptr, '\n', most < out->len ? most + 1 : out->len);
    if (end)
        out->len = (size_t)(end - out->ptr);
    else if (most < out->len)
        out->len = peg__utf8_cut(out->ptr, most);
    out->ptr[out->len] = '\0';
}

void peg__query_finish(struct peg__buf *out, const char *instead)
{
    char note[320];
    int len;

    if (out->status != PEG_ELIMIT)
        return;
    len = snprintf(note, sizeof(note), "\n[cut: the answer reached its limit of %zu bytes; %s]",
                   out->max, instead);
    cut_answer(out, (size_t)len);
    peg__buf_puts(out, note);
}

/* ---- values ------------------------------------------------------------------------------ */

static const char ask_for_less[] = "ask for less of it";

static bool are_strings(const peg_json *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (items[i]->kind != PEG_JSON_STRING)
            return false;
    }
    return n > 0;
}

static bool holds_strings(const peg_json *array)
{
    PEG_JSON_EACH_ITEM (array, item) {
        if (item->kind != PEG_JSON_STRING)
            return false;
    }
    return array->len > 0;
}

static void render_strings(const peg_json *array, struct peg__buf *out)
{
    PEG_JSON_EACH_ITEM (array, item) {
        if (out->status)
            break;
        if (item != array + 1)
            peg__buf_putc(out, '\n');
        peg__query_put(out, peg_json_str(item));
    }
}

static void render(const peg_json *value, struct peg__buf *out)
{
    if (!value)
        peg__buf_puts(out, "(undefined)");
    else if (value->kind == PEG_JSON_STRING)
        peg__query_put(out, peg_json_str(value));
    else if (value->kind == PEG_JSON_ARRAY && value->len == 0)
        peg__buf_puts(out, "(empty list)");
    else if (value->kind == PEG_JSON_ARRAY && holds_strings(value))
        render_strings(value, out);
    else
        peg__json_write(value, PEG_JSON_PRETTY, out);
}

void peg__query_render(const peg_json *value, struct peg__buf *out)
{
    const size_t max = out->max;

    if (out->max > PEG_LIMIT_QUERY_BYTES)
        out->max = PEG_LIMIT_QUERY_BYTES;
    render(value, out);
    peg__query_finish(out, ask_for_less);
    out->max = max;
}

/* ---- lists of values ------------------------------------------------------------------------ */

peg_status peg__query_list_add(struct peg__query_list *list, const peg_json *value,
                               peg_error *reterr)
{
    if (list->len == PEG_LIMIT_QUERY_VALUES) {
        list->is_cut = true;
        return PEG_OK;
    }
    if (!PEG__RESERVE(list->items, list->len + 1, list->capacity))
        return peg__fail_nomem(reterr);
    list->items[list->len++] = value;
    return PEG_OK;
}

void peg__query_list_free(struct peg__query_list *list)
{
    peg__free(list->items);
    *list = (struct peg__query_list){0};
}

/* JSON text never has a line end within a string, so lines can be moved to the right. */
static void put_indented(struct peg__buf *out, peg_str text)
{
    while (!out->status) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const size_t len = end ? (size_t)(end - text.ptr) : text.len;

        peg__buf_puts(out, "  ");
        peg__buf_add(out, text.ptr, len);
        if (!end)
            return;
        peg__buf_putc(out, '\n');
        text = peg__str_from(text, len + 1);
    }
}

/* As an array of JSON values. The values are written one by one: copying them into a document would
 * cost their sizes, of which a path such as $..* makes a square. */
static void render_as_json(const struct peg__query_list *list, struct peg__buf *out)
{
    struct peg__buf one = PEG__BUF(out->max);

    peg__buf_putc(out, '[');
    for (size_t i = 0; i < list->len && !out->status; i++) {
        peg__buf_puts(out, i ? ",\n" : "\n");
        peg__buf_clear(&one);
        peg__json_write(list->items[i], PEG_JSON_PRETTY, &one);
        put_indented(out, peg__buf_view(&one));
        if (one.status && !out->status)
            out->status = one.status;
    }
    peg__buf_puts(out, "\n]");
    peg__buf_free(&one);
}

void peg__query_render_list(const struct peg__query_list *list, const char *instead,
                            struct peg__buf *out)
{
    if (list->len == 0) {
        peg__buf_puts(out, "(empty list)");
    } else if (are_strings(list->items, list->len)) {
        for (size_t i = 0; i < list->len && !out->status; i++) {
            if (i)
                peg__buf_putc(out, '\n');
            peg__query_put(out, peg_json_str(list->items[i]));
        }
    } else {
        render_as_json(list, out);
    }
    if (list->is_cut && !out->status)
        peg__buf_printf(out, "\n[cut: the answer reached its limit of %d values; %s]",
                        PEG_LIMIT_QUERY_VALUES, instead);
    peg__query_finish(out, instead);
}
