/* SPDX-License-Identifier: Apache-2.0 */

/* The text of a token file, and finding a token by its digest. */

#include "gateway/access/token_file.h"

#include <stdlib.h>
#include <strings.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "wire/name.h"

/* Owned; immutable once it is made. */
struct gw_token_table {
    struct gw_token_entry *entries; /* by the start of their digests */
    size_t n;
    size_t capacity;
    char *names; /* each ends with NUL */
    size_t names_len;
    const char **by_name;
};

struct gw_token_table *gw_token_table_free(struct gw_token_table *table)
{
    if (!table)
        return NULL;
    peg__free(table->entries);
    peg__free(table->names);
    peg__free((void *)table->by_name);
    peg__free(table);
    return NULL;
}

size_t gw_token_table_len(const struct gw_token_table *table)
{
    return table->n;
}

const struct gw_token_entry *gw_token_table_at(const struct gw_token_table *table, size_t i)
{
    return &table->entries[i];
}

/* ---- finding -------------------------------------------------------------------------------- */

static uint64_t start_of(const unsigned char *digest)
{
    uint64_t start;

    memcpy(&start, digest, sizeof(start));
    return start;
}

/* All of it, however early they differ. */
static bool is_same(const unsigned char *a, const unsigned char *b)
{
    unsigned difference = 0;

    for (size_t i = 0; i < PEG_SHA256_BYTES; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

/* The place of a digest is found by its first bytes, which tell somebody who measures the time
 * nothing about any token: what he learns is a part of a hash. */
const struct gw_token_entry *gw_token_table_find(const struct gw_token_table *table,
                                                 const unsigned char digest[32])
{
    const uint64_t start = start_of(digest);
    const struct gw_token_entry *found = NULL;
    size_t low = 0;
    size_t high = table->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (table->entries[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < table->n && table->entries[low].start == start; low++) {
        if (is_same(table->entries[low].digest, digest))
            found = &table->entries[low];
    }
    return found;
}

static int compare_name(peg_str a, const char *b)
{
    const int order = strncmp(a.ptr, b, a.len);

    return order ? order : -(b[a.len] != '\0');
}

bool gw_token_table_has_name(const struct gw_token_table *table, peg_str name)
{
    size_t low = 0;
    size_t high = table->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_name(name, table->by_name[middle]);

        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    struct gw_token_table *table;
    const char *file;
    unsigned line;
};

static peg_status refuse(const struct reading *r, peg_error *reterr, const char *what)
{
    peg__fail(reterr, PEG_EPARSE, "E_TOKEN_FILE",
              "%.100s:%u: %s; a line is a name and sha256:<64 hex digits>, for operators "
              "followed by `admin`, as `pegboard token new` writes it",
              r->file, r->line, what);
    if (reterr)
        reterr->line = r->line;
    return PEG_EPARSE;
}

static peg_str trimmed(peg_str s)
{
    while (s.len && (peg__is_blank(s.ptr[s.len - 1]) || s.ptr[s.len - 1] == '\r'))
        s.len--;
    while (s.len && peg__is_blank(s.ptr[0]))
        s = peg__str_from(s, 1);
    return s;
}

static peg_str take_word(peg_str *rest)
{
    peg_str word = {rest->ptr, 0};

    while (word.len < rest->len && !peg__is_blank(rest->ptr[word.len]))
        word.len++;
    *rest = trimmed(peg__str_from(*rest, word.len));
    return word;
}

static const peg_str prefix = PEG_LIT("sha256:");

static bool read_digest(peg_str text, unsigned char ret_digest[PEG_SHA256_BYTES])
{
    if (!peg__str_starts(text, prefix) || text.len != prefix.len + PEG_SHA256_HEX - 1)
        return false;
    for (size_t i = 0; i < PEG_SHA256_BYTES; i++) {
        const int high = peg__hex_value(text.ptr[prefix.len + 2 * i]);
        const int low = peg__hex_value(text.ptr[prefix.len + 2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_digest[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

bool gw_token_line_is(peg_str line, peg_str name, peg_str hash)
{
    peg_str rest = trimmed(line);
    peg_str digest;

    if (!peg__str_eq(take_word(&rest), name))
        return false;
    digest = peg__str_from(take_word(&rest), prefix.len);
    return !hash.len ||
           (hash.len <= digest.len && strncasecmp(digest.ptr, hash.ptr, hash.len) == 0);
}

bool gw_token_name_is_good(peg_str name)
{
    if (!name.len || name.len >= GW_TOKEN_NAME)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];

        if (c != '@' && wire_check_name(peg__strn(&c, 1), "", NULL) != PEG_OK)
            return false;
    }
    return true;
}

static peg_status add(struct reading *r, peg_str name, const struct gw_token_entry *what,
                      peg_error *reterr)
{
    struct gw_token_table *table = r->table;
    struct gw_token_entry *entry;

    if (table->n == PEG_LIMIT_GATEWAY_TOKENS)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOKEN_FILE",
                         "%.100s:%u: more than PEG_LIMIT_GATEWAY_TOKENS (%d): take old ones out",
                         r->file, r->line, PEG_LIMIT_GATEWAY_TOKENS);
    if (!PEG__RESERVE(table->entries, table->n + 1, table->capacity))
        return peg__fail_nomem(reterr);
    entry = &table->entries[table->n++];
    *entry = *what;
    entry->start = start_of(what->digest);
    entry->name = table->names + table->names_len;
    entry->line = r->line;
    memcpy(table->names + table->names_len, name.ptr, name.len);
    table->names_len += name.len;
    table->names[table->names_len++] = '\0';
    return PEG_OK;
}

static peg_status read_line(struct reading *r, peg_str text, peg_error *reterr)
{
    struct gw_token_entry entry = {0};
    peg_str rest = trimmed(text);
    peg_str name;

    if (!rest.len || rest.ptr[0] == '#')
        return PEG_OK;
    name = take_word(&rest);
    if (!gw_token_name_is_good(name))
        return refuse(r, reterr,
                      "the name has other characters than A-Z a-z 0-9 _ . : @ / - or "
                      "more than 128");
    if (!read_digest(take_word(&rest), entry.digest))
        return refuse(r, reterr, "what follows the name is no hash of a token");
    entry.is_admin = peg__str_is(rest, "admin");
    if (rest.len && !entry.is_admin)
        return refuse(r, reterr, "what follows the hash is not `admin`");
    return add(r, name, &entry, reterr);
}

static int by_digest(const void *a, const void *b)
{
    const struct gw_token_entry *left = a;
    const struct gw_token_entry *right = b;

    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return memcmp(left->digest, right->digest, sizeof(left->digest));
}

/* One token, two names: nobody could say who it is. */
static peg_status sort(struct reading *r, peg_error *reterr)
{
    struct gw_token_table *table = r->table;

    if (table->n)
        qsort(table->entries, table->n, sizeof(*table->entries), by_digest);
    for (size_t i = 1; i < table->n; i++) {
        const struct gw_token_entry *a = &table->entries[i - 1];
        const struct gw_token_entry *b = &table->entries[i];

        if (by_digest(a, b) != 0)
            continue;
        r->line = a->line > b->line ? a->line : b->line;
        return refuse(r, reterr, "this token stands in an earlier line, too: take one out");
    }
    return PEG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static peg_status sort_names(struct gw_token_table *table, peg_error *reterr)
{
    table->by_name = (const char **)peg__alloc((table->n + 1) * sizeof(*table->by_name));
    if (!table->by_name)
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < table->n; i++)
        table->by_name[i] = table->entries[i].name;
    qsort((void *)table->by_name, table->n, sizeof(*table->by_name), by_name);
    return PEG_OK;
}

static peg_status read_lines(struct reading *r, peg_str text, peg_error *reterr)
{
    peg_str rest = text;

    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        peg_status status;

        r->line++;
        status = read_line(r, peg__strn(rest.ptr, len), reterr);
        if (status)
            return status;
        rest = peg__str_from(rest, end ? len + 1 : len);
    }
    return sort(r, reterr);
}

peg_status gw_token_table_parse(peg_str text, const char *file, struct gw_token_table **ret_table,
                                peg_error *reterr)
{
    struct reading r = {.file = file};
    peg_status status;

    if (text.len > PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_TOKEN_FILE",
                         "%.100s is larger than PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES (%d): is it the "
                         "right file?",
                         file, PEG_LIMIT_GATEWAY_TOKEN_FILE_BYTES);
    r.table = peg__alloc_zero(1, sizeof(*r.table));
    if (!r.table)
        return peg__fail_nomem(reterr);
    /* A name takes less room than the line that it stands in. */
    r.table->names = peg__alloc(text.len + 1);
    status = r.table->names ? read_lines(&r, text, reterr) : peg__fail_nomem(reterr);
    if (!status)
        status = sort_names(r.table, reterr);
    if (status) {
        gw_token_table_free(r.table);
        return status;
    }
    *ret_table = r.table;
    return PEG_OK;
}
