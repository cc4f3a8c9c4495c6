/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Values are gathered as offsets from the beginning of the outermost one, because the copy of a
 * piece moves as it grows; they become pointers when the value is whole. The reader goes on where
 * it stopped, so a long list that comes in many pieces is read once.
 */

#include "bus/redis/resp.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

/* ---- looking at values --------------------------------------------------------------------- */

bool resp_is_list(const struct resp_value *value)
{
    return value->kind == RESP_LIST || value->kind == RESP_MAP || value->kind == RESP_PUSH;
}

const struct resp_value *resp_item(const struct resp_value *list, size_t i)
{
    const struct resp_value *item = list + 1;

    if (!resp_is_list(list) || i >= list->n_items)
        return NULL;
    while (i--)
        item = resp_next(item);
    return item;
}

peg_str resp_member(const struct resp_value *map, const char *name)
{
    const struct resp_value *item = map + 1;

    if (map->kind != RESP_MAP)
        return peg__str("");
    for (size_t i = 0; i < map->n_items; i += 2) {
        const struct resp_value *value = resp_next(item);

        if (item->kind == RESP_TEXT && peg__str_is(item->text, name))
            return value->kind == RESP_TEXT ? value->text : peg__str("");
        item = resp_next(value);
    }
    return peg__str("");
}

bool resp_is_error(const struct resp_value *value, const char *word)
{
    const size_t len = strlen(word);

    return value->kind == RESP_ERROR && peg__str_starts(value->text, peg__strn(word, len)) &&
           (value->text.len == len || value->text.ptr[len] == ' ');
}

bool resp_parse_number(peg_str text, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!peg__is_digit(text.ptr[i]) || number > (INT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret_number = number;
    return true;
}

/* ---- reading ------------------------------------------------------------------------------- */

static peg_status reject(peg_error *reterr, const char *why)
{
    return peg__fail(reterr, PEG_EPARSE, "E_REDIS_PROTOCOL",
                     "the server does not speak the protocol of Redis: %s; check the address", why);
}

static peg_status reject_size(peg_error *reterr, const char *what)
{
    return peg__fail(reterr, PEG_ELIMIT, "E_REDIS_PROTOCOL",
                     "a reply of the server has too many %s: check the address", what);
}

/* A line without its end, or {NULL, 0}: it is not whole. */
static peg_status read_line(struct resp_reader *reader, peg_str bytes, peg_str *ret_line,
                            peg_error *reterr)
{
    const peg_str rest = peg__str_from(bytes, reader->at);
    const size_t max = PEG_LIMIT_REDIS_LINE_BYTES;
    const char *end =
        rest.len ? (const char *)memchr(rest.ptr, '\n', rest.len < max ? rest.len : max) : NULL;

    *ret_line = (peg_str){NULL, 0};
    if (!end)
        return rest.len < max ? PEG_OK : reject_size(reterr, "bytes in one line");
    if (end - rest.ptr < 2 || end[-1] != '\r')
        return reject(reterr, "a line does not begin with a type and end with CR LF");
    *ret_line = peg__strn(rest.ptr, (size_t)(end - rest.ptr) - 1);
    return PEG_OK;
}

static bool parse_integer(peg_str text, int64_t *ret_integer)
{
    const bool is_signed = text.len && (text.ptr[0] == '-' || text.ptr[0] == '+');
    uint64_t number;

    if (!resp_parse_number(peg__str_from(text, is_signed), &number))
        return false;
    *ret_integer = text.ptr[0] == '-' ? -(int64_t)number : (int64_t)number;
    return true;
}

static peg_status add_value(struct resp_reader *reader, const struct resp_value *value,
                            peg_error *reterr)
{
    if (reader->n_values == PEG_LIMIT_REDIS_VALUES)
        return reject_size(reterr, "values");
    if (!PEG__RESERVE(reader->values, reader->n_values + 1, reader->capacity))
        return peg__fail_nomem(reterr);
    reader->values[reader->n_values++] = *value;
    return PEG_OK;
}

/* A value is whole: so may be the lists that it ends. */
static void end_value(struct resp_reader *reader)
{
    while (reader->depth > 0 && --reader->lists[reader->depth - 1].n_to_come == 0) {
        const size_t list = reader->lists[--reader->depth].list;

        reader->values[list].extent = (uint32_t)(reader->n_values - list);
    }
}

/* Texts are offsets until the outermost value is whole. */
static peg_status add_text(struct resp_reader *reader, enum resp_kind kind, size_t offset,
                           size_t len, peg_error *reterr)
{
    const struct resp_value value = {
        .kind = kind, .extent = 1, .integer = (int64_t)offset, .text = {NULL, len}};
    const peg_status status = add_value(reader, &value, reterr);

    if (!status)
        end_value(reader);
    return status;
}

static peg_status add_plain(struct resp_reader *reader, enum resp_kind kind, int64_t integer,
                            peg_error *reterr)
{
    const struct resp_value value = {.kind = kind, .extent = 1, .integer = integer};
    const peg_status status = add_value(reader, &value, reterr);

    if (!status)
        end_value(reader);
    return status;
}

static peg_status begin_list(struct resp_reader *reader, char type, int64_t n, peg_error *reterr)
{
    const size_t n_items = (size_t)n * (type == '%' ? 2 : 1);
    struct resp_value list = {.kind = RESP_LIST, .n_items = (uint32_t)n_items, .extent = 1};
    peg_status status;

    if (type == '%')
        list.kind = RESP_MAP;
    if (type == '>')
        list.kind = RESP_PUSH;
    status = add_value(reader, &list, reterr);
    if (status)
        return status;
    if (n_items == 0) {
        end_value(reader);
        return PEG_OK;
    }
    if (reader->depth == RESP_MAX_DEPTH)
        return reject_size(reterr, "lists inside lists");
    reader->lists[reader->depth].list = reader->n_values - 1;
    reader->lists[reader->depth].n_to_come = n_items;
    reader->depth++;
    return PEG_OK;
}

/* A text with its length before it. *ret_is_whole false: its end is still to come. */
static peg_status read_bulk(struct resp_reader *reader, peg_str bytes, peg_str line, int64_t len,
                            bool *ret_is_whole, peg_error *reterr)
{
    const char type = line.ptr[0];
    const size_t begin = reader->at + line.len + 2;
    const size_t prefix = type == '=' ? 4 : 0; /* a verbatim text begins with "txt:" */
    const size_t end = begin + (size_t)len;
    peg_status status;

    *ret_is_whole = bytes.len >= end + 2;
    if (!*ret_is_whole)
        return PEG_OK;
    if (bytes.ptr[end] != '\r' || bytes.ptr[end + 1] != '\n' || (size_t)len < prefix)
        return reject(reterr, "a text is not as long as it says");
    status = add_text(reader, type == '!' ? RESP_ERROR : RESP_TEXT, begin + prefix,
                      (size_t)len - prefix, reterr);
    reader->at = end + 2;
    return status;
}

/* Lines that announce what follows: texts and lists. */
static peg_status read_announced(struct resp_reader *reader, peg_str bytes, peg_str line,
                                 bool *ret_is_whole, peg_error *reterr)
{
    const char type = line.ptr[0];
    const bool is_bulk = strchr("$=!", type) != NULL;
    int64_t len;
    peg_status status;

    if (!parse_integer(peg__str_from(line, 1), &len) || len < -1)
        return reject(reterr, "a length is no number");
    if (len > (is_bulk ? PEG_LIMIT_REDIS_REPLY_BYTES : PEG_LIMIT_REDIS_VALUES))
        return reject_size(reterr, is_bulk ? "bytes" : "values");
    if (len >= 0 && is_bulk)
        return read_bulk(reader, bytes, line, len, ret_is_whole, reterr);
    status =
        len < 0 ? add_plain(reader, RESP_NULL, 0, reterr) : begin_list(reader, type, len, reterr);
    reader->at += line.len + 2;
    return status;
}

/* Lines that are a value. */
static peg_status read_short(struct resp_reader *reader, peg_str line, peg_error *reterr)
{
    const size_t begin = reader->at + 1;
    int64_t integer = 0;

    reader->at += line.len + 2;
    switch (line.ptr[0]) {
    case '+':
    case ',':
    case '(':
        return add_text(reader, RESP_TEXT, begin, line.len - 1, reterr);
    case '-':
        return add_text(reader, RESP_ERROR, begin, line.len - 1, reterr);
    case ':':
        if (!parse_integer(peg__str_from(line, 1), &integer))
            return reject(reterr, "an integer is no number");
        return add_plain(reader, RESP_INTEGER, integer, reterr);
    case '#':
        if (line.len != 2 || (line.ptr[1] != 't' && line.ptr[1] != 'f'))
            return reject(reterr, "a boolean is neither true nor false");
        return add_plain(reader, RESP_INTEGER, line.ptr[1] == 't', reterr);
    case '_':
        if (line.len != 1)
            return reject(reterr, "there is something behind a null");
        return add_plain(reader, RESP_NULL, 0, reterr);
    default:
        return reject(reterr, "a value has an unknown type");
    }
}

/* As much as there is. *ret_is_whole: the outermost value ends at reader->at. */
static peg_status read_values(struct resp_reader *reader, peg_str bytes, bool *ret_is_whole,
                              peg_error *reterr)
{
    *ret_is_whole = false;
    do {
        bool is_whole = true;
        peg_str line;
        peg_status status = read_line(reader, bytes, &line, reterr);

        if (status || !line.ptr)
            return status;
        if (strchr("$=!*~%>", line.ptr[0]) && line.ptr[0])
            status = read_announced(reader, bytes, line, &is_whole, reterr);
        else
            status = read_short(reader, line, reterr);
        if (status || !is_whole)
            return status;
        if (reader->at > PEG_LIMIT_REDIS_REPLY_BYTES)
            return reject_size(reterr, "bytes");
    } while (reader->depth > 0);
    *ret_is_whole = true;
    return PEG_OK;
}

/* Offsets become pointers. */
static void point_texts(struct resp_reader *reader, const char *base)
{
    for (size_t i = 0; i < reader->n_values; i++) {
        struct resp_value *value = &reader->values[i];

        if (value->kind == RESP_TEXT || value->kind == RESP_ERROR) {
            value->text.ptr = base + value->integer;
            value->integer = 0;
        }
    }
}

static void begin_value(struct resp_reader *reader)
{
    reader->at = 0;
    reader->n_values = 0;
    reader->depth = 0;
    reader->is_piece_done = false;
    reader->piece.max = PEG_LIMIT_REDIS_REPLY_BYTES + PEG_LIMIT_REDIS_LINE_BYTES + (1 << 20);
    if (reader->piece.capacity > PEG_LIMIT_REDIS_SPARE_BYTES)
        peg__buf_free(&reader->piece);
    peg__buf_clear(&reader->piece);
    if (reader->capacity > PEG_LIMIT_REDIS_SPARE_VALUES) {
        peg__free(reader->values);
        reader->values = NULL;
        reader->capacity = 0;
    }
}

static peg_status keep_piece(struct resp_reader *reader, peg_str bytes, peg_error *reterr)
{
    peg__buf_str(&reader->piece, bytes);
    if (reader->piece.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    return reader->piece.status ? reject_size(reterr, "bytes") : PEG_OK;
}

peg_status resp_reader_next(struct resp_reader *reader, peg_str *bytes,
                            const struct resp_value **ret_value, peg_error *reterr)
{
    const struct resp_value *value = NULL;
    peg_str all = *bytes;
    size_t n_before;
    peg_status status = PEG_OK;
    bool is_whole;

    if (reader->is_piece_done || reader->piece.max == 0)
        begin_value(reader);
    n_before = reader->piece.len;
    if (n_before > 0) {
        status = keep_piece(reader, *bytes, reterr);
        all = peg__buf_view(&reader->piece);
    }
    if (!status)
        status = read_values(reader, all, &is_whole, reterr);
    if (status)
        return status;
    if (is_whole) {
        point_texts(reader, all.ptr);
        value = reader->values;
        reader->is_piece_done = true;
        *bytes = peg__str_from(*bytes, reader->at - n_before);
    } else {
        if (n_before == 0)
            status = keep_piece(reader, *bytes, reterr);
        *bytes = peg__str_from(*bytes, bytes->len);
    }
    if (!status)
        *ret_value = value;
    return status;
}

void resp_reader_free(struct resp_reader *reader)
{
    peg__buf_free(&reader->piece);
    peg__free(reader->values);
    *reader = (struct resp_reader){0};
}

/* ---- writing ------------------------------------------------------------------------------- */

enum { MAX_HEAD = 24 };

static void put_head(struct peg__buf *out, char type, uint64_t n)
{
    char head[MAX_HEAD];
    char *at = head;

    *at++ = type;
    at = peg__put_decimal(at, n);
    *at++ = '\r';
    *at++ = '\n';
    peg__buf_add(out, head, (size_t)(at - head));
}

void resp_put_command(struct peg__buf *out, size_t n_args)
{
    put_head(out, '*', n_args);
}

void resp_begin(struct peg__buf *out, size_t len)
{
    put_head(out, '$', len);
}

void resp_end(struct peg__buf *out)
{
    peg__buf_add(out, "\r\n", 2);
}

void resp_put(struct peg__buf *out, peg_str arg)
{
    resp_begin(out, arg.len);
    peg__buf_str(out, arg);
    resp_end(out);
}

void resp_puts(struct peg__buf *out, const char *arg)
{
    resp_put(out, peg__str(arg));
}

void resp_put_number(struct peg__buf *out, int64_t number)
{
    char text[MAX_HEAD];
    char *at = text;

    if (number < 0)
        *at++ = '-';
    at = peg__put_decimal(at, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    resp_put(out, peg__strn(text, (size_t)(at - text)));
}
