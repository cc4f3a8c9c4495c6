/* SPDX-License-Identifier: Apache-2.0 */

/* contentEncoding and contentMediaType, which draft-07 lets a validator check. */

#include "base/mem.h"
#include "base/text/str.h"
#include "schema/check/check.h"
#include "json/json.h"

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648 section 4. Writes the bytes to `to` and returns how many, or -1. */
static long decode_base64(peg_str text, char *to)
{
    const size_t padding = text.len && text.ptr[text.len - 1] == '='
                               ? 1 + (text.len > 1 && text.ptr[text.len - 2] == '=')
                               : 0;
    uint32_t bits = 0;
    long n = 0;

    if (text.len % 4 != 0)
        return -1;
    for (size_t i = 0; i < text.len - padding; i++) {
        const int value = base64_value(text.ptr[i]);

        if (value < 0)
            return -1;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 > 0)
            to[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return n;
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

    if (insn->a) {
        const long len = (decoded = peg__alloc(text.len)) ? decode_base64(text, decoded) : -1;

        if (!decoded)
            return peg__halt(ck, "memory");
        if (len < 0)
            return false;
        text = peg__strn(decoded, (size_t)len);
    }
    return !insn->b || is_json(ck, text);
}

bool peg__check_content(struct peg_checker *ck, const struct peg__insn *insn, const peg_json *v)
{
    if (is_content(ck, insn, peg_json_str(v)))
        return true;
    return !ck->halted && peg__fail_insn(ck, insn, v);
}
