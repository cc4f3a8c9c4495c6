/* SPDX-License-Identifier: Apache-2.0 */

#include "wire/wire.h"

#include <stdio.h>

#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "goapb/goa.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "grpc/message.h"
#include "wire/report.h"
#include "json/json.h"

/* A call whose end is not known must not look as if asking again were harmless: UNKNOWN is a code
 * that no stock client retries. */
static const struct {
    peg_str name;
    enum grpc_code code;
} errors[WIRE_N_ERRORS] = {
    [WIRE_OK] = {PEG_LIT("ok"), GRPC_OK},
    [WIRE_NOT_FOUND] = {PEG_LIT("not_found"), GRPC_NOT_FOUND},
    [WIRE_VALIDATION] = {PEG_LIT("validation_error"), GRPC_INVALID_ARGUMENT},
    [WIRE_MISSING_FIELD] = {PEG_LIT("missing_field"), GRPC_INVALID_ARGUMENT},
    [WIRE_INVALID_LENGTH] = {PEG_LIT("invalid_length"), GRPC_INVALID_ARGUMENT},
    [WIRE_INVALID_PATTERN] = {PEG_LIT("invalid_pattern"), GRPC_INVALID_ARGUMENT},
    [WIRE_INVALID_FORMAT] = {PEG_LIT("invalid_format"), GRPC_INVALID_ARGUMENT},
    [WIRE_INVALID_RANGE] = {PEG_LIT("invalid_range"), GRPC_INVALID_ARGUMENT},
    [WIRE_SERVICE_UNAVAILABLE] = {PEG_LIT("service_unavailable"), GRPC_UNAVAILABLE},
    [WIRE_OVERLOADED] = {PEG_LIT("overloaded"), GRPC_RESOURCE_EXHAUSTED},
    [WIRE_TIMEOUT] = {PEG_LIT("timeout"), GRPC_DEADLINE_EXCEEDED},
    [WIRE_CANCELED] = {PEG_LIT("canceled"), GRPC_CANCELLED},
    [WIRE_OUTCOME_UNKNOWN] = {PEG_LIT("outcome_unknown"), GRPC_UNKNOWN},
    [WIRE_PERMISSION_DENIED] = {PEG_LIT("permission_denied"), GRPC_PERMISSION_DENIED},
    [WIRE_UNAUTHENTICATED] = {PEG_LIT("unauthenticated"), GRPC_UNAUTHENTICATED},
    [WIRE_CONFLICT] = {PEG_LIT("conflict"), GRPC_FAILED_PRECONDITION},
    [WIRE_LIMIT] = {PEG_LIT("limit_exceeded"), GRPC_RESOURCE_EXHAUSTED},
    [WIRE_FAULT] = {PEG_LIT("fault"), GRPC_INTERNAL},
    [WIRE_UNDECIDED] = {PEG_LIT("undecided"), GRPC_RESOURCE_EXHAUSTED},
};

static const char detail_type[] = "type.googleapis.com/goapb.ErrorResponse";

static bool is_known_error(enum wire_error error)
{
    return (unsigned)error < WIRE_N_ERRORS;
}

const char *wire_error_name(enum wire_error error)
{
    return errors[is_known_error(error) ? error : WIRE_FAULT].name.ptr;
}

enum grpc_code wire_error_code(enum wire_error error)
{
    return errors[is_known_error(error) ? error : WIRE_FAULT].code;
}

enum wire_error wire_error_of(peg_str name)
{
    for (int error = WIRE_OK + 1; error < WIRE_N_ERRORS; error++) {
        if (peg__str_eq(errors[error].name, name))
            return (enum wire_error)error;
    }
    return WIRE_FAULT;
}

/* ---- to the wire ---------------------------------------------------------------------------- */

/* Eight characters that a person may quote and a program may look for. */
static void make_error_id(char ret_id[9])
{
    unsigned char bytes[6] = {0};

    if (!peg__random(bytes, sizeof(bytes)))
        memset(bytes, 0, sizeof(bytes));
    peg__base64_encode(peg__strn((const char *)bytes, sizeof(bytes)), ret_id);
    for (size_t i = 0; i < 8; i++) {
        if (ret_id[i] == '+')
            ret_id[i] = '-';
        else if (ret_id[i] == '/')
            ret_id[i] = '_';
    }
}

/* A copy that every reader of protobuf takes: UTF-8, no NUL. */
static char *copy_message(peg_str message, struct peg__arena *arena)
{
    peg_str rest = message;
    char *copy = peg__arena_alloc(arena, message.len + 1);
    size_t len = 0;

    if (!copy)
        return NULL;
    while (rest.len) {
        const size_t n = peg__utf8_char_len(rest);

        if (n && rest.ptr[0] != '\0')
            memcpy(copy + len, rest.ptr, n);
        else
            copy[len] = '?';
        len += n ? n : 1;
        rest = peg__str_from(rest, n ? n : 1);
    }
    copy[len] = '\0';
    return copy;
}

static uint8_t *pack_detail(const ProtobufCMessage *message, struct peg__arena *arena,
                            size_t *ret_len)
{
    const size_t len = grpc_message_packed_size(message);
    uint8_t *bytes = peg__arena_alloc(arena, len ? len : 1);

    if (!bytes)
        return NULL;
    grpc_message_pack(message, bytes);
    *ret_len = len;
    return bytes;
}

static peg_str pack_details(enum wire_error error, enum grpc_code code, char *message,
                            struct peg__arena *arena)
{
    Goapb__ErrorResponse response = GOAPB__ERROR_RESPONSE__INIT;
    Google__Protobuf__Any any = GOOGLE__PROTOBUF__ANY__INIT;
    Google__Protobuf__Any *details[] = {&any};
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    char id[9];
    uint8_t *bytes;
    size_t len;

    make_error_id(id);
    response.name = peg__unconst(wire_error_name(error));
    response.id = id;
    response.msg = message;
    response.fault = error == WIRE_FAULT;
    any.type_url = peg__unconst(detail_type);
    any.value.data = pack_detail(&response.base, arena, &any.value.len);
    if (!any.value.data)
        return (peg_str){NULL, 0};

    status.code = (int32_t)code;
    status.message = message;
    status.n_details = 1;
    status.details = details;
    bytes = pack_detail(&status.base, arena, &len);
    return bytes ? peg__strn((const char *)bytes, len) : (peg_str){NULL, 0};
}

/* ---- messages that fit --------------------------------------------------------------------------
 */

/* Thirds of bytes on the wire: once percent-encoded, and twice in the details, in base 64. */
static size_t thirds_of(peg_str message)
{
    size_t n = 0;

    for (size_t i = 0; i < message.len; i++)
        n += 8 + (message.ptr[i] < ' ' || message.ptr[i] > '~' || message.ptr[i] == '%' ? 9 : 3);
    return n;
}

/* The longest beginning that costs at most so much. */
static size_t fit_message(peg_str message, size_t max_thirds)
{
    size_t len = 0;

    while (len < message.len) {
        const size_t n = thirds_of(peg__strn(message.ptr + len, 1));

        if (n > max_thirds)
            break;
        max_thirds -= n;
        len++;
    }
    return len < message.len ? peg__utf8_cut(message.ptr, len) : len;
}

/* Cuts them behind a line if there is one, and says how many more there are. */
static char *shorten_message(char *text, size_t max_bytes, struct peg__arena *arena)
{
    static const char end[] = "\n\xE2\x80\xA6 and 18446744073709551615 more";
    const peg_str whole = peg__str(text);
    const size_t thirds_of_end = thirds_of(peg__str(end));
    size_t len = fit_message(whole, 3 * max_bytes);
    const char *line;
    char *copy;
    size_t n_more;

    if (len == whole.len)
        return text;
    len = 3 * max_bytes > thirds_of_end ? fit_message(whole, 3 * max_bytes - thirds_of_end) : 0;
    line = len ? memrchr(whole.ptr, '\n', len) : NULL;
    if (line)
        len = (size_t)(line - whole.ptr);
    line = memchr(whole.ptr + len, '\n', whole.len - len);
    n_more = line ? wire_report_count(peg__str(line + 1)) : 0;
    copy = peg__arena_alloc(arena, len + sizeof(end));
    if (!copy)
        return NULL;
    memcpy(copy, whole.ptr, len);
    if (n_more)
        snprintf(copy + len, sizeof(end), "%s\xE2\x80\xA6 and %zu more",
                 whole.ptr[len] == '\n' ? "\n" : "", n_more);
    else
        snprintf(copy + len, sizeof(end), "%s", max_bytes ? "\xE2\x80\xA6" : "");
    return copy;
}

/* What the details take without the message, at most; lengths that grow with it beside. */
static size_t bytes_without_message(enum wire_error error, enum grpc_code code,
                                    struct peg__arena *arena)
{
    enum { LONGER_LENGTHS = 24 };
    char none[] = "";

    return peg__base64_len(pack_details(error, code, none, arena).len + LONGER_LENGTHS);
}

void wire_error_status(enum wire_error error, peg_str message, size_t max_bytes,
                       struct peg__arena *arena, struct grpc_status *ret_status)
{
    const enum grpc_code code = wire_error_code(error);
    const size_t others = bytes_without_message(error, code, arena);
    char *text = copy_message(message, arena);

    *ret_status = (struct grpc_status){.code = code};
    if (text)
        text = shorten_message(text, max_bytes > others ? max_bytes - others : 0, arena);
    if (!text) {
        ret_status->message = peg__str(wire_error_name(error));
        return;
    }
    ret_status->message = peg__str(text);
    if (error != WIRE_OK)
        ret_status->details = pack_details(error, code, text, arena);
}

/* ---- from the wire -------------------------------------------------------------------------- */

static enum wire_error of_code(enum grpc_code code)
{
    static const enum wire_error by_code[] = {
        [GRPC_OK] = WIRE_OK,
        [GRPC_CANCELLED] = WIRE_CANCELED,
        [GRPC_UNKNOWN] = WIRE_FAULT,
        [GRPC_INVALID_ARGUMENT] = WIRE_VALIDATION,
        [GRPC_DEADLINE_EXCEEDED] = WIRE_TIMEOUT,
        [GRPC_NOT_FOUND] = WIRE_NOT_FOUND,
        [GRPC_ALREADY_EXISTS] = WIRE_CONFLICT,
        [GRPC_PERMISSION_DENIED] = WIRE_PERMISSION_DENIED,
        [GRPC_RESOURCE_EXHAUSTED] = WIRE_LIMIT,
        [GRPC_FAILED_PRECONDITION] = WIRE_CONFLICT,
        [GRPC_ABORTED] = WIRE_CONFLICT,
        [GRPC_OUT_OF_RANGE] = WIRE_INVALID_RANGE,
        [GRPC_UNIMPLEMENTED] = WIRE_FAULT,
        [GRPC_INTERNAL] = WIRE_FAULT,
        [GRPC_UNAVAILABLE] = WIRE_SERVICE_UNAVAILABLE,
        [GRPC_DATA_LOSS] = WIRE_FAULT,
        [GRPC_UNAUTHENTICATED] = WIRE_UNAUTHENTICATED,
    };

    return (size_t)code < sizeof(by_code) / sizeof(by_code[0]) ? by_code[code] : WIRE_FAULT;
}

/* The name in the first detail, as goa's clients read it; empty if it is not one of that kind. */
static peg_str name_in(peg_str details, struct peg__arena *arena)
{
    const ProtobufCMessage *message;
    const Google__Rpc__Status *status;
    const Google__Protobuf__Any *any;
    const peg_str none = {"", 0};

    if (!details.len || grpc_message_unpack(&google__rpc__status__descriptor, arena, details,
                                            &message, NULL) != PEG_OK)
        return none;
    status = (const Google__Rpc__Status *)message;
    if (!status->n_details || strcmp(status->details[0]->type_url, detail_type) != 0)
        return none;
    any = status->details[0];
    if (grpc_message_unpack(&goapb__error_response__descriptor, arena,
                            peg__strn((const char *)any->value.data, any->value.len), &message,
                            NULL) != PEG_OK)
        return none;
    return peg__str(((const Goapb__ErrorResponse *)message)->name);
}

enum wire_error wire_error_from_status(const struct grpc_status *status, struct peg__arena *arena,
                                       peg_str *ret_name)
{
    const enum wire_error by_code = of_code(status->code);
    const peg_str name = by_code == WIRE_OK ? peg__str("") : name_in(status->details, arena);
    const enum wire_error by_name = wire_error_of(name);

    *ret_name = name.len ? name : peg__str(wire_error_name(by_code));
    /* A name that is not ours, such as invalid_enum_value, still came with a code that says what
     * kind of thing it is. */
    return by_name == WIRE_FAULT && !peg__str_is(name, "fault") ? by_code : by_name;
}

enum wire_error wire_error_of_status(peg_status status)
{
    switch (status) {
    case PEG_OK:
        return WIRE_OK;
    case PEG_EINVAL:
    case PEG_EPARSE:
    case PEG_ESCHEMA:
        return WIRE_VALIDATION;
    case PEG_ELIMIT:
        return WIRE_LIMIT;
    case PEG_ENOTFOUND:
        return WIRE_NOT_FOUND;
    case PEG_EEXISTS:
        return WIRE_PERMISSION_DENIED;
    case PEG_ESTATE:
        return WIRE_CONFLICT;
    case PEG_ECANCELED:
        return WIRE_CANCELED;
    case PEG_ETIMEOUT:
        return WIRE_TIMEOUT;
    case PEG_ENOMEM:
        return WIRE_OVERLOADED;
    case PEG_EUNSUPPORTED:
        return WIRE_SERVICE_UNAVAILABLE;
    default:
        return WIRE_FAULT;
    }
}
