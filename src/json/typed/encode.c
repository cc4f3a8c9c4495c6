/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/typed/typed.h"

peg_encoder *peg_encoder_new(void)
{
    peg_encoder *e = peg__alloc_zero(1, sizeof(*e));

    if (e) {
        e->text.max = PEG_LIMIT_TEXT_BYTES;
        e->out.buf = &e->text;
    }
    return e;
}

peg_encoder *peg_encoder_free(peg_encoder *e)
{
    if (e)
        peg__buf_free(&e->text);
    peg__free(e);
    return NULL;
}

void peg_encoder_clear(peg_encoder *e)
{
    if (!e)
        return;
    peg__buf_clear(&e->text);
    e->out.needs_comma = false;
    e->depth = 0;
    e->key = peg__str("");
    e->error.status = PEG_OK;
}

peg_status peg_encoder_text(peg_encoder *e, peg_str *ret_text, peg_error *reterr)
{
    if (!e || e->text.status == PEG_ENOMEM)
        return peg__fail_nomem(reterr);
    if (e->error.status) {
        if (reterr)
            *reterr = e->error;
        return e->error.status;
    }
    if (e->text.status)
        return peg__fail(reterr, PEG_ELIMIT, "E_TEXT_TOO_LARGE",
                         "the text is larger than PEG_LIMIT_TEXT_BYTES");
    *ret_text = peg__buf_view(&e->text);
    return PEG_OK;
}

/* ---- failing ------------------------------------------------------------------------------ */

static bool is_failed(const peg_encoder *e)
{
    return !e || e->error.status || e->text.status;
}

static void fail_encoding(peg_encoder *e, peg_status status, const char *code, const char *what)
{
    if (is_failed(e))
        return;
    if (e->key.len)
        peg__fail(&e->error, status, code, "%s, at or after the member %.*s", what, (int)e->key.len,
                  e->key.ptr);
    else
        peg__fail(&e->error, status, code, "%s", what);
}

void peg_encode_fail(peg_encoder *e, const char *what)
{
    fail_encoding(e, PEG_EINVAL, "E_ENCODE", what);
}

/* ---- containers --------------------------------------------------------------------------- */

static bool deepen(peg_encoder *e)
{
    if (is_failed(e))
        return false;
    if (e->depth >= PEG_LIMIT_JSON_DEPTH) {
        fail_encoding(e, PEG_ELIMIT, "E_JSON_TOO_DEEP",
                      "the value nests deeper than PEG_LIMIT_JSON_DEPTH");
        return false;
    }
    e->depth++;
    return true;
}

bool peg_encode_open_object(peg_encoder *e)
{
    if (!deepen(e))
        return false;
    peg__out_object(&e->out);
    return true;
}

bool peg_encode_open_array(peg_encoder *e)
{
    if (!deepen(e))
        return false;
    peg__out_array(&e->out);
    return true;
}

void peg_encode_close_object(peg_encoder *e)
{
    if (is_failed(e))
        return;
    e->depth--;
    peg__out_end_object(&e->out);
}

void peg_encode_close_array(peg_encoder *e)
{
    if (is_failed(e))
        return;
    e->depth--;
    peg__out_end_array(&e->out);
}

void peg_encode_quoted_key(peg_encoder *e, const char *quoted, size_t len)
{
    if (is_failed(e))
        return;
    e->key = peg__strn(quoted, len - 1);
    peg__out_raw(&e->out, peg__strn(quoted, len));
    e->out.needs_comma = false;
}

static bool is_utf8_text(peg_encoder *e, peg_str text)
{
    if (is_failed(e))
        return false;
    if (peg__utf8_is_valid(text))
        return true;
    fail_encoding(e, PEG_EINVAL, "E_JSON_UTF8", "a string is not UTF-8");
    return false;
}

void peg_encode_key(peg_encoder *e, peg_str name)
{
    if (is_utf8_text(e, name))
        peg__out_key_str(&e->out, name);
}

/* ---- values ------------------------------------------------------------------------------- */

void peg_encode_null(peg_encoder *e)
{
    if (!is_failed(e))
        peg__out_null(&e->out);
}

void peg_encode_bool(peg_encoder *e, bool truth)
{
    if (!is_failed(e))
        peg__out_bool(&e->out, truth);
}

void peg_encode_integer(peg_encoder *e, int64_t number)
{
    if (!is_failed(e))
        peg__out_integer(&e->out, number);
}

void peg_encode_number(peg_encoder *e, double number)
{
    if (is_failed(e))
        return;
    if (isfinite(number))
        peg__out_double(&e->out, number);
    else
        fail_encoding(e, PEG_EINVAL, "E_JSON_NUMBER", "JSON has no NaN and no infinity");
}

void peg_encode_string(peg_encoder *e, peg_str text)
{
    if (!text.ptr)
        text = peg__str("");
    if (is_utf8_text(e, text))
        peg__out_string(&e->out, text);
}

void peg_encode_json(peg_encoder *e, const peg_json *value)
{
    if (!is_failed(e))
        peg__out_value(&e->out, peg__json_or_null(value));
}

void peg_encode_enum(peg_encoder *e, unsigned index, const peg_str *names, size_t n)
{
    if (is_failed(e))
        return;
    if (index < n)
        peg__out_string(&e->out, names[index]);
    else
        peg_encode_fail(e, "an enum has a value that it does not list");
}
