/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_JSON_OUT_H
#define PEG_JSON_OUT_H

/*
 * Writes JSON text value by value, commas included, without a document in between. The caller keeps
 * objects and arrays balanced and names members once; the buffer's own status tells the rest.
 *
 *   struct peg__out out = {.buf = &buf};
 *   peg__out_object(&out);
 *   peg__out_key(&out, "model");
 *   peg__out_cstring(&out, "m");
 *   peg__out_end_object(&out);
 */

#include "json/json.h"

struct peg__out {
    struct peg__buf *buf;
    bool needs_comma;
};

void peg__out_object(struct peg__out *out);
void peg__out_end_object(struct peg__out *out);
void peg__out_array(struct peg__out *out);
void peg__out_end_array(struct peg__out *out);
void peg__out_key(struct peg__out *out, const char *name);
void peg__out_key_str(struct peg__out *out, peg_str name);
void peg__out_string(struct peg__out *out, peg_str utf8);
void peg__out_cstring(struct peg__out *out, const char *utf8);
void peg__out_bool(struct peg__out *out, bool truth);
void peg__out_integer(struct peg__out *out, int64_t number);
/* The shortest decimal that reads back; null for what is not finite. */
void peg__out_double(struct peg__out *out, double number);
void peg__out_null(struct peg__out *out);
void peg__out_value(struct peg__out *out, const peg_json *value);
/* JSON text as it is. */
void peg__out_raw(struct peg__out *out, peg_str json);

/* A member in one line. */
static inline void peg__out_member(struct peg__out *out, const char *name, peg_str utf8)
{
    peg__out_key(out, name);
    peg__out_string(out, utf8);
}

static inline void peg__out_cmember(struct peg__out *out, const char *name, const char *utf8)
{
    peg__out_key(out, name);
    peg__out_cstring(out, utf8);
}

#endif
