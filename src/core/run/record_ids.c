/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The checksum and the nonce of a record, made when they are asked for: a digest takes as long as
 * half a call, randomness comes from the kernel, and most records are never asked. Several threads
 * may ask at once. Each then makes one, the first to publish it wins, and the others drop theirs.
 */

#include <string.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/run/record.h"
#include "json/json.h"

/* ---- made once ------------------------------------------------------------------ */

/* A renamed record asks its original, so that both have the same. */
static peg_record *owner_of(const peg_record *record)
{
    return peg__unconst(record->original ? record->original : record);
}

/* NULL if it was not made yet. */
static const char *get(_Atomic(char *) *made)
{
    return atomic_load_explicit(made, memory_order_acquire);
}

/* Takes a copy of the text unless another thread was first; either way *ret_text is what stays. */
static peg_status publish(_Atomic(char *) *made, const char *text, const char **ret_text,
                          peg_error *reterr)
{
    const size_t size = strlen(text) + 1;
    char *copy = peg__alloc(size);
    char *first = NULL;

    if (!copy)
        return peg__fail_nomem(reterr);
    memcpy(copy, text, size);
    if (atomic_compare_exchange_strong_explicit(made, &first, copy, memory_order_acq_rel,
                                                memory_order_acquire)) {
        *ret_text = copy;
        return PEG_OK;
    }
    peg__free(copy);
    *ret_text = first;
    return PEG_OK;
}

void peg__record_forget_made(peg_record *record)
{
    peg__free(atomic_load_explicit(&record->checksum, memory_order_relaxed));
    peg__free(atomic_load_explicit(&record->nonce, memory_order_relaxed));
}

/* ---- the checksum --------------------------------------------------------------- */

/* The canonical form of most calls fits, so that the text grows once. */
enum { USUAL_BYTES = 512 };

peg_status peg_call_digest(peg_str tool, const peg_json *args, char ret_hex[65], peg_error *reterr)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char digest[PEG_SHA256_BYTES];
    peg_status status;

    peg__buf_reserve(&text, USUAL_BYTES);
    peg__buf_puts(&text, "{\"args\":");
    peg__json_canonical(args, &text);
    peg__buf_puts(&text, ",\"tool\":");
    peg__json_write_string(tool, &text);
    peg__buf_putc(&text, '}');

    status = text.status;
    if (!status && !peg__sha256(peg__buf_view(&text), digest))
        status = PEG_ENOMEM;
    peg__buf_free(&text);
    if (status == PEG_ELIMIT)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "the canonical form of the arguments is larger than %d bytes",
                         PEG_LIMIT_TEXT_BYTES);
    if (status)
        return peg__fail_nomem(reterr);
    peg__hex(digest, sizeof(digest), ret_hex);
    return PEG_OK;
}

peg_status peg__record_checksum(const peg_record *record, const char **ret_hex, peg_error *reterr)
{
    peg_record *owner = owner_of(record);
    const char *made = get(&owner->checksum);
    char hex[PEG_SHA256_HEX];
    peg_status status;

    if (made) {
        *ret_hex = made;
        return PEG_OK;
    }
    status = peg_call_digest(owner->tool, peg_record_args(owner), hex, reterr);
    return status ? status : publish(&owner->checksum, hex, ret_hex, reterr);
}

const char *peg_record_checksum(const peg_record *record)
{
    const char *hex = "";

    (void)peg__record_checksum(record, &hex, NULL);
    return hex;
}

/* ---- the nonce ------------------------------------------------------------------ */

peg_status peg__record_nonce(const peg_record *record, const char **ret_hex, peg_error *reterr)
{
    peg_record *owner = owner_of(record);
    const char *made = get(&owner->nonce);
    char hex[PEG_ID_HEX_TEXT];

    if (made) {
        *ret_hex = made;
        return PEG_OK;
    }
    if (!peg__id_hex(hex))
        return peg__fail_no_randomness(reterr);
    return publish(&owner->nonce, hex, ret_hex, reterr);
}

peg_status peg__record_set_nonce(peg_record *record, const char *nonce, peg_error *reterr)
{
    const char *kept;

    return publish(&record->nonce, nonce, &kept, reterr);
}

const char *peg_record_nonce(const peg_record *record)
{
    const char *hex = "";

    (void)peg__record_nonce(record, &hex, NULL);
    return hex;
}
