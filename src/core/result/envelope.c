/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Envelopes. Two things keep what is inside from getting out: the nonce, which it cannot know, and
 * that it holds no tag with the name of an envelope at all, so that not even a careless
 * reader of the text sees one.
 *
 * The rule for the second: of what follows a '<', up to the next '<' or '>', only ASCII letters
 * and digits count, without their case. If they begin with the letters of a reserved name, the '<'
 * is written as "&lt;". Whatever is put around or between them (slashes, spaces, controls, zero
 * widths, broken UTF-8) is not looked at, so it cannot help. Nothing is ever removed, so no tag
 * can come into being by removing, and each byte is looked at by the one '<' before it.
 */

#include "core/result/result.h"

#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

enum { MAX_NONCE = 128, REPLACEMENT = 0xFFFD };

/* The names that only we may open and close, as their letters. */
static const peg_str reserved[] = {PEG_LIT("untrustedcontent"), PEG_LIT("trustedcontent"),
                                   PEG_LIT("systeminstructions")};
enum { N_RESERVED = sizeof(reserved) / sizeof(*reserved), MAX_RESERVED = 18 };

/* ---- characters -------------------------------------------------------------------- */

size_t peg__char_decode(peg_str s, uint32_t *ret_char)
{
    const size_t n = peg__utf8_decode(s, ret_char);

    if (n == 0)
        *ret_char = REPLACEMENT;
    return n ? n : 1;
}

bool peg__char_is_unseen(uint32_t c)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } ranges[] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x61C, 0x61C},
        {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F},
        {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    }
    return false;
}

void peg__quoted_write(peg_str s, struct peg__buf *out)
{
    while (s.len > 0 && !out->status) {
        uint32_t c;
        const size_t n = peg__char_decode(s, &c);

        if (c == '&')
            peg__buf_puts(out, "&amp;");
        else if (c == '<')
            peg__buf_puts(out, "&lt;");
        else if (c == '>')
            peg__buf_puts(out, "&gt;");
        else if (c == '"')
            peg__buf_puts(out, "&quot;");
        else if (peg__char_is_unseen(c))
            peg__buf_printf(out, "&#x%X;", (unsigned)c);
        else if (c == REPLACEMENT)
            peg__buf_utf8(out, REPLACEMENT);
        else
            peg__buf_add(out, s.ptr, n);
        s = peg__str_from(s, n);
    }
}

/* ---- the body ---------------------------------------------------------------------- */

/* Does a tag of a reserved name follow a '<'? */
static bool follows_reserved(peg_str rest)
{
    char letters[MAX_RESERVED];
    size_t n = 0;

    for (size_t i = 0; i < rest.len && n < MAX_RESERVED; i++) {
        const char c = rest.ptr[i];

        if (c == '<' || c == '>')
            break;
        if (peg__is_alnum(c))
            letters[n++] = peg__to_lower(c);
    }
    for (size_t i = 0; i < N_RESERVED; i++) {
        if (peg__str_starts(peg__strn(letters, n), reserved[i]))
            return true;
    }
    return false;
}

static void put_body(peg_str body, struct peg__buf *out)
{
    while (body.len > 0 && !out->status) {
        const char *open = memchr(body.ptr, '<', body.len);
        const size_t n = open ? (size_t)(open - body.ptr) : body.len;

        peg__buf_as_utf8(out, peg__strn(body.ptr, n));
        if (!open)
            return;
        body = peg__str_from(body, n + 1);
        peg__buf_puts(out, follows_reserved(body) ? "&lt;" : "<");
    }
}

/* ---- the envelope ------------------------------------------------------------------ */

static void put_name(const peg_envelope *envelope, struct peg__buf *out)
{
    peg__buf_puts(out, envelope->is_trusted ? "trusted_content_" : "untrusted_content_");
    peg__buf_puts(out, envelope->nonce);
}

static void put_attribute(const char *name, const char *value, struct peg__buf *out)
{
    if (!value)
        return;
    peg__buf_printf(out, " %s=\"", name);
    peg__quoted_write(peg__str(value), out);
    peg__buf_putc(out, '"');
}

void peg__envelope_write(const peg_envelope *envelope, peg_str body, struct peg__buf *out)
{
    peg__buf_putc(out, '<');
    put_name(envelope, out);
    put_attribute("nonce", envelope->nonce, out);
    put_attribute("kind", envelope->kind, out);
    put_attribute("tool", envelope->tool, out);
    put_attribute("modality", envelope->modality, out);
    peg__buf_puts(out, ">\n");
    put_body(body, out);
    peg__buf_puts(out, "\n</");
    put_name(envelope, out);
    peg__buf_putc(out, '>');
}

static bool is_nonce(const char *s)
{
    size_t n = 0;

    while (n <= MAX_NONCE && (peg__is_alnum(s[n]) || s[n] == '_' || s[n] == '-'))
        n++;
    return n > 0 && n <= MAX_NONCE && s[n] == '\0';
}

static peg_status reject_field(peg_error *reterr, const char *field, const char *reason)
{
    peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT", "%s", reason);
    peg__error_where(reterr, peg__str(field));
    return PEG_EINVAL;
}

static peg_status check_envelope(const peg_envelope *envelope, peg_str body, peg_error *reterr)
{
    if (!envelope)
        return reject_field(reterr, "", "an envelope is required");
    if (!envelope->kind || !envelope->kind[0])
        return reject_field(reterr, "/kind",
                            "say what is inside, for example kind \"tool-result\"");
    if (envelope->nonce && !is_nonce(envelope->nonce))
        return reject_field(
            reterr, "/nonce",
            "a nonce is 1 to 128 of A-Z a-z 0-9 _ -; leave it NULL to have one made");
    if (body.len > 0 && !body.ptr)
        return reject_field(reterr, "/body", "the body has a length but no bytes");
    return PEG_OK;
}

peg_status peg_envelope_wrap(const peg_envelope *envelope, peg_str body, char **ret_text,
                             size_t *ret_len, peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    char nonce[PEG_ID_HEX_TEXT];
    peg_envelope whole;
    peg_status status = check_envelope(envelope, body, reterr);

    if (status)
        return status;
    if (!ret_text)
        return reject_field(reterr, "", "a place for the text is required");
    whole = *envelope;
    if (!whole.nonce) {
        if (!peg__id_hex(nonce))
            return peg__fail_no_randomness(reterr);
        whole.nonce = nonce;
    }
    peg__envelope_write(&whole, body, &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}
