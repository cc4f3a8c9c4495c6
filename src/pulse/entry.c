/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Entries of the streams. Reading is strict where a mistake could reach the wrong call (ids, kinds
 * of members) and lenient where later versions add members. JSON inside an entry is written again
 * from the document: a compact text of the same value, in one piece of memory for all of them.
 */

#include "pulse/pulse.h"

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

static const char *const event_names[] = {
    [PULSE_UNKNOWN] = "",  [PULSE_CALL] = "call",          [PULSE_PING] = "ping",
    [PULSE_INIT] = "init", [PULSE_DELTA] = "output_delta", [PULSE_RESULT] = "result",
};

enum { N_EVENTS = sizeof(event_names) / sizeof(event_names[0]) };

const char *pulse_event_name(enum pulse_event event)
{
    return event_names[event];
}

enum pulse_event pulse_event_of(peg_str name)
{
    for (unsigned i = PULSE_CALL; i < N_EVENTS; i++) {
        if (peg__str_is(name, event_names[i]))
            return (enum pulse_event)i;
    }
    return PULSE_UNKNOWN;
}

/* ---- reading members ------------------------------------------------------------------------ */

/* What is being read, for errors. */
struct reading {
    enum pulse_event event;
    peg_error *reterr;
};

static peg_status reject_member(const struct reading *reading, const char *member, const char *why)
{
    return peg__fail(reading->reterr, PEG_EPARSE, "E_PULSE_ENTRY",
                     "'%s' of an entry '%s' %s: check the program that added the entry", member,
                     event_names[reading->event], why);
}

/* Absent and null are "". */
static peg_status read_entry_text(const struct reading *reading, const peg_json *object,
                                  const char *member, peg_str *ret_text)
{
    const peg_json *value = peg_json_get(object, member);

    if (peg_json_kind_of(value) != PEG_JSON_NULL && peg_json_kind_of(value) != PEG_JSON_STRING)
        return reject_member(reading, member, "is no string");
    *ret_text = peg_json_str(value);
    return PEG_OK;
}

static bool is_id(peg_str text)
{
    if (text.len > PEG_LIMIT_GATEWAY_ID_BYTES || !pulse_is_stream(text))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        if (c < ' ' || c == 0x7f)
            return false;
    }
    return true;
}

static peg_status read_id(const struct reading *reading, const peg_json *object, const char *member,
                          peg_str *ret_id)
{
    const peg_status status = read_entry_text(reading, object, member, ret_id);

    if (status)
        return status;
    return is_id(*ret_id) ? PEG_OK : reject_member(reading, member, "is no id");
}

struct member {
    const char *name;
    peg_str *ret_text;
};

static peg_status read_entry_texts(const struct reading *reading, const peg_json *object,
                                   const struct member *members, size_t n)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < n && !status; i++)
        status = read_entry_text(reading, object, members[i].name, members[i].ret_text);
    return status;
}

/* A value inside of the entry that is handed on as text. */
struct inner {
    const peg_json *value;
    peg_str *ret_text;
};

/* An absent one stays as it is. */
static peg_status write_inner(struct pulse_entry *entry, const struct inner *inner, size_t n,
                              peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_PULSE_ENTRY_BYTES);
    peg_status status;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t begin = out.len;

        if (!inner[i].value)
            continue;
        peg__json_write(inner[i].value, PEG_JSON_COMPACT, &out);
        inner[i].ret_text->len = out.len - begin;
    }
    status = peg__buf_take(&out, &entry->text, NULL, reterr);
    if (status)
        return status;
    for (size_t i = 0; i < n; i++) {
        if (!inner[i].value)
            continue;
        inner[i].ret_text->ptr = entry->text + at;
        at += inner[i].ret_text->len;
    }
    return PEG_OK;
}

/* NULL for what is absent or null. */
static const peg_json *get_present(const peg_json *object, const char *member)
{
    const peg_json *value = peg_json_get(object, member);

    return peg_json_kind_of(value) == PEG_JSON_NULL ? NULL : value;
}

/* ---- reading entries ------------------------------------------------------------------------ */

static peg_status read_call_meta(const struct reading *reading, const peg_json *meta,
                                 struct pulse_call *call)
{
    const struct member members[] = {{"run_id", &call->run_id},
                                     {"session_id", &call->session_id},
                                     {"turn_id", &call->turn_id},
                                     {"tool_call_id", &call->tool_call_id},
                                     {"parent_tool_call_id", &call->parent_tool_call_id}};

    if (!meta)
        return PEG_OK;
    if (peg_json_kind_of(meta) != PEG_JSON_OBJECT)
        return reject_member(reading, "meta", "is no object");
    call->has_meta = true;
    return read_entry_texts(reading, meta, members, sizeof(members) / sizeof(members[0]));
}

static peg_status read_call_entry(const struct reading *reading, const peg_json *root,
                                  struct pulse_entry *entry)
{
    struct pulse_call *call = &entry->call;
    const struct member members[] = {{"tool", &call->tool},
                                     {"traceparent", &call->traceparent},
                                     {"tracestate", &call->tracestate},
                                     {"baggage", &call->baggage}};
    const struct inner inner[] = {
        {peg__json_or_null(peg_json_get(root, "payload")), &call->payload}};
    peg_status status = read_id(reading, root, "tool_use_id", &call->tool_use_id);

    if (!status)
        status = read_entry_texts(reading, root, members, sizeof(members) / sizeof(members[0]));
    if (!status && (!call->tool.len || call->tool.len > PEG_LIMIT_NAME_BYTES))
        status = reject_member(reading, "tool", "is no name");
    if (!status)
        status = read_call_meta(reading, get_present(root, "meta"), call);
    call->deadline_unix_ms = peg_json_int64_or(peg_json_get(root, "execution_deadline_unix_ms"), 0);
    return status ? status : write_inner(entry, inner, 1, reading->reterr);
}

static peg_status read_ping(const struct reading *reading, const peg_json *root,
                            struct pulse_entry *entry)
{
    return read_id(reading, root, "ping_id", &entry->ping.ping_id);
}

static peg_status read_delta(const struct reading *reading, const peg_json *root,
                             struct pulse_entry *entry)
{
    struct pulse_delta *delta = &entry->delta;
    const struct member members[] = {{"stream", &delta->stream}, {"delta", &delta->delta}};
    const peg_status status = read_id(reading, root, "tool_use_id", &delta->tool_use_id);

    return status ? status : read_entry_texts(reading, root, members, 2);
}

static peg_status read_failure(const struct reading *reading, const peg_json *failure,
                               struct pulse_result *result)
{
    const struct member members[] = {{"code", &result->code}, {"message", &result->message}};

    if (!failure)
        return PEG_OK;
    if (peg_json_kind_of(failure) != PEG_JSON_OBJECT)
        return reject_member(reading, "error", "is no object");
    result->is_failure = true;
    return read_entry_texts(reading, failure, members, 2);
}

static peg_status read_result_entry(const struct reading *reading, const peg_json *root,
                                    struct pulse_entry *entry)
{
    struct pulse_result *result = &entry->result;
    const peg_json *failure = get_present(root, "error");
    const peg_json *json = peg_json_get(root, "result_json");
    struct inner inner[] = {{NULL, &result->json},
                            {get_present(root, "server_data"), &result->server_data},
                            {get_present(root, "bounds"), &result->bounds},
                            {failure ? get_present(failure, "issues") : NULL, &result->issues}};
    peg_status status = read_id(reading, root, "tool_use_id", &result->tool_use_id);

    if (!status)
        status = read_failure(reading, failure, result);
    if (status)
        return status;
    result->is_under_g0 = !json && peg_json_get(root, "result");
    if (result->is_under_g0)
        json = peg_json_get(root, "result");
    if (!failure)
        inner[0].value = peg__json_or_null(json);
    return write_inner(entry, inner, sizeof(inner) / sizeof(inner[0]), reading->reterr);
}

/* The name of the event is in the payload of requests, too. */
static peg_status check_type(const struct reading *reading, const peg_json *root)
{
    peg_str type = {NULL, 0};
    const peg_status status = read_entry_text(reading, root, "type", &type);

    if (status || !type.len || peg__str_is(type, event_names[reading->event]))
        return status;
    return reject_member(reading, "type", "is another event");
}

static peg_status read_root(const struct reading *reading, const peg_json *root,
                            struct pulse_entry *entry)
{
    peg_status status = PEG_OK;

    if (peg_json_kind_of(root) != PEG_JSON_OBJECT)
        return reject_member(reading, "p", "is no object");
    if (reading->event == PULSE_CALL || reading->event == PULSE_PING)
        status = check_type(reading, root);
    if (status)
        return status;
    switch (reading->event) {
    case PULSE_CALL:
        return read_call_entry(reading, root, entry);
    case PULSE_PING:
        return read_ping(reading, root, entry);
    case PULSE_DELTA:
        return read_delta(reading, root, entry);
    case PULSE_RESULT:
        return read_result_entry(reading, root, entry);
    default:
        return PEG_OK;
    }
}

/* An error of the parser, as ours. */
static peg_status reject_text(const struct reading *reading, const peg_error *why)
{
    if (why->status == PEG_ENOMEM)
        return peg__fail_nomem(reading->reterr);
    return peg__fail_because(reading->reterr, why->status, "E_PULSE_ENTRY", why,
                             "an entry '%s' cannot be read: check the program that added it",
                             event_names[reading->event]);
}

peg_status pulse_entry_read(peg_str n, peg_str p, struct pulse_entry *ret_entry, peg_error *reterr)
{
    struct pulse_entry entry = {.event = pulse_event_of(n)};
    const struct reading reading = {.event = entry.event, .reterr = reterr};
    peg_error why;
    peg_status status;

    if (entry.event == PULSE_UNKNOWN || entry.event == PULSE_INIT) {
        *ret_entry = entry;
        return PEG_OK;
    }
    if (p.len > PEG_LIMIT_PULSE_ENTRY_BYTES)
        return peg__fail(reterr, PEG_ELIMIT, "E_PULSE_ENTRY",
                         "an entry '%s' has %zu bytes: at most %d are read",
                         event_names[entry.event], p.len, PEG_LIMIT_PULSE_ENTRY_BYTES);
    if (peg_json_parse(p, &peg__json_refuse_duplicates, &entry.doc, &why))
        return reject_text(&reading, &why);
    status = read_root(&reading, peg_json_root(entry.doc), &entry);
    if (status) {
        pulse_entry_free(&entry);
        return status;
    }
    *ret_entry = entry;
    return PEG_OK;
}

void pulse_entry_free(struct pulse_entry *entry)
{
    peg_json_doc_free(entry->doc);
    peg__free(entry->text);
    *entry = (struct pulse_entry){0};
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Left out if it is empty. */
static void put_entry_text(struct peg__out *out, const char *member, peg_str text)
{
    if (text.len)
        peg__out_member(out, member, text);
}

static void put_entry_json(struct peg__out *out, const char *member, peg_str json)
{
    if (!json.len)
        return;
    peg__out_key(out, member);
    peg__out_raw(out, json);
}

static peg_str or_null(peg_str json)
{
    return json.len ? json : peg__str("null");
}

static void write_call_entry(const struct pulse_call *call, struct peg__out *out)
{
    peg__out_cmember(out, "type", "call");
    peg__out_member(out, "tool_use_id", call->tool_use_id);
    peg__out_member(out, "tool", call->tool);
    put_entry_json(out, "payload", or_null(call->payload));
    if (call->has_meta) {
        peg__out_key(out, "meta");
        peg__out_object(out);
        peg__out_member(out, "run_id", call->run_id);
        peg__out_member(out, "session_id", call->session_id);
        put_entry_text(out, "turn_id", call->turn_id);
        put_entry_text(out, "tool_call_id", call->tool_call_id);
        put_entry_text(out, "parent_tool_call_id", call->parent_tool_call_id);
        peg__out_end_object(out);
    }
    put_entry_text(out, "traceparent", call->traceparent);
    put_entry_text(out, "tracestate", call->tracestate);
    put_entry_text(out, "baggage", call->baggage);
    if (call->deadline_unix_ms) {
        peg__out_key(out, "execution_deadline_unix_ms");
        peg__out_integer(out, call->deadline_unix_ms);
    }
}

static void write_delta(const struct pulse_delta *delta, struct peg__out *out)
{
    peg__out_member(out, "tool_use_id", delta->tool_use_id);
    peg__out_member(out, "stream", delta->stream);
    peg__out_member(out, "delta", delta->delta);
}

static void write_result_entry(const struct pulse_result *result, struct peg__out *out)
{
    peg__out_member(out, "tool_use_id", result->tool_use_id);
    if (!result->is_failure)
        put_entry_json(out, result->is_under_g0 ? "result" : "result_json", or_null(result->json));
    put_entry_json(out, "server_data", result->server_data);
    put_entry_json(out, "bounds", result->bounds);
    if (!result->is_failure)
        return;
    peg__out_key(out, "error");
    peg__out_object(out);
    peg__out_member(out, "code", result->code);
    peg__out_member(out, "message", result->message);
    put_entry_json(out, "issues", result->issues);
    peg__out_end_object(out);
}

void pulse_entry_write(const struct pulse_entry *entry, struct peg__buf *out)
{
    struct peg__out writer = {.buf = out};

    peg__out_object(&writer);
    switch (entry->event) {
    case PULSE_CALL:
        write_call_entry(&entry->call, &writer);
        break;
    case PULSE_PING:
        peg__out_cmember(&writer, "type", "ping");
        peg__out_member(&writer, "ping_id", entry->ping.ping_id);
        break;
    case PULSE_DELTA:
        write_delta(&entry->delta, &writer);
        break;
    case PULSE_RESULT:
        write_result_entry(&entry->result, &writer);
        break;
    case PULSE_INIT:
    case PULSE_UNKNOWN:
        break;
    }
    peg__out_end_object(&writer);
}
