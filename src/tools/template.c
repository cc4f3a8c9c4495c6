/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words with placeholders: read once, rendered for each call. What a value may do to a command line
 * is decided here. It is never split and never read again, so quotes, `$(...)` and newlines are
 * bytes; what remains is a value that begins with '-', which a program would take for an option.
 */

#include "tools/template.h"

#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "json/json.h"

/* ---- reading --------------------------------------------------------------------------------- */

struct word_reader {
    struct peg__arena *arena;
    const char *at;
    const struct peg__piece **end; /* where the next piece goes */
    const char *fault;             /* static; NULL: none */
};

static bool add_piece(struct word_reader *r, struct peg__piece piece)
{
    struct peg__piece *copy = peg__arena_alloc(r->arena, sizeof(*copy));

    if (!copy)
        return false;
    *copy = piece;
    *r->end = copy;
    r->end = &copy->next;
    return true;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_name_rest(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

/* The bytes of the placeholder that begins here; 0: none does. Its name is in *ret_name. */
static size_t placeholder_len(const char *at, peg_str *ret_name)
{
    const char *name = at + 1;
    size_t n = 0;

    if (*at != '{')
        return 0;
    if (*name == '?' || *name == '-')
        name++;
    if (!is_name_start(*name))
        return 0;
    while (is_name_rest(name[n]))
        n++;
    *ret_name = peg__strn(name, n);
    return name[n] == '}' ? (size_t)(name + n + 1 - at) : 0;
}

/* Up to the next placeholder. {{name}} is the text {name}; any other brace is itself: awk, jq,
 * regular expressions and templates of other programs are full of them. False: out of memory. */
static bool read_text(struct word_reader *r)
{
    char *text = peg__arena_alloc(r->arena, strlen(r->at) + 1);
    peg_str name;
    size_t n = 0;

    if (!text)
        return false;
    while (*r->at && !placeholder_len(r->at, &name)) {
        const size_t len = *r->at == '{' ? placeholder_len(r->at + 1, &name) : 0;

        if (len && r->at[1 + len] == '}') {
            memcpy(text + n, r->at + 1, len);
            n += len;
            r->at += len + 2;
        } else {
            text[n++] = *r->at++;
        }
    }
    return n == 0 ||
           add_piece(r, (struct peg__piece){.kind = PEG__PIECE_TEXT, .text = peg__strn(text, n)});
}

/* Sentences about it go into a prompt. */
enum { MEMBER_BYTES = 256 };

static bool read_placeholder(struct word_reader *r)
{
    struct peg__piece piece = {.kind = PEG__PIECE_MEMBER, .takes_dash = r->at[1] == '-'};
    peg_str name;
    const size_t len = placeholder_len(r->at, &name);

    if (name.len > MEMBER_BYTES) {
        r->fault = "the name of a member in a placeholder has at most 256 bytes: choose a shorter";
        return true;
    }
    if (r->at[1] == '?')
        piece.kind = PEG__PIECE_CONDITION;
    piece.text = peg__strn(peg__arena_copy(r->arena, name), name.len);
    r->at += len;
    return piece.text.ptr && add_piece(r, piece);
}

static peg_status parse_word(const struct peg__word *word, struct peg__arena *arena,
                             struct peg__template_word *ret_word, const char **ret_fault)
{
    struct word_reader r = {.arena = arena, .at = word->text, .end = &ret_word->pieces};

    ret_word->group = word->group;
    while (*r.at && !r.fault) {
        if (!read_text(&r) || (*r.at && !read_placeholder(&r)))
            return PEG_ENOMEM;
    }
    for (const struct peg__piece *p = ret_word->pieces; p && !r.fault; p = p->next) {
        if (p->kind == PEG__PIECE_CONDITION && (p != ret_word->pieces || p->next || !word->group))
            r.fault = "a placeholder with ? is a word of its own in a group, as in [\"--verbose\", "
                      "\"{?verbose}\"]";
    }
    *ret_fault = r.fault;
    return r.fault ? PEG_EPARSE : PEG_OK;
}

peg_status peg__template_parse(const struct peg__word *words, size_t n, struct peg__arena *arena,
                               struct peg__template *ret_template,
                               struct peg__word_fault *ret_fault)
{
    struct peg__template_word *parsed = peg__arena_alloc_zero(arena, (n + 1) * sizeof(*parsed));
    peg_status status = parsed ? PEG_OK : PEG_ENOMEM;

    for (size_t i = 0; !status && i < n; i++) {
        ret_fault->word = i;
        status = parse_word(&words[i], arena, &parsed[i], &ret_fault->message);
    }
    if (!status)
        *ret_template = (struct peg__template){.words = parsed, .n_words = n};
    return status;
}

bool peg__template_has_members(const struct peg__template *t)
{
    for (size_t i = 0; i < t->n_words; i++) {
        for (const struct peg__piece *p = t->words[i].pieces; p; p = p->next) {
            if (p->kind != PEG__PIECE_TEXT)
                return true;
        }
    }
    return false;
}

/* ---- rendering ------------------------------------------------------------------------------- */

struct rendering {
    const peg_json *args;
    struct peg__arena *arena;
    struct peg__buf *problem;
    const char **argv; /* with room for PEG_LIMIT_COMMAND_ARGS or what there can be */
    size_t n;
    size_t n_bytes;
    bool is_past_options; /* a word "--" of the manifest stands before */
};

#define REFUSE(r, ...) (peg__buf_printf((r)->problem, __VA_ARGS__), PEG_EINVAL)
#define NAME(piece) (int)(piece)->text.len, (piece)->text.ptr

static const peg_json *value_of(const struct rendering *r, const struct peg__piece *piece)
{
    return peg_json_get_str(r->args, piece->text);
}

static bool is_absent(const struct rendering *r, const struct peg__piece *piece)
{
    const peg_json *value = value_of(r, piece);

    if (piece->kind == PEG__PIECE_TEXT)
        return false;
    if (piece->kind == PEG__PIECE_CONDITION)
        return !value || !peg_json_is_true(value);
    return peg_json_kind_of(value) == PEG_JSON_NULL ||
           (value->kind == PEG_JSON_ARRAY && peg_json_len(value) == 0);
}

static bool vanishes(const struct rendering *r, const struct peg__template *t, unsigned group)
{
    for (size_t i = 0; group && i < t->n_words; i++) {
        if (t->words[i].group != group)
            continue;
        for (const struct peg__piece *p = t->words[i].pieces; p; p = p->next) {
            if (is_absent(r, p))
                return true;
        }
    }
    return false;
}

static peg_status put_value(const struct rendering *r, const struct peg__piece *piece,
                            const peg_json *value, struct peg__buf *word)
{
    int64_t whole;

    if (!value)
        return REFUSE(r, "'%.*s' is missing; add it", NAME(piece));
    switch ((peg_json_kind)value->kind) {
    case PEG_JSON_STRING:
        if (memchr(value->u.ptr, '\0', value->len))
            return REFUSE(r, "'%.*s' has a NUL, which no argument of a command can: take it out",
                          NAME(piece));
        peg__buf_str(word, peg_json_str(value));
        return PEG_OK;
    case PEG_JSON_INTEGER:
    case PEG_JSON_DECIMAL:
        /* 3.0 is an integer for the schema, and 3 for the command. */
        if (peg_json_int64(value, &whole))
            peg__buf_printf(word, "%lld", (long long)whole);
        else
            peg__json_write(value, PEG_JSON_COMPACT, word);
        return PEG_OK;
    case PEG_JSON_BOOL:
        peg__buf_puts(word, peg_json_is_true(value) ? "true" : "false");
        return PEG_OK;
    case PEG_JSON_NULL:
    case PEG_JSON_ARRAY:
    case PEG_JSON_OBJECT:
        break;
    }
    return REFUSE(r,
                  "'%.*s' is %s, which no argument of a command can be: give a text, a number "
                  "or a boolean",
                  NAME(piece), peg_json_kind_name(value->kind));
}

/* `item`: of the array among its pieces, if there is one. */
static peg_status put_pieces(const struct rendering *r, const struct peg__template_word *from,
                             size_t item, struct peg__buf *word)
{
    peg_status status = PEG_OK;

    for (const struct peg__piece *p = from->pieces; p && !status; p = p->next) {
        const peg_json *value = p->kind == PEG__PIECE_MEMBER ? value_of(r, p) : NULL;

        if (p->kind == PEG__PIECE_TEXT)
            peg__buf_str(word, p->text);
        else if (value && value->kind == PEG_JSON_ARRAY)
            status = put_value(r, p, peg_json_at(value, item), word);
        else
            status = put_value(r, p, value, word);
    }
    return status;
}

/* A text of the manifest at its beginning says what the word is; else its values do. */
static bool may_be_option(const struct rendering *r, const struct peg__template_word *from,
                          const struct peg__buf *word)
{
    const struct peg__piece *first = from->pieces;

    return first && first->kind == PEG__PIECE_MEMBER && !first->takes_dash && !r->is_past_options &&
           word->len && word->ptr[0] == '-';
}

static peg_status check_rendered(const struct rendering *r, const struct peg__template_word *from,
                                 const struct peg__buf *word)
{
    const struct peg__piece *member = from->pieces;

    while (member && member->kind != PEG__PIECE_MEMBER)
        member = member->next;
    if (word->status == PEG_ENOMEM)
        return PEG_ENOMEM;
    if (word->status)
        return REFUSE(r, "'%.*s' is too long: an argument of a command has at most %d bytes",
                      member ? (int)member->text.len : 4, member ? member->text.ptr : "text",
                      PEG_LIMIT_COMMAND_ARG_BYTES);
    if (member && may_be_option(r, from, word))
        return REFUSE(r,
                      "'%.*s' must not begin with '-', as the command would take it for an "
                      "option: write it in another way, a file as ./-name",
                      NAME(member));
    return PEG_OK;
}

static peg_status render_once(struct rendering *r, const struct peg__template_word *from,
                              size_t item)
{
    struct peg__buf word = PEG__BUF(PEG_LIMIT_COMMAND_ARG_BYTES);
    peg_status status = put_pieces(r, from, item, &word);

    if (!status)
        status = check_rendered(r, from, &word);
    r->n_bytes += word.len + 1;
    if (!status && (r->n >= PEG_LIMIT_COMMAND_ARGS || r->n_bytes > PEG_LIMIT_COMMAND_BYTES))
        status = REFUSE(r,
                        "the arguments are too many or too long: a command line has at most %d "
                        "words and %d bytes",
                        PEG_LIMIT_COMMAND_ARGS, PEG_LIMIT_COMMAND_BYTES);
    if (!status) {
        r->argv[r->n] = peg__arena_copy(r->arena, peg__buf_view(&word));
        status = r->argv[r->n++] ? PEG_OK : PEG_ENOMEM;
    }
    peg__buf_free(&word);
    return status;
}

static peg_status render_word(struct rendering *r, const struct peg__template_word *from)
{
    size_t times = 1;
    const struct peg__piece *array = NULL;
    peg_status status = PEG_OK;

    if (from->pieces && from->pieces->kind == PEG__PIECE_CONDITION)
        return PEG_OK;
    for (const struct peg__piece *p = from->pieces; p; p = p->next) {
        const peg_json *value = p->kind == PEG__PIECE_MEMBER ? value_of(r, p) : NULL;

        if (!value || value->kind != PEG_JSON_ARRAY)
            continue;
        if (array)
            return REFUSE(r,
                          "'%.*s' and '%.*s' are both arrays: only one may be, as they share a "
                          "word of the command",
                          NAME(array), NAME(p));
        array = p;
        times = peg_json_len(value);
    }
    for (size_t i = 0; i < times && !status; i++)
        status = render_once(r, from, i);
    if (from->pieces && !from->pieces->next && peg__str_is(from->pieces->text, "--") &&
        from->pieces->kind == PEG__PIECE_TEXT)
        r->is_past_options = true;
    return status;
}

/* As many words as there can be; more than the limit are refused before they are written. */
static size_t count_room(const struct rendering *r, const struct peg__template *t)
{
    size_t n = t->n_words;

    for (size_t i = 0; i < t->n_words; i++) {
        for (const struct peg__piece *p = t->words[i].pieces; p; p = p->next) {
            const peg_json *value = p->kind == PEG__PIECE_MEMBER ? value_of(r, p) : NULL;

            if (value && value->kind == PEG_JSON_ARRAY)
                n += peg_json_len(value);
        }
    }
    return n < PEG_LIMIT_COMMAND_ARGS ? n : PEG_LIMIT_COMMAND_ARGS;
}

peg_status peg__template_render(const struct peg__template *t, const peg_json *args,
                                struct peg__arena *arena, const char *const **ret_argv,
                                struct peg__buf *problem)
{
    struct rendering r = {.args = args, .arena = arena, .problem = problem};
    peg_status status = PEG_OK;

    r.argv = peg__arena_alloc_zero(arena, (count_room(&r, t) + 1) * sizeof(*r.argv));
    if (!r.argv)
        return PEG_ENOMEM;
    for (size_t i = 0; i < t->n_words && !status; i++) {
        if (!vanishes(&r, t, t->words[i].group))
            status = render_word(&r, &t->words[i]);
    }
    if (!status)
        *ret_argv = r.argv;
    return status;
}
