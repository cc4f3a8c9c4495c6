/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/vendors/alternating.h"

#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "core/result/envelope.h"
#include "engine/dialects/definitions.h"

const char peg__opening_words[] = "(The conversation begins with the assistant.)";

/* ---- words ------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

peg_str peg__without_end_space(peg_str text)
{
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

bool peg__is_blank(peg_str text)
{
    return peg__without_end_space(text).len == 0;
}

/* ---- the system -------------------------------------------------------------------------- */

static bool is_system(const struct peg__passage *passage)
{
    return passage->block && peg_block_kind_of(passage->block) == PEG_BLOCK_SYSTEM;
}

size_t peg__n_system_first(const struct peg__history *history)
{
    size_t n = 0;

    while (n < history->n && is_system(&history->passages[n]))
        n++;
    return n;
}

enum { NONCE_DIGITS = 32 };

/* Of the words themselves: no text can contain its own digest. */
static peg_status nonce_of(const peg_block *block, char ret_nonce[NONCE_DIGITS + 1])
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    unsigned char digest[PEG_SHA256_BYTES];
    peg_status status;

    peg__buf_puts(&text, "pegboard system ");
    peg__buf_str(&text, peg_block_id(block));
    peg__buf_putc(&text, '\0');
    peg__buf_str(&text, peg_block_text(block));
    status = text.status;
    if (!status && !peg__sha256(peg__buf_view(&text), digest))
        status = PEG_ENOMEM;
    peg__buf_free(&text);
    if (!status)
        peg__hex(digest, NONCE_DIGITS / 2, ret_nonce);
    return status;
}

peg_status peg__system_apart(const peg_block *block, char **ret_text, size_t *ret_len,
                             peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    char nonce[NONCE_DIGITS + 1];
    const peg_envelope envelope = {.is_trusted = true, .nonce = nonce, .kind = "system-message"};

    out.status = nonce_of(block, nonce);
    if (!out.status)
        peg__envelope_write(&envelope, peg_block_text(block), &out);
    return peg__buf_take(&out, ret_text, ret_len, reterr);
}

/* ---- media ------------------------------------------------------------------------------- */

enum peg__media_way peg__choose_media(const peg_media *media, const struct peg__media_rules *rules,
                                      const peg_model_options *options)
{
    const enum peg__media_way way = peg__media_choose(media, rules, options);

    if (way == PEG__MEDIA_BYTES && peg_reader_byte_length(peg_media_reader(media)) == 0)
        return PEG__MEDIA_TEXT;
    return way;
}

/* ---- tools ------------------------------------------------------------------------------- */

bool peg__offers_tools(const struct peg__request *request)
{
    return request->config->is_enabled && request->config->choice != PEG_CHOICE_NONE &&
           request->definitions && peg_json_len(request->definitions) > 0;
}

bool peg__must_call(const struct peg__request *request)
{
    if (request->config->choice != PEG_CHOICE_REQUIRED)
        return false;
    for (size_t i = request->history->n; i > 0; i--) {
        const struct peg__passage *passage = &request->history->passages[i - 1];

        if (!passage->block)
            return false;
        if (peg_block_kind_of(passage->block) == PEG_BLOCK_USER)
            return true;
    }
    return true;
}

peg_status peg__write_tools(const struct peg__request *request, peg_vendor provider,
                            struct peg__out *out, peg_error *reterr)
{
    const peg_definitions_options options = {.provider = provider,
                                             .strict = request->options->strict,
                                             .json_schema = request->options->json_schema};
    peg_status status;

    peg__out_key(out, "tools");
    status = peg__definitions_write(request->definitions, &options, request->names, out->buf, NULL,
                                    reterr);
    out->needs_comma = true;
    return status;
}
