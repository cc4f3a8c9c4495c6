/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/turn.h"

#include <string.h>

#include "base/error.h"

static bool has_code(const peg_error *error)
{
    return error->code && error->code[0];
}

bool peg__host_is_silent(const peg_error *error)
{
    return !error->message[0] && !has_code(error);
}

peg_status peg__host_failed(peg_status status, const peg_error *error, const char *code,
                            const char *subject, peg_error *reterr)
{
    peg_error whole = *error;

    if (!reterr)
        return status;
    if (!memchr(whole.message, '\0', sizeof(whole.message)))
        whole.message[sizeof(whole.message) - 1] = '\0';
    if (!memchr(whole.where, '\0', sizeof(whole.where)))
        whole.where[sizeof(whole.where) - 1] = '\0';
    if (!has_code(&whole))
        whole.code = code;
    if (!whole.cause)
        whole.cause = "";
    whole.status = status;
    if (whole.message[0])
        *reterr = whole;
    else
        peg__fail(reterr, status, whole.code,
                  "%s failed (%s) without a message: have it fill in its error", subject,
                  peg_status_name(status));
    return status;
}
