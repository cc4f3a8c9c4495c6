/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/telemetry/event_line.h"

#include <stdio.h>

#include "base/text/str.h"
#include "wire/time.h"
#include "json/json.h"

enum {
    VALUE_BYTES = 600, /* of one value as it is written */
    END_BYTES = 4,     /* a quote, a brace, a line feed */
    ESCAPE_BYTES = 6,  /* \u001f */
};

const char *gw_event_name(enum gw_event event)
{
    static const char *const names[GW_N_EVENTS] = {
        [GW_EVENT_START] = "start",
        [GW_EVENT_STOP] = "stop",
        [GW_EVENT_DRAIN] = "drain",
        [GW_EVENT_RELOAD] = "reload",
        [GW_EVENT_HEALTH] = "health",
        [GW_EVENT_REGISTER] = "register",
        [GW_EVENT_UNREGISTER] = "unregister",
        [GW_EVENT_ATTACH] = "attach",
        [GW_EVENT_DETACH] = "detach",
        [GW_EVENT_REFUSED] = "refused",
        [GW_EVENT_CALL] = "call",
        [GW_EVENT_LATE] = "late",
        [GW_EVENT_STORE] = "store",
        [GW_EVENT_LIBRARY] = "library",
    };

    return (unsigned)event < GW_N_EVENTS ? names[event] : "unknown";
}

struct writer {
    char *to;
    size_t len;
    size_t max;
};

/* All of it or nothing. */
static bool put(struct writer *w, const char *bytes, size_t n)
{
    if (n > w->max - w->len)
        return false;
    memcpy(w->to + w->len, bytes, n);
    w->len += n;
    return true;
}

static bool puts_to(struct writer *w, const char *text)
{
    return put(w, text, strlen(text));
}

/* ---- values --------------------------------------------------------------------------------- */

/* May it stand without quotes? */
static bool is_plain(peg_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];

        if (!peg__is_alnum(c) && (c == '\0' || !strchr("_.:/@+-[]", c)))
            return false;
    }
    return text.len > 0;
}

/* One character of a string: as it is, escaped, or '?' if it is no UTF-8. */
static bool put_character(struct writer *w, const char *at, size_t n)
{
    const unsigned char c = (unsigned char)at[0];
    char escape[ESCAPE_BYTES + 1];

    if (n == 0)
        return put(w, "?", 1);
    if (c == '"' || c == '\\') {
        escape[0] = '\\';
        escape[1] = (char)c;
        return put(w, escape, 2);
    }
    /* C0, DEL, and C1: what a terminal would obey. */
    if (c < 0x20 || c == 0x7f || (c == 0xC2 && (unsigned char)at[1] < 0xA0)) {
        snprintf(escape, sizeof(escape), "\\u%04x", c == 0xC2 ? (unsigned char)at[1] : c);
        return put(w, escape, ESCAPE_BYTES);
    }
    return put(w, at, n);
}

/* Cut at VALUE_BYTES, which "..." tells. */
static bool put_string(struct writer *w, peg_str text)
{
    const size_t start = w->len;
    peg_str rest = text;

    if (!put(w, "\"", 1))
        return false;
    while (rest.len) {
        const size_t n = peg__utf8_char_len(rest);

        if (w->len - start > VALUE_BYTES)
            return puts_to(w, "...\"");
        if (!put_character(w, rest.ptr, n))
            return false;
        rest = peg__str_from(rest, n ? n : 1);
    }
    return put(w, "\"", 1);
}

static bool put_value(struct writer *w, const struct gw_field *field, bool is_json)
{
    const peg_str text = {field->text ? field->text : "", field->len};
    char number[24];

    if (field->is_number) {
        snprintf(number, sizeof(number), "%lld", (long long)field->number);
        return puts_to(w, number);
    }
    if (!is_json && text.len < VALUE_BYTES && is_plain(text))
        return put(w, text.ptr, text.len);
    return put_string(w, text);
}

static void put_field(struct writer *w, const struct gw_field *field, bool is_json)
{
    const size_t before = w->len;
    const bool fits = is_json ? puts_to(w, ",\"") && puts_to(w, field->key) && puts_to(w, "\":") &&
                                    put_value(w, field, true)
                              : puts_to(w, " ") && puts_to(w, field->key) && puts_to(w, "=") &&
                                    put_value(w, field, false);

    if (!fits)
        w->len = before;
}

void gw_line_make(struct gw_line *ret_line, const struct gw_line_head *head,
                  const struct gw_field *fields, size_t n_fields)
{
    struct writer w = {.to = ret_line->bytes, .max = sizeof(ret_line->bytes) - END_BYTES};
    char time[WIRE_TIME_TEXT];
    char text[128];

    wire_time_print_ms(head->now_ms, time);
    snprintf(text, sizeof(text),
             head->is_json ? "{\"time\":\"%s\",\"level\":\"%s\",\"event\":\"%s\""
                           : "time=%s level=%s event=%s",
             time, peg_log_level_name(head->level), head->event);
    puts_to(&w, text);
    for (size_t i = 0; i < n_fields && i < GW_EVENT_LOG_FIELDS; i++)
        put_field(&w, &fields[i], head->is_json);
    w.max += END_BYTES;
    puts_to(&w, head->is_json ? "}\n" : "\n");
    ret_line->len = w.len;
}
