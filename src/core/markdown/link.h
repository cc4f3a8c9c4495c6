/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CORE_MARKDOWN_LINK_H
#define PEG_CORE_MARKDOWN_LINK_H

/*
 * The parts of links, and what stands between < and >. Each function reads what starts at s->at
 * and moves behind it, or returns false and stays. How far a failure looks ahead is bounded by what
 * made it look, so that many of them together stay linear; n_steps counts.
 */

#include "base/buf.h"

struct peg__md_scan {
    peg_str text;
    size_t at;
    size_t n_steps;
    unsigned lacks; /* a bit for each kind of HTML whose end does not come any more */
};

/* [label]: up to 999 bytes, no bracket inside, not only spaces. */
bool peg__md_scan_label(struct peg__md_scan *s, peg_str *ret_label);
/* (url "title"); *ret_title has ptr NULL if there is none. */
bool peg__md_scan_target(struct peg__md_scan *s, peg_str *ret_url, peg_str *ret_title);
/* [label]: url "title", with the end of its line. */
bool peg__md_scan_definition(struct peg__md_scan *s, peg_str *ret_label, peg_str *ret_url,
                             peg_str *ret_title);
/* <https://...> or <somebody@...>; *ret_url is what is inside. */
bool peg__md_scan_autolink(struct peg__md_scan *s, peg_str *ret_url, bool *ret_is_email);
/* http://, https:// or www. and what follows, as GitHub finds it. */
bool peg__md_scan_bare_url(struct peg__md_scan *s, peg_str *ret_url);
/* A tag, a comment, a processing instruction, a declaration, CDATA. */
bool peg__md_scan_html(struct peg__md_scan *s);

/* `\*` and `&amp;` as what they stand for. */
void peg__md_unescape(peg_str s, struct peg__buf *out);
/* Bytes of the character reference that starts here (at '&'), 0 if there is none; appends what it
 * stands for unless out is NULL. */
size_t peg__md_entity(peg_str s, struct peg__buf *out);

static inline bool peg__md_is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static inline bool peg__md_is_alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

#endif
