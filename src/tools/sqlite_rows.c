/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows as JSON: {"columns": [...], "rows": [{...}], "count": n}, and "truncated": true if there are
 * more rows than max_rows or max_bytes let through, "cut_cells": n if values were cut.
 *
 * Every row is written, then taken back if it was too much, so a result is always whole.
 */

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "tools/sqlite.h"
#include "json/json.h"

/* What comes after the rows: "count", "truncated" and "cut_cells" with their numbers. */
enum { TAIL_BYTES = 128 };

struct writer {
    const struct peg__sqlite_tool *tool;
    struct peg__sqlite_stmt *stmt;
    struct peg__out out;
    struct peg__buf text; /* one cell, made safe */
    peg_str *names;       /* of the columns, each once */
    struct peg__arena arena;
    size_t n_columns;
    size_t n_rows;
    size_t n_cut;
    bool is_truncated;
};

/* ---- names ------------------------------------------------------------------------------- */

static bool is_name_taken(const struct writer *w, size_t n, peg_str name)
{
    for (size_t i = 0; i < n; i++) {
        if (peg__str_eq(w->names[i], name))
            return true;
    }
    return false;
}

/* The column's name, or with _2, _3 ... if another has it; one without a name gets one. */
static peg_status name_column(struct writer *w, size_t column)
{
    const char *given = peg__sqlite_column_name(w->stmt, (int)column);
    struct peg__buf name = PEG__BUF(PEG_LIMIT_SQLITE_COLUMN_BYTES + 32);
    size_t len;

    if (*given)
        peg__sqlite_add_text(peg__str(given), PEG_LIMIT_SQLITE_COLUMN_BYTES, &name);
    else
        peg__buf_printf(&name, "column_%zu", column + 1);
    len = name.len;
    for (size_t n = 2; !name.status && is_name_taken(w, column, peg__buf_view(&name)); n++) {
        name.len = len;
        peg__buf_printf(&name, "_%zu", n);
    }
    w->names[column] = peg__strn(NULL, name.len);
    if (!name.status)
        w->names[column].ptr = peg__arena_copy(&w->arena, peg__buf_view(&name));
    peg__buf_free(&name);
    return w->names[column].ptr ? PEG_OK : PEG_ENOMEM;
}

static peg_status write_names(struct writer *w, peg_error *reterr)
{
    w->names = peg__arena_alloc_zero(&w->arena, (w->n_columns + 1) * sizeof(*w->names));
    if (!w->names)
        return peg__fail_nomem(reterr);
    peg__out_key(&w->out, "columns");
    peg__out_array(&w->out);
    for (size_t i = 0; i < w->n_columns; i++) {
        if (name_column(w, i))
            return peg__fail_nomem(reterr);
        peg__out_string(&w->out, w->names[i]);
    }
    peg__out_end_array(&w->out);
    return PEG_OK;
}

/* ---- cells ---------------------------------------------------------------------------------- */

static void write_text_cell(struct writer *w, int column)
{
    peg__buf_clear(&w->text);
    if (peg__sqlite_add_text(peg__sqlite_text(w->stmt, column), w->tool->max_cell_bytes, &w->text))
        w->n_cut++;
    peg__out_string(&w->out, peg__buf_view(&w->text));
}

/* {"$blob_base64": "...", "bytes": n}: n of the whole, also if only its beginning is there. */
static void write_blob(struct writer *w, int column)
{
    const peg_str whole = peg__sqlite_blob(w->stmt, column);
    const size_t max = w->tool->max_cell_bytes / 4 * 3;
    const peg_str shown = peg__strn(whole.ptr, whole.len < max ? whole.len : max);
    char *text;

    peg__buf_clear(&w->text);
    text = peg__buf_reserve(&w->text, peg__base64_len(shown.len));
    if (text) {
        peg__base64_encode(shown, text);
        w->text.len += peg__base64_len(shown.len);
    }
    if (shown.len < whole.len)
        w->n_cut++;
    peg__out_object(&w->out);
    peg__out_member(&w->out, "$blob_base64", peg__buf_view(&w->text));
    peg__out_key(&w->out, "bytes");
    peg__out_integer(&w->out, (int64_t)whole.len);
    peg__out_end_object(&w->out);
}

/* JSON has no infinity; SQLite has no NaN. */
static void write_real(struct writer *w, int column)
{
    const double number = peg__sqlite_double(w->stmt, column);

    if (isfinite(number))
        peg__out_double(&w->out, number);
    else
        peg__out_cstring(&w->out, number > 0 ? "Infinity" : "-Infinity");
}

static void write_cell(struct writer *w, int column)
{
    switch (peg__sqlite_type_of(w->stmt, column)) {
    case PEG__SQLITE_NULL:
        peg__out_null(&w->out);
        return;
    case PEG__SQLITE_INTEGER:
        peg__out_integer(&w->out, peg__sqlite_int64(w->stmt, column));
        return;
    case PEG__SQLITE_REAL:
        write_real(w, column);
        return;
    case PEG__SQLITE_TEXT:
        write_text_cell(w, column);
        return;
    case PEG__SQLITE_BLOB:
        write_blob(w, column);
        return;
    }
}

/* ---- rows ---- */

/* Stops early: a row of many long cells could be far beyond what is allowed. */
static bool is_answer_full(const struct writer *w)
{
    return w->out.buf->len + TAIL_BYTES > w->tool->max_bytes;
}

/* False if it did not fit; then nothing was written. */
static bool write_row(struct writer *w)
{
    const struct peg__out mark = w->out;
    const size_t len = w->out.buf->len;
    const size_t n_cut = w->n_cut;

    peg__out_object(&w->out);
    for (size_t i = 0; i < w->n_columns && !is_answer_full(w); i++) {
        peg__out_key_str(&w->out, w->names[i]);
        write_cell(w, (int)i);
    }
    peg__out_end_object(&w->out);
    if (!is_answer_full(w) || w->out.buf->status)
        return true;
    w->out = mark;
    w->out.buf->len = len;
    w->n_cut = n_cut;
    return false;
}

static peg_status write_rows(struct writer *w, peg_error *reterr)
{
    peg_status status;
    bool is_row;

    peg__out_key(&w->out, "rows");
    peg__out_array(&w->out);
    while (!(status = peg__sqlite_step(w->stmt, &is_row, reterr)) && is_row) {
        if (w->n_rows >= w->tool->max_rows || !write_row(w)) {
            w->is_truncated = true;
            break;
        }
        w->n_rows++;
        if (w->text.status || w->out.buf->status)
            return peg__fail_nomem(reterr);
    }
    peg__out_end_array(&w->out);
    return status;
}

static void write_end(struct writer *w)
{
    peg__out_key(&w->out, "count");
    peg__out_integer(&w->out, (int64_t)w->n_rows);
    if (w->is_truncated) {
        peg__out_key(&w->out, "truncated");
        peg__out_bool(&w->out, true);
    }
    if (w->n_cut) {
        peg__out_key(&w->out, "cut_cells");
        peg__out_integer(&w->out, (int64_t)w->n_cut);
    }
    peg__out_end_object(&w->out);
}

static peg_status write_answer(struct writer *w, peg_error *reterr)
{
    peg_status status;

    if (w->n_columns > w->tool->max_columns)
        return peg__fail(reterr, PEG_ELIMIT, "E_SQL_LIMIT",
                         "the query has %zu columns, more than max_columns (%zu); name those that "
                         "are needed",
                         w->n_columns, w->tool->max_columns);
    peg__out_object(&w->out);
    status = write_names(w, reterr);
    if (status)
        return status;
    if (is_answer_full(w))
        return peg__fail(reterr, PEG_ELIMIT, "E_SQL_LIMIT",
                         "the names of the columns alone are more than max_bytes (%zu); ask for "
                         "fewer columns, or name them with AS",
                         w->tool->max_bytes);
    status = write_rows(w, reterr);
    if (!status)
        write_end(w);
    return status;
}

peg_status peg__sqlite_write_rows(const struct peg__sqlite_tool *tool,
                                  struct peg__sqlite_stmt *stmt, struct peg__buf *out,
                                  peg_error *reterr)
{
    struct writer w = {.tool = tool,
                       .stmt = stmt,
                       .out = {.buf = out},
                       .text = PEG__BUF(PEG_LIMIT_TEXT_BYTES),
                       .n_columns = (size_t)peg__sqlite_n_columns(stmt)};
    peg_status status = write_answer(&w, reterr);

    if (!status && out->status)
        status = peg__fail_nomem(reterr);
    peg__buf_free(&w.text);
    peg__arena_free(&w.arena);
    return status;
}
