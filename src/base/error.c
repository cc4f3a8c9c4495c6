/* SPDX-License-Identifier: Apache-2.0 */

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"

/* Messages quote what came from outside, and "%.20s" may end inside a character; a
 * message is one line of text wherever it is shown or logged. */
static void make_showable(char *message)
{
    unsigned char *s = (unsigned char *)message;

    while (*s) {
        const size_t len = peg__utf8_char_len(peg__strn((const char *)s, 4));

        if (len == 0 || *s < 0x20 || *s == 0x7F)
            *s++ = '?';
        else
            s += len;
    }
}

/* Appends ": " and as much of the other sentence as there is room for. */
static void join(char *message, size_t size, const char *more)
{
    const size_t len = strlen(message);
    const int want = snprintf(message + len, size - len, ": %s", more);

    if (want >= 0 && (size_t)want >= size - len) {
        char *tail = message + peg__utf8_cut(message, size - 4);

        memcpy(tail, "...", 4);
    }
}

static void put_message(peg_error *error, const char *fmt, va_list args) PEG_PRINTF(2, 0);
static void put_message(peg_error *error, const char *fmt, va_list args)
{
    const int len = vsnprintf(error->message, sizeof(error->message), fmt, args);

    if (len >= (int)sizeof(error->message)) {
        char *tail = error->message + peg__utf8_cut(error->message, sizeof(error->message) - 4);

        memcpy(tail, "...", 4);
    }
    make_showable(error->message);
}

static void clear(peg_error *error, peg_status status, const char *code)
{
    error->status = status;
    error->code = code;
    error->cause = "";
    error->offset = 0;
    error->line = 0;
    error->column = 0;
    error->where[0] = '\0';
}

peg_status peg__fail(peg_error *reterr, peg_status status, const char *code, const char *fmt, ...)
{
    va_list args;

    if (!reterr)
        return status;
    clear(reterr, status, code);
    va_start(args, fmt);
    put_message(reterr, fmt, args);
    va_end(args);
    return status;
}

peg_status peg__fail_because(peg_error *reterr, peg_status status, const char *code,
                             const peg_error *cause, const char *fmt, ...)
{
    const peg_error behind = *cause; /* it may be *reterr */
    va_list args;

    if (!reterr)
        return status;
    clear(reterr, status, code);
    /* A host's error may have been made by hand. */
    reterr->cause = behind.code ? behind.code : "";
    va_start(args, fmt);
    put_message(reterr, fmt, args);
    va_end(args);
    join(reterr->message, sizeof(reterr->message), behind.message);
    make_showable(reterr->message);
    return status;
}

peg_status peg__fail_nomem(peg_error *reterr)
{
    return peg__fail(reterr, PEG_ENOMEM, "E_OUT_OF_MEMORY",
                     "out of memory; nothing was changed, try again with a smaller input");
}

peg_status peg__fail_no_randomness(peg_error *reterr)
{
    return peg__fail(reterr, PEG_EIO, "E_NO_RANDOMNESS",
                     "the system gives no random bytes; allow getrandom() in the sandbox");
}

void peg__error_at(peg_error *reterr, peg_str text, size_t offset)
{
    size_t line_start = 0;

    if (!reterr)
        return;
    reterr->offset = offset;
    reterr->line = 1;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        if (text.ptr[i] != '\n')
            continue;
        reterr->line++;
        line_start = i + 1;
    }
    reterr->column = (unsigned)(offset - line_start + 1);
}

void peg__error_where(peg_error *reterr, peg_str pointer)
{
    size_t len = pointer.len;

    if (!reterr)
        return;
    if (len >= sizeof(reterr->where))
        len = peg__utf8_cut(pointer.ptr, sizeof(reterr->where) - 1);
    if (len)
        memcpy(reterr->where, pointer.ptr, len);
    reterr->where[len] = '\0';
}

const char *peg_status_name(peg_status status)
{
    switch (status) {
    case PEG_OK:
        return "ok";
    case PEG_EINVAL:
        return "invalid use";
    case PEG_ENOMEM:
        return "out of memory";
    case PEG_EEXISTS:
        return "exists";
    case PEG_ENOTFOUND:
        return "not found";
    case PEG_EPARSE:
        return "malformed";
    case PEG_ESCHEMA:
        return "schema";
    case PEG_ELIMIT:
        return "limit";
    case PEG_ECANCELED:
        return "canceled";
    case PEG_ETIMEOUT:
        return "timeout";
    case PEG_ESTATE:
        return "wrong moment";
    case PEG_EIO:
        return "system";
    case PEG_EHOST:
        return "host";
    case PEG_EUNSUPPORTED:
        return "unsupported";
    }
    return "unknown";
}
