/* SPDX-License-Identifier: Apache-2.0 */

#include "store/internal.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"

/* Of a name that may be long, in a message. */
enum { SHOWN = 64 };

static peg_str shown(peg_str name)
{
    return name.len <= SHOWN ? name : peg__strn(name.ptr, peg__utf8_cut(name.ptr, SHOWN));
}

peg_status store_check_record(const peg_store_record *record, peg_error *reterr)
{
    if (record->name.len == 0)
        return peg__fail(reterr, PEG_EINVAL, "E_STORE",
                         "a record in a store needs a name: set record.name");
    if (record->name.len > PEG_LIMIT_GATEWAY_STORE_NAME_BYTES)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_STORE", "the name '%.*s...' has %zu bytes: use at most %d",
            PEG_ARG(shown(record->name)), record->name.len, PEG_LIMIT_GATEWAY_STORE_NAME_BYTES);
    if (!record->is_removed && record->body.len > PEG_LIMIT_GATEWAY_STORE_BODY_BYTES)
        return peg__fail(
            reterr, PEG_ELIMIT, "E_STORE",
            "the record '%.*s' has %zu bytes: use at most %d, by fewer or smaller tools",
            PEG_ARG(shown(record->name)), record->body.len, PEG_LIMIT_GATEWAY_STORE_BODY_BYTES);
    return PEG_OK;
}

peg_status store_check_revision(const peg_store_record *record, uint64_t current, peg_error *reterr)
{
    if (record->revision > current)
        return PEG_OK;
    return peg__fail(reterr, PEG_ESTATE, "E_STORE_REVISION",
                     "revision %" PRIu64 " of '%.*s' stands in the store, so revision %" PRIu64
                     " is not kept: read the record again and give the change a greater one",
                     current, PEG_ARG(shown(record->name)), record->revision);
}
