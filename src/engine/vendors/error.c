/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What vendors answer when they refuse:
 *
 *   OpenAI      {"error": {"message", "type", "code"}}        also where a stream breaks off
 *   Responses   {"type": "error", "message", "code"}          in a stream
 *               {"type": "response.failed", "response": {"error": {"message", "code"}}}
 *   Anthropic   {"type": "error", "error": {"type", "message"}}
 *   Gemini      {"error": {"code": 429, "message", "status"}}, perhaps in an array
 *   others      {"error": "text"}, {"object": "error", "message"}, {"detail": "text"}, text
 */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "engine/vendors/vendors.h"
#include "json/json.h"

struct refusal {
    long http_status; /* 0: none is known */
    peg_str message;
    peg_str types[4]; /* what kind of error: type, code, status and Gemini's reason, if words */
};

/* ---- reading it ------------------------------------------------------------------------- */

static peg_str string_of(const peg_json *object, const char *name)
{
    const peg_json *value = peg_json_get(object, name);

    return value && peg_json_kind_of(value) == PEG_JSON_STRING ? peg_json_str(value)
                                                               : peg__strn("", 0);
}

/* The object that says more, or the words themselves. */
static const peg_json *find_error(const peg_json *root)
{
    const peg_json *response;
    const peg_json *error;

    if (peg_json_kind_of(root) == PEG_JSON_ARRAY && peg_json_len(root) > 0)
        root = peg_json_at(root, 0);
    response = peg_json_get(root, "response");
    error = peg_json_get(response ? response : root, "error");
    return error && peg_json_kind_of(error) != PEG_JSON_NULL ? error : root;
}

/* Gemini says more in a list of details: {"reason": "API_KEY_INVALID"}, {"retryDelay": "32s"}. */
static peg_str detail_of(const peg_json *error, const char *name)
{
    const peg_json *details = peg_json_get(error, "details");

    if (details && peg_json_kind_of(details) == PEG_JSON_ARRAY) {
        PEG_JSON_EACH_ITEM (details, detail) {
            const peg_str word = string_of(detail, name);

            if (word.len > 0)
                return word;
        }
    }
    return peg__strn("", 0);
}

static void read_error(const peg_json *error, struct refusal *refusal)
{
    const peg_json *code = peg_json_get(error, "code");
    int64_t number;

    if (peg_json_kind_of(error) == PEG_JSON_STRING) {
        refusal->message = peg_json_str(error);
        return;
    }
    refusal->message = string_of(error, "message");
    if (refusal->message.len == 0)
        refusal->message = string_of(error, "detail");
    refusal->types[0] = string_of(error, "type");
    refusal->types[1] = string_of(error, "code");
    refusal->types[2] = string_of(error, "status");
    refusal->types[3] = detail_of(error, "reason");
    /* Some tell the HTTP status where they cannot send one any more. */
    if (refusal->http_status == 0 && code && peg_json_int64(code, &number) && number >= 400 &&
        number < 600)
        refusal->http_status = (long)number;
}

/* ---- judging it ---------------------------------------------------------------------------- */

static const struct {
    const char *type;
    const char *code;
} kinds[] = {
    {"authentication_error", "E_ENGINE_AUTH"},
    {"permission_error", "E_ENGINE_AUTH"},
    {"invalid_api_key", "E_ENGINE_AUTH"},
    {"API_KEY_INVALID", "E_ENGINE_AUTH"},
    {"UNAUTHENTICATED", "E_ENGINE_AUTH"},
    {"PERMISSION_DENIED", "E_ENGINE_AUTH"},
    {"rate_limit_error", "E_ENGINE_RATE_LIMITED"},
    {"rate_limit_exceeded", "E_ENGINE_RATE_LIMITED"},
    {"insufficient_quota", "E_ENGINE_QUOTA"},
    {"tokens", "E_ENGINE_RATE_LIMITED"},
    {"requests", "E_ENGINE_RATE_LIMITED"},
    {"RESOURCE_EXHAUSTED", "E_ENGINE_RATE_LIMITED"},
    {"overloaded_error", "E_ENGINE_OVERLOADED"},
    {"server_is_overloaded", "E_ENGINE_OVERLOADED"},
    {"slow_down", "E_ENGINE_OVERLOADED"},
    {"UNAVAILABLE", "E_ENGINE_OVERLOADED"},
    {"invalid_request_error", "E_ENGINE_REQUEST"},
    {"invalid_prompt", "E_ENGINE_REQUEST"},
    {"context_length_exceeded", "E_ENGINE_REQUEST"},
    {"not_found_error", "E_ENGINE_REQUEST"},
    {"request_too_large", "E_ENGINE_REQUEST"},
    {"INVALID_ARGUMENT", "E_ENGINE_REQUEST"},
    {"FAILED_PRECONDITION", "E_ENGINE_REQUEST"},
    {"NOT_FOUND", "E_ENGINE_REQUEST"},
};

static bool is_of_type(const struct refusal *refusal, const char *type)
{
    for (size_t k = 0; k < sizeof(refusal->types) / sizeof(*refusal->types); k++) {
        if (peg__str_is(refusal->types[k], type))
            return true;
    }
    return false;
}

static const char *code_of_types(const struct refusal *refusal)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        if (is_of_type(refusal, kinds[i].type))
            return kinds[i].code;
    }
    return "E_ENGINE_FAILED";
}

static const char *code_of(const struct refusal *refusal)
{
    /* Where the HTTP status says less than the text. */
    if (is_of_type(refusal, "insufficient_quota"))
        return "E_ENGINE_QUOTA";
    if (is_of_type(refusal, "API_KEY_INVALID"))
        return "E_ENGINE_AUTH";
    switch (refusal->http_status) {
    case 0:
        return code_of_types(refusal);
    case 401:
    case 403:
        return "E_ENGINE_AUTH";
    case 429:
        return "E_ENGINE_RATE_LIMITED";
    case 503:
    case 529:
        return "E_ENGINE_OVERLOADED";
    case 408:
    case 409:
        return "E_ENGINE_FAILED";
    default:
        return refusal->http_status >= 400 && refusal->http_status < 500 ? "E_ENGINE_REQUEST"
                                                                         : "E_ENGINE_FAILED";
    }
}

/* ---- reporting it --------------------------------------------------------------------------- */

/* A stranger's text in one line: what is not printed becomes a space, several become one. */
static void one_line(peg_str text, char *ret_line, size_t size)
{
    const bool is_utf8 = peg__utf8_is_valid(text);
    size_t n = 0;
    size_t i = 0;

    for (; i < text.len && n + 1 < size; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool is_space = c <= ' ' || c == 0x7F;

        if (is_space && (n == 0 || ret_line[n - 1] == ' '))
            continue;
        ret_line[n] = text.ptr[i];
        if (is_space)
            ret_line[n] = ' ';
        else if (c >= 0x80 && !is_utf8)
            ret_line[n] = '?';
        n++;
    }
    ret_line[n] = '\0';
    if (i < text.len && is_utf8) {
        ret_line[n] = text.ptr[i];
        n = peg__utf8_cut(ret_line, n);
        ret_line[n] = '\0';
    }
}

static peg_status report_refusal(const struct peg__wire *wire, const struct refusal *refusal,
                                 peg_error *reterr)
{
    char message[sizeof(((peg_error *)0)->message)];
    char type[64];
    char http[24] = "";

    one_line(refusal->message, message, sizeof(message));
    one_line(refusal->types[1].len > 0   ? refusal->types[1]
             : refusal->types[2].len > 0 ? refusal->types[2]
                                         : refusal->types[0],
             type, sizeof(type));
    if (refusal->http_status)
        snprintf(http, sizeof(http), " (HTTP %ld)", refusal->http_status);
    return peg__fail(reterr, PEG_EHOST, code_of(refusal), "%s%s%s%s: %s",
                     peg_vendor_name(wire->vendor), http, type[0] ? ", " : "", type,
                     message[0] ? message : "it refused without a reason");
}

peg_status peg__wire_error(const struct peg__wire *wire, long http_status, peg_str body,
                           peg_error *reterr)
{
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = PEG_LIMIT_TEXT_BYTES,
                                      .max_depth = PEG_LIMIT_REPLY_DEPTH};
    struct refusal refusal = {.http_status = http_status, .message = body};
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(body, &options, &doc, NULL);

    if (status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (!status)
        read_error(find_error(peg_json_root(doc)), &refusal);
    status = report_refusal(wire, &refusal, reterr);
    peg_json_doc_free(doc);
    return status;
}

/* ---- when to try again ------------------------------------------------------------------- */

int64_t peg__wire_retry_ms(peg_str body)
{
    peg_json_doc *doc;
    int64_t ns = -1;
    peg_str delay;

    if (peg_json_parse(body, NULL, &doc, NULL))
        return -1;
    delay = detail_of(find_error(peg_json_root(doc)), "retryDelay");
    if (!delay.len || peg_duration_parse(delay, &ns, NULL))
        ns = -1;
    peg_json_doc_free(doc);
    return ns < 0 ? -1 : ns / 1000000;
}
