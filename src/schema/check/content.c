/* SPDX-License-Identifier: Apache-2.0 */

/* contentEncoding and contentMediaType, which draft-07 lets a validator check. */

#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/str.h"
#include "schema/check/check.h"
#include "json/json.h"

/* RFC 4648 section 4: padded, without spaces and without the other alphabet. */
static bool decode_strictly(peg_str text, char *to, size_t *ret_len)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("-_ \t\r\n", text.ptr[i]))
            return false;
    return text.len % 4 == 0 && peg__base64_decode(text, to, ret_len);
}

static bool is_json(struct peg_checker *ck, peg_str text)
{
    peg_status status;

    if (!ck->content)
        ck->content = peg__json_doc_new(0);
    if (!ck->content)
        return peg__halt(ck, "memory");
    status = peg_json_reparse(ck->content, text, NULL, NULL);
    if (status == PEG_ENOMEM)
        peg__halt(ck, "memory");
    return status == PEG_OK;
}

static bool is_content(struct peg_checker *ck, const struct peg__insn *insn, peg_str text)
{
    PEG_CLEANUP(peg__freep) char *decoded = NULL;
    size_t len;

    if (insn->a) {
        decoded = peg__alloc(peg__base64_bytes(text.len));
        if (!decoded)
            return peg__halt(ck, "memory");
        if (!decode_strictly(text, decoded, &len))
            return false;
        text = peg__strn(decoded, len);
    }
    return !insn->b || is_json(ck, text);
}

bool peg__check_content(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    if (is_content(ck, insn, peg_json_str(v)))
        return true;
    return !ck->halted && peg__fail_insn(ck, insn, v);
}
