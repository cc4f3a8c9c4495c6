/* SPDX-License-Identifier: Apache-2.0 */

#include "json/json.h"

#include <inttypes.h>
#include <math.h>

#include "base/text/str.h"
#include "json/number/number.h"

/* Before each value: the comma that the one before it left open_container. */
static void put_comma(struct peg__out *out)
{
    if (out->needs_comma)
        peg__buf_putc(out->buf, ',');
    out->needs_comma = true;
}

static void put_opening(struct peg__out *out, char bracket)
{
    put_comma(out);
    peg__buf_putc(out->buf, bracket);
    out->needs_comma = false;
}

static void put_closing(struct peg__out *out, char bracket)
{
    peg__buf_putc(out->buf, bracket);
    out->needs_comma = true;
}

void peg__out_object(struct peg__out *out)
{
    put_opening(out, '{');
}

void peg__out_end_object(struct peg__out *out)
{
    put_closing(out, '}');
}

void peg__out_array(struct peg__out *out)
{
    put_opening(out, '[');
}

void peg__out_end_array(struct peg__out *out)
{
    put_closing(out, ']');
}

void peg__out_key_str(struct peg__out *out, peg_str name)
{
    put_comma(out);
    peg__json_write_string(name, out->buf);
    peg__buf_putc(out->buf, ':');
    out->needs_comma = false;
}

void peg__out_key(struct peg__out *out, const char *name)
{
    peg__out_key_str(out, peg__str(name));
}

void peg__out_string(struct peg__out *out, peg_str utf8)
{
    put_comma(out);
    peg__json_write_string(utf8, out->buf);
}

void peg__out_cstring(struct peg__out *out, const char *utf8)
{
    peg__out_string(out, peg__str(utf8));
}

void peg__out_raw(struct peg__out *out, peg_str json)
{
    put_comma(out);
    peg__buf_str(out->buf, json);
}

void peg__out_bool(struct peg__out *out, bool truth)
{
    peg__out_raw(out, peg__str(truth ? "true" : "false"));
}

void peg__out_null(struct peg__out *out)
{
    peg__out_raw(out, peg__str("null"));
}

void peg__out_integer(struct peg__out *out, int64_t number)
{
    put_comma(out);
    peg__buf_printf(out->buf, "%" PRId64, number);
}

void peg__out_double(struct peg__out *out, double number)
{
    struct peg__shortest s;
    peg_json value = {.kind = PEG_JSON_DECIMAL, .form = PEG_JSON_FORM_SCALED};

    if (!isfinite(number)) {
        peg__out_null(out);
        return;
    }
    if (fabs(number) < 1e15 && number == (double)(int64_t)number) {
        peg__out_integer(out, (int64_t)number);
        return;
    }
    s = peg__double_shortest(fabs(number));
    value.u.number = signbit(number) ? -(int64_t)s.mantissa : (int64_t)s.mantissa;
    value.exponent = (int16_t)s.exponent;
    peg__out_value(out, &value);
}

void peg__out_value(struct peg__out *out, const peg_json *value)
{
    put_comma(out);
    peg__json_write(value, PEG_JSON_COMPACT, out->buf);
}
