/* SPDX-License-Identifier: Apache-2.0 */

/*
 * printf() and format() as SQLite has them, but not for ever: its own writes '%.2000000000c' one
 * character at a time, for 15 seconds, and looks neither at the clock nor at the limit meanwhile.
 * Each conversion is read here and handed to SQLite's own formatter with the value that it takes.
 */

#include <sqlite3.h>
#include <stdint.h>
#include <string.h>

#include "base/sqlite/text.h"
#include "base/text/str.h"

/* One call. */
struct print {
    sqlite3_str *out;
    sqlite3_value **values; /* that are left */
    int n_values;
    int max_bytes; /* of a value */
};

/* One conversion: %[flags][width][.precision]type */
struct conversion {
    char flags[8];
    int n_flags;
    int width; /* below 0: none */
    int precision;
    char type;
};

/* ---- values ------------------------------------------------------------------------- */

/* NULL if there are not so many. */
static sqlite3_value *take_value(struct print *p)
{
    if (p->n_values == 0)
        return NULL;
    p->n_values--;
    return *p->values++;
}

static sqlite3_int64 take_int(struct print *p)
{
    sqlite3_value *value = take_value(p);

    return value ? sqlite3_value_int64(value) : 0;
}

static double take_double(struct print *p)
{
    sqlite3_value *value = take_value(p);

    return value ? sqlite3_value_double(value) : 0;
}

static const char *take_text(struct print *p)
{
    sqlite3_value *value = take_value(p);

    return value ? (const char *)sqlite3_value_text(value) : NULL;
}

/* ---- reading a conversion ------------------------------------------------------------ */

/* What no value can have is one more than the largest. */
static int bound_number(const struct print *p, sqlite3_int64 number)
{
    return number > p->max_bytes ? p->max_bytes + 1 : (int)number;
}

static const char *read_digits(const struct print *p, const char *at, int *ret_number)
{
    sqlite3_int64 number = 0;

    for (; *at >= '0' && *at <= '9'; at++)
        number = bound_number(p, number * 10 + (*at - '0'));
    *ret_number = (int)number;
    return at;
}

/* A number, or * for the next value; *ret_is_negative is about the latter. */
static const char *read_number(struct print *p, const char *at, int *ret_number,
                               bool *ret_is_negative)
{
    sqlite3_int64 number;

    *ret_is_negative = false;
    if (*at != '*')
        return read_digits(p, at, ret_number);
    number = (int)take_int(p); /* SQLite cuts it, too */
    *ret_is_negative = number < 0;
    *ret_number = bound_number(p, number < 0 ? -number : number);
    return at + 1;
}

static void add_flag(struct conversion *c, char flag)
{
    if (!memchr(c->flags, flag, (size_t)c->n_flags))
        c->flags[c->n_flags++] = flag;
}

/* Behind the '%'. Returns what follows. */
static const char *read_conversion(struct print *p, const char *at, struct conversion *ret)
{
    bool is_negative;

    *ret = (struct conversion){.width = -1, .precision = -1};
    for (; *at && strchr("-+ #!0,", *at); at++)
        add_flag(ret, *at);
    if (*at == '*' || (*at >= '1' && *at <= '9')) {
        at = read_number(p, at, &ret->width, &is_negative);
        if (is_negative)
            add_flag(ret, '-');
    }
    if (*at == '.')
        at = read_number(p, at + 1, &ret->precision, &is_negative);
    for (int i = 0; i < 2 && *at == 'l'; i++)
        at++;
    ret->type = *at;
    if (*at == 'z') /* which frees its text where C calls it */
        ret->type = 's';
    if (*at == 'p')
        ret->type = 'X';
    return *at ? at + 1 : at;
}

/* ---- writing it ---------------------------------------------------------------------- */

static size_t char_len(const char *c)
{
    size_t len = c[0] != '\0';

    if ((c[0] & 0xC0) == 0xC0)
        while (len < 4 && (c[len] & 0xC0) == 0x80)
            len++;
    return len;
}

/* The first character of a text, as often as the precision says. */
static void write_char(struct print *p, const struct conversion *c)
{
    const char *text = take_text(p);
    const int n = c->precision > 1 ? c->precision : 1;
    const int padding = c->width > n ? c->width - n : 0;
    const bool is_left = memchr(c->flags, '-', (size_t)c->n_flags) != NULL;
    const size_t len = text ? char_len(text) : 0;

    if (n > p->max_bytes || padding > p->max_bytes) { /* more than fits: that is the error */
        sqlite3_str_appendchar(p->out, p->max_bytes, ' ');
        sqlite3_str_appendchar(p->out, p->max_bytes, ' ');
        return;
    }
    if (!is_left)
        sqlite3_str_appendchar(p->out, padding, ' ');
    for (int i = 0; i < n && !sqlite3_str_errcode(p->out); i++)
        sqlite3_str_append(p->out, text ? text : "", len ? (int)len : 1);
    if (is_left)
        sqlite3_str_appendchar(p->out, padding, ' ');
}

/* The conversion in SQLite's words, for a number with 64 bits or a text. */
static void write_format(const struct conversion *c, char ret_format[64])
{
    const bool is_integer = strchr("diuxXor", c->type) != NULL;
    char width[16] = "";
    char precision[16] = "";

    if (c->width >= 0)
        sqlite3_snprintf(sizeof(width), width, "%d", c->width);
    if (c->precision >= 0)
        sqlite3_snprintf(sizeof(precision), precision, ".%d", c->precision);
    sqlite3_snprintf(64, ret_format, "%%%.*s%s%s%s%c", c->n_flags, c->flags, width, precision,
                     is_integer ? "ll" : "", c->type);
}

/* False if there is no such conversion: SQLite ends there. */
static bool write_conversion(struct print *p, const struct conversion *c)
{
    char format[64];

    if (c->type == '%')
        sqlite3_str_appendchar(p->out, 1, '%');
    if (c->type == '%' || c->type == 'n')
        return true;
    if (c->type == 'c') {
        write_char(p, c);
        return true;
    }
    write_format(c, format);
    if (c->type && strchr("diuxXor", c->type))
        sqlite3_str_appendf(p->out, format, take_int(p));
    else if (c->type && strchr("eEfgG", c->type))
        sqlite3_str_appendf(p->out, format, take_double(p));
    else if (c->type && strchr("sqQw", c->type))
        sqlite3_str_appendf(p->out, format, take_text(p));
    else
        return false;
    return true;
}

/* The text before the next conversion. Not strcspn(), which a sanitizer has read to the end of a
 * format of megabytes each time. */
static size_t measure_plain(const char *at)
{
    size_t len = 0;

    while (at[len] && at[len] != '%')
        len++;
    return len;
}

/* ---- all of it ------------------------------------------------------------------------ */

void peg__sqlite_print(sqlite3_context *context, int n, sqlite3_value **values)
{
    sqlite3 *db = sqlite3_context_db_handle(context);
    const char *at = n > 0 ? (const char *)sqlite3_value_text(values[0]) : NULL;
    struct print p = {.values = values + 1,
                      .n_values = n - 1,
                      .max_bytes = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1)};

    if (!at)
        return;
    p.out = sqlite3_str_new(db);
    while (*at && !sqlite3_str_errcode(p.out)) {
        const size_t len = measure_plain(at);
        struct conversion c;

        sqlite3_str_append(p.out, at, (int)len);
        at += len;
        if (!*at)
            break;
        if (!at[1]) { /* SQLite writes a '%' at the end as it is */
            sqlite3_str_append(p.out, at, 1);
            break;
        }
        at = read_conversion(&p, at + 1, &c);
        if (!write_conversion(&p, &c))
            break;
    }
    if (sqlite3_str_length(p.out) || sqlite3_str_errcode(p.out))
        peg__sqlite_give_text(context, p.out);
    else
        sqlite3_free(sqlite3_str_finish(p.out)); /* an empty text is NULL there, too */
}
