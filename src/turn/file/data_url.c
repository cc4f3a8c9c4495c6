/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/file/internal.h"

#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "core/result/result.h"

static peg_status fail(peg_error *reterr, const char *why)
{
    return peg__fail(reterr, PEG_EPARSE, "E_TURN_FORMAT",
                     "the data: URL %s: write data:TYPE;base64,BYTES", why);
}

/* Writes at most text.len bytes; false if an escape is none. */
static bool unescape(peg_str text, char *ret_bytes, size_t *ret_len)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        int high;
        int low;

        if (text.ptr[i] != '%') {
            ret_bytes[len++] = text.ptr[i];
            continue;
        }
        if (i + 2 >= text.len)
            return false;
        high = peg__hex_value(text.ptr[i + 1]);
        low = peg__hex_value(text.ptr[i + 2]);
        if (high < 0 || low < 0)
            return false;
        ret_bytes[len++] = (char)(high << 4 | low);
        i += 2;
    }
    *ret_len = len;
    return true;
}

static peg_status read_bytes(peg_str text, bool is_base64, peg_reader **ret_reader,
                             peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *bytes = peg__alloc(text.len + 4);
    size_t len = 0;
    bool is_right;
    peg_status status;

    if (!bytes)
        return peg__fail_nomem(reterr);
    is_right = is_base64 ? peg__base64_decode(text, bytes, &len) : unescape(text, bytes, &len);
    if (!is_right)
        return fail(reterr, is_base64 ? "is not base 64" : "has a broken escape");
    status = peg__reader_from_owned(bytes, len, ret_reader, reterr);
    if (!status)
        bytes = NULL;
    return status;
}

peg_status peg__data_url_read(const char *url, struct peg__data_url *ret_data, peg_error *reterr)
{
    static const char marker[] = ";base64";
    const size_t marker_len = sizeof(marker) - 1;
    const char *head = url + strlen("data:");
    const char *comma = strchr(head, ',');
    size_t head_len;
    size_t type_len;
    bool is_base64;
    peg_status status;

    if (!comma)
        return fail(reterr, "has no comma");
    head_len = (size_t)(comma - head);
    is_base64 = head_len >= marker_len && strncasecmp(comma - marker_len, marker, marker_len) == 0;
    type_len = strcspn(head, ";,");
    if (type_len >= sizeof(ret_data->type))
        return fail(reterr, "has too long a type");
    status = read_bytes(peg__str(comma + 1), is_base64, &ret_data->reader, reterr);
    if (status)
        return status;
    memcpy(ret_data->type, head, type_len);
    ret_data->type[type_len] = '\0';
    return PEG_OK;
}

void peg__data_url_free(struct peg__data_url *data)
{
    data->reader = peg_reader_unref(data->reader);
}
