/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_FUZZ_H
#define PEG_FUZZ_H

/*
 * What the fuzz targets share. A target is one file with one LLVMFuzzerTestOneInput(), which
 * abort()s when a property does not hold. With clang and -Dfuzz=true it is linked with libFuzzer;
 * otherwise with replay.c, which runs the corpus as an ordinary test.
 */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/json.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__attribute__((noreturn))
PEG_PRINTF(4, 5) static inline void fuzz_fail(const char *file, int line, const char *condition,
                                              const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "%s:%d: %s does not hold: ", file, line, condition);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

#define REQUIRE(condition, ...)                                                                    \
    ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))

/* ---- input ------------------------------------------------------------------------ */

static inline peg_str fuzz_input(const uint8_t *data, size_t size)
{
    return (peg_str){(const char *)data, size};
}

/* The first line of *rest without its end; *rest becomes what follows. */
static inline peg_str fuzz_line(peg_str *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    const peg_str line = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};

    if (rest->len)
        *rest = peg__str_from(*rest, end ? line.len + 1 : line.len);
    return line;
}

/* A copy as valid UTF-8: what is not becomes '?'. Free it with free(). */
static inline peg_str fuzz_utf8(peg_str bytes)
{
    char *copy = malloc(bytes.len + 1);
    size_t len = 0;

    if (!copy)
        abort();
    for (size_t at = 0; at < bytes.len;) {
        size_t n = 1;

        while (n <= 4 && at + n <= bytes.len && !peg__utf8_is_valid(peg__strn(bytes.ptr + at, n)))
            n++;
        if (n > 4 || at + n > bytes.len) {
            copy[len++] = '?';
            at++;
        } else {
            memcpy(copy + len, bytes.ptr + at, n);
            len += n;
            at += n;
        }
    }
    copy[len] = '\0';
    return (peg_str){copy, len};
}

static inline void fuzz_free(peg_str s)
{
    free((void *)(uintptr_t)s.ptr);
}

/* ---- properties --------------------------------------------------------------------- */

static inline void fuzz_check_error(const peg_error *error, peg_str text)
{
    REQUIRE(error->status != PEG_OK && error->status != PEG_EINVAL, "status %d", error->status);
    REQUIRE(error->code && strncmp(error->code, "E_", 2) == 0, "a code has a name");
    REQUIRE(error->offset <= text.len, "offset %zu of %zu", error->offset, text.len);
    REQUIRE(error->message[0] != '\0', "an error says what to do");
    REQUIRE(!strchr(error->message, '\n'), "a message is one line");
    REQUIRE(peg__utf8_is_valid(peg__str(error->message)), "a message can be shown");
}

/* Does the flat form hold together? Extents nest, members are named, names are found. */
static inline void fuzz_check_form(const peg_json *root)
{
    const peg_json *const end = peg_json_next(root);

    for (const peg_json *value = root; value < end; value++) {
        size_t n = 0;

        REQUIRE(peg_json_next(value) <= end, "a value stays inside its document");
        if (value->kind == PEG_JSON_STRING) {
            REQUIRE(peg__utf8_is_valid(peg_json_str(value)), "strings are UTF-8");
            REQUIRE(value->u.ptr[value->len] == '\0', "strings end with NUL");
        } else if (value->kind == PEG_JSON_ARRAY) {
            PEG_JSON_EACH_ITEM (value, item)
                n++;
            REQUIRE(n == peg_json_len(value), "an array has %zu items", n);
        } else if (value->kind == PEG_JSON_OBJECT) {
            PEG_JSON_EACH_MEMBER (value, key) {
                n++;
                REQUIRE(key->kind == PEG_JSON_STRING, "a key is a string");
                REQUIRE(peg_json_get_str(value, peg_json_str(key)) == key + 1, "keys are unique");
            }
            REQUIRE(n == peg_json_len(value), "an object has %zu members", n);
        }
    }
}

/* Parses text that the library wrote, so it must be right. What was built value by value may be
 * deeper than what is read by default. */
static inline peg_json_doc *fuzz_parse_own(const char *text, size_t len)
{
    static const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_depth = 4096};
    peg_json_doc *doc = NULL;
    peg_error error;

    REQUIRE(peg_json_parse(peg__strn(text, len), &options, &doc, &error) == PEG_OK,
            "own text is refused: %s: %.200s", error.message, text);
    return doc;
}

#endif
