/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The inline content of one block. One pass leaves a list of tokens, in the order of the text, that
 * say which bytes are markup; whatever is between tokens stands for itself. Whether a bracket or a
 * run of asterisks is markup shows later, so those tokens are entered undecided and stay reachable
 * through chains of openers.
 *
 * Linear: a closing bracket takes one opener from its chain whatever comes of it; a run of
 * asterisks takes openers it uses up; whether a run of backticks is ever closed is known from a
 * table made in one scan; what looks ahead is in markdown_link.c.
 */

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "core/markdown/internal.h"
#include "core/markdown/markdown.h"

enum token_kind {
    MARKUP,    /* decided: the first n_markup bytes */
    CHARACTER, /* stands for another character */
    EMPHASIS,
    BRACKET, /* [ or ![ */
};

enum {
    NONE = PEG__MD_NONE,
    /* Longer runs of backticks start no code. */
    MAX_BACKTICKS = 80,
};

enum delimiter { ASTERISK, UNDERSCORE, TILDE, N_DELIMITERS };

struct reader {
    struct peg__md_inline *in;
    struct peg__md_scan scan;
    uint32_t bracket;                /* the innermost that is open */
    uint32_t emphasis[N_DELIMITERS]; /* the last that may be closed */
    uint32_t dead_before;            /* brackets of tokens before this one start no link */
    bool has_backticks;              /* last_backticks is filled */
    uint32_t last_backticks[MAX_BACKTICKS + 1]; /* where the last run of a length starts */
    bool has_failed;
};

static char byte_at(const struct reader *r, size_t i)
{
    return (char)(i < r->in->text.len ? r->in->text.ptr[i] : '\0');
}

/* ---- tokens -------------------------------------------------------------------------------- */

static struct peg__md_token *add_token(struct reader *r, enum token_kind kind, size_t at,
                                       size_t len)
{
    struct peg__md_inline *in = r->in;

    if (!PEG__RESERVE(in->tokens, in->n_tokens + 1, in->tokens_capacity)) {
        r->has_failed = true;
        return NULL;
    }
    in->tokens[in->n_tokens] = (struct peg__md_token){
        .kind = (uint8_t)kind,
        .at = (uint32_t)at,
        .len = (uint32_t)len,
        .n_markup = kind == MARKUP || kind == CHARACTER ? (uint32_t)len : 0,
        .before = NONE,
        .link = NONE,
    };
    return &in->tokens[in->n_tokens++];
}

static struct peg__md_token *token(const struct reader *r, uint32_t i)
{
    return &r->in->tokens[i];
}

static uint32_t last_token(const struct reader *r)
{
    return (uint32_t)(r->in->n_tokens - 1);
}

/* The link that starts at the token of this index. */
static void add_link(struct reader *r, uint32_t start, const struct peg__md_link *link)
{
    struct peg__md_inline *in = r->in;

    if (!PEG__RESERVE(in->links, in->n_links + 1, in->links_capacity)) {
        r->has_failed = true;
        return;
    }
    token(r, start)->link = (uint32_t)in->n_links;
    in->links[in->n_links] = *link;
    in->links[in->n_links].at = token(r, start)->at;
    in->n_links++;
}

/* ---- code ---------------------------------------------------------------------------------- */

static size_t run_len(const struct reader *r, size_t at)
{
    size_t n = 1;

    while (byte_at(r, at + n) == byte_at(r, at) && at + n < r->in->text.len)
        n++;
    return n;
}

static void list_backticks(struct reader *r)
{
    const peg_str text = r->in->text;

    for (size_t at = r->scan.at; at < text.len; at++) {
        const char *found = memchr(text.ptr + at, '`', text.len - at);
        size_t n;

        if (!found)
            break;
        at = (size_t)(found - text.ptr);
        n = run_len(r, at);
        if (n <= MAX_BACKTICKS)
            r->last_backticks[n] = (uint32_t)at;
        at += n;
    }
    r->scan.n_steps += text.len - r->scan.at;
    r->has_backticks = true;
}

/* Where the run of n backticks starts that closes code from `at` on; one is known to come. */
static size_t find_backticks(struct reader *r, size_t at, size_t n)
{
    for (;;) {
        const size_t found =
            (size_t)((const char *)memchr(r->in->text.ptr + at, '`', r->in->text.len - at) -
                     r->in->text.ptr);
        const size_t len = run_len(r, found);

        if (len == n)
            return found;
        at = found + len;
    }
}

static void read_code(struct reader *r)
{
    const size_t start = r->scan.at;
    const size_t n = run_len(r, start);
    size_t close;

    if (!r->has_backticks)
        list_backticks(r);
    r->scan.at += n;
    if (n > MAX_BACKTICKS || r->last_backticks[n] <= start)
        return;
    close = find_backticks(r, r->scan.at, n);
    r->scan.n_steps += close - start;
    add_token(r, MARKUP, start, n);
    add_token(r, MARKUP, close, n);
    r->scan.at = close + n;
}

/* ---- emphasis ------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == '\0' || c == '\n' || peg__md_is_space(c);
}

/* Can a run open or close emphasis? By what stands on either side. */
static void judge_run(char c, char before, char after, bool *ret_opens, bool *ret_closes)
{
    const bool left = !is_blank(after) && (!peg__md_is_punctuation(after) || is_blank(before) ||
                                           peg__md_is_punctuation(before));
    const bool right = !is_blank(before) && (!peg__md_is_punctuation(before) || is_blank(after) ||
                                             peg__md_is_punctuation(after));

    *ret_opens = left && (c != '_' || !right || peg__md_is_punctuation(before));
    *ret_closes = right && (c != '_' || !left || peg__md_is_punctuation(after));
}

/* Uses up openers, the last one first. Tells how much of the run is left. */
static uint32_t close_emphasis(struct reader *r, uint32_t *chain, uint32_t len, bool is_exact)
{
    uint32_t left = len;

    while (left && *chain != NONE) {
        struct peg__md_token *opener = token(r, *chain);
        const uint32_t open = opener->len - opener->n_markup;
        const uint32_t used = open < left ? open : left;

        r->scan.n_steps++;
        if (is_exact && open != left)
            break;
        opener->n_markup += used;
        left -= used;
        if (used == open)
            *chain = opener->before;
    }
    return left;
}

static void read_emphasis(struct reader *r)
{
    const size_t start = r->scan.at;
    const char c = byte_at(r, start);
    const enum delimiter kind = c == '*' ? ASTERISK : c == '_' ? UNDERSCORE : TILDE;
    const size_t n = run_len(r, start);
    struct peg__md_token *run;
    bool opens;
    bool closes;

    r->scan.at += n;
    /* Before the first byte is what is behind the last one: nothing. */
    judge_run(c, byte_at(r, start - 1), byte_at(r, start + n), &opens, &closes);
    if ((!opens && !closes) || (kind == TILDE && n > 2))
        return;
    run = add_token(r, EMPHASIS, start, n);
    if (!run)
        return;
    if (closes)
        run->n_markup = run->len - close_emphasis(r, &r->emphasis[kind], run->len, kind == TILDE);
    if (opens && run->n_markup < run->len) {
        run->before = r->emphasis[kind];
        r->emphasis[kind] = last_token(r);
    }
}

/* ---- brackets ------------------------------------------------------------------------------ */

static void open_bracket(struct reader *r, size_t len)
{
    struct peg__md_token *bracket = add_token(r, BRACKET, r->scan.at, len);

    r->scan.at += len;
    if (!bracket)
        return;
    if (r->bracket != NONE)
        token(r, r->bracket)->has_bracket = true;
    bracket->before = r->bracket;
    r->bracket = last_token(r);
}

static const struct peg__md_definition *find_definition(struct reader *r, peg_str label)
{
    const struct peg__md *md = r->in->md;

    if (!md || md->definitions.n == 0 || label.len > 999)
        return NULL;
    r->scan.n_steps += label.len;
    peg__md_normalize(label, &r->in->label);
    if (r->in->label.status) {
        r->has_failed = true;
        return NULL;
    }
    return peg__map_get(&md->definitions, peg__buf_view(&r->in->label));
}

/* [text][label], [label][] or [label]: the scan is behind the first ]. */
static bool read_reference(struct reader *r, const struct peg__md_token *bracket, peg_str text,
                           struct peg__md_link *link)
{
    static const peg_str nothing = PEG_LIT("[]");
    const size_t start = r->scan.at;
    const struct peg__md_definition *definition = NULL;
    peg_str label = text;
    bool is_own = true; /* the text is the label, so there must be no bracket in it */

    if (peg__str_starts(peg__str_from(r->scan.text, start), nothing))
        r->scan.at += nothing.len;
    else
        is_own = !peg__md_scan_label(&r->scan, &label);
    if (!is_own || !bracket->has_bracket)
        definition = find_definition(r, label);
    if (!definition) {
        r->scan.at = start;
        return false;
    }
    link->kind = PEG__MD_REFERENCE;
    link->url = definition->url;
    link->title = definition->title;
    return true;
}

/* Autolinks inside the text of a link are not links of their own. Links that are written out would
 * have kept this one from being one. */
static void drop_inner_autolinks(struct reader *r, uint32_t start)
{
    struct peg__md_inline *in = r->in;

    for (size_t i = in->n_links; i > 0 && in->links[i - 1].at > start; i--) {
        r->scan.n_steps++;
        if (in->links[i - 1].kind == PEG__MD_AUTOLINK)
            in->links[i - 1].is_dropped = true;
    }
}

/* The innermost bracket is done: the one around it knows how deep links nest inside. */
static void pop_bracket(struct reader *r, uint8_t height)
{
    r->bracket = token(r, r->bracket)->before;
    if (r->bracket != NONE && token(r, r->bracket)->height < height)
        token(r, r->bracket)->height = height;
}

static void close_bracket(struct reader *r)
{
    const size_t at = r->scan.at++;
    const uint32_t open = r->bracket;
    struct peg__md_link link = {.text_end = (uint32_t)at};
    struct peg__md_token bracket;
    peg_str text;

    if (open == NONE)
        return;
    bracket = *token(r, open);
    link.is_image = bracket.len == 2;
    link.text = bracket.at + bracket.len;
    text = peg__strn(r->in->text.ptr + link.text, at - link.text);
    if (bracket.height >= PEG_LIMIT_MARKDOWN_DEPTH || (!link.is_image && open < r->dead_before) ||
        (!peg__md_scan_target(&r->scan, &link.url, &link.title) &&
         !read_reference(r, &bracket, text, &link))) {
        pop_bracket(r, bracket.height);
        return;
    }
    if (!link.is_image) {
        drop_inner_autolinks(r, bracket.at);
        r->dead_before = open;
    }
    token(r, open)->n_markup = bracket.len;
    pop_bracket(r, (uint8_t)(bracket.height + 1));
    add_token(r, MARKUP, at, r->scan.at - at);
    add_link(r, open, &link);
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void read_angle(struct reader *r)
{
    const size_t start = r->scan.at;
    struct peg__md_link link = {.kind = PEG__MD_AUTOLINK, .text = (uint32_t)start + 1};

    if (peg__md_scan_autolink(&r->scan, &link.url, &link.is_email)) {
        link.text_end = (uint32_t)r->scan.at - 1;
        if (add_token(r, MARKUP, start, 1))
            add_link(r, last_token(r), &link);
        add_token(r, MARKUP, r->scan.at - 1, 1);
        return;
    }
    if (peg__md_scan_html(&r->scan))
        add_token(r, CHARACTER, start, r->scan.at - start); /* <br> ends a line */
    else
        r->scan.at++;
}

static void read_bare_url(struct reader *r)
{
    const size_t start = r->scan.at;
    struct peg__md_link link = {.kind = PEG__MD_AUTOLINK, .text = (uint32_t)start};

    if ((start && peg__md_is_alnum(byte_at(r, start - 1))) ||
        !peg__md_scan_bare_url(&r->scan, &link.url)) {
        r->scan.at++;
        return;
    }
    link.text_end = (uint32_t)r->scan.at;
    if (add_token(r, MARKUP, start, 0))
        add_link(r, last_token(r), &link);
}

static void read_escape(struct reader *r)
{
    const char next = byte_at(r, r->scan.at + 1);

    if (!peg__md_is_punctuation(next) && next != '\n') {
        r->scan.at++;
        return;
    }
    add_token(r, MARKUP, r->scan.at, 1);
    r->scan.at += 2;
}

static void read_entity(struct reader *r)
{
    const size_t len = peg__md_entity(peg__str_from(r->in->text, r->scan.at), NULL);

    if (len)
        add_token(r, CHARACTER, r->scan.at, len);
    r->scan.at += len ? len : 1;
}

static void read_one(struct reader *r)
{
    switch (byte_at(r, r->scan.at)) {
    case '\\':
        read_escape(r);
        break;
    case '`':
        read_code(r);
        break;
    case '*':
    case '_':
    case '~':
        read_emphasis(r);
        break;
    case '!':
        if (byte_at(r, r->scan.at + 1) == '[')
            open_bracket(r, 2);
        else
            r->scan.at++;
        break;
    case '[':
        open_bracket(r, 1);
        break;
    case ']':
        close_bracket(r);
        break;
    case '<':
        read_angle(r);
        break;
    case '&':
        read_entity(r);
        break;
    case 'h':
    case 'w':
        read_bare_url(r);
        break;
    default:
        r->scan.at++;
        break;
    }
}

peg_status peg__md_inline_read(struct peg__md_inline *in, peg_str text)
{
    struct reader r = {
        .in = in,
        .scan = {.text = text},
        .bracket = NONE,
        .emphasis = {NONE, NONE, NONE},
    };

    in->text = text;
    in->n_tokens = 0;
    in->n_links = 0;
    in->label.max = PEG_LIMIT_MARKDOWN_INLINE_BYTES;
    while (r.scan.at < text.len && !r.has_failed) {
        read_one(&r);
        r.scan.n_steps++;
    }
    in->n_steps += r.scan.n_steps;
    return r.has_failed ? PEG_ENOMEM : PEG_OK;
}

/* ---- text without markup ------------------------------------------------------------------- */

/* The first token that starts at `at` or behind it. */
static size_t find_token(const struct peg__md_inline *in, size_t at)
{
    size_t low = 0;
    size_t high = in->n_tokens;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (in->tokens[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Spaces at the end of a line mean a line break, and the line break is there. */
static void put_plain(peg_str plain, size_t out_start, struct peg__buf *out)
{
    while (plain.len) {
        const char *lf = memchr(plain.ptr, '\n', plain.len);
        const size_t len = lf ? (size_t)(lf - plain.ptr) : plain.len;

        peg__buf_add(out, plain.ptr, len);
        if (!lf)
            return;
        while (out->len > out_start && peg__md_is_space(out->ptr[out->len - 1]))
            out->len--;
        peg__buf_putc(out, '\n');
        plain = peg__str_from(plain, len + 1);
    }
}

static void put_character(peg_str markup, struct peg__buf *out)
{
    if (markup.ptr[0] == '&')
        peg__md_entity(markup, out);
    else if (markup.len > 3 && (markup.ptr[1] | 0x20) == 'b' && (markup.ptr[2] | 0x20) == 'r' &&
             !peg__md_is_alnum(markup.ptr[3]))
        peg__buf_putc(out, '\n');
}

void peg__md_inline_text(const struct peg__md_inline *in, size_t from, size_t to,
                         struct peg__buf *out)
{
    const size_t out_start = out->len;
    size_t at = from;

    for (size_t i = find_token(in, from); i < in->n_tokens && in->tokens[i].at < to; i++) {
        const struct peg__md_token *t = &in->tokens[i];

        put_plain(peg__strn(in->text.ptr + at, t->at - at), out_start, out);
        if (t->kind == CHARACTER)
            put_character(peg__strn(in->text.ptr + t->at, t->len), out);
        at = t->at + t->n_markup;
    }
    if (at < to)
        put_plain(peg__strn(in->text.ptr + at, to - at), out_start, out);
}

void peg__md_inline_free(struct peg__md_inline *in)
{
    peg__free(in->tokens);
    peg__free(in->links);
    peg__buf_free(&in->label);
    *in = (struct peg__md_inline){0};
}
