/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many tokens a text has, by encoding. One table for the process, fixed in size, so that
 * nothing is allocated. The lock is not held while a host's function counts.
 */

#include <pthread.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/text/str.h"
#include "core/artifact/artifact.h"

/* Tokenizers of English text and code make a token of four bytes, Claude's of 3.5. */
static size_t per_4_bytes(peg_str text, void *user)
{
    (void)user;
    return text.len / 4 + (text.len % 4 != 0);
}

static size_t per_3_5_bytes(peg_str text, void *user)
{
    (void)user;
    return text.len / 7 * 2 + (text.len % 7 * 2 + 6) / 7;
}

static const struct {
    const char *name;
    peg_token_fn fn;
} built_in[] = {
    {"gpt2", per_4_bytes},      {"r50k_base", per_4_bytes},   {"p50k_base", per_4_bytes},
    {"p50k_edit", per_4_bytes}, {"cl100k_base", per_4_bytes}, {"o200k_base", per_4_bytes},
    {"gemini", per_4_bytes},    {"llama2", per_4_bytes},      {"claude", per_3_5_bytes},
};

enum {
    N_BUILT_IN = sizeof(built_in) / sizeof(built_in[0]),
    N_OWN_MAX = PEG_LIMIT_TOKEN_ENCODINGS - N_BUILT_IN,
};

/* What hosts registered: in `replaced` at the place of the built-in one, else in `own`. */
struct estimator {
    char name[PEG__TOKEN_COUNTER_NAME];
    peg_token_fn fn; /* NULL: none */
    void *user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct estimator replaced[N_BUILT_IN];
static struct estimator own[N_OWN_MAX];
static size_t n_own;

static bool is_encoding_name(const char *name)
{
    size_t len = 0;

    if (!name)
        return false;
    for (; name[len]; len++) {
        const char c = name[len];
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (len + 1 == PEG__TOKEN_COUNTER_NAME || (!is_plain && !strchr("_.-", c)))
            return false;
    }
    return len > 0;
}

/* N_BUILT_IN if it is none of them. */
static size_t find_built_in(const char *name)
{
    size_t i = 0;

    while (i < N_BUILT_IN && strcmp(built_in[i].name, name) != 0)
        i++;
    return i;
}

/* n_own if there is none. */
static size_t find_own(const char *name)
{
    size_t i = 0;

    while (i < n_own && strcmp(own[i].name, name) != 0)
        i++;
    return i;
}

static void set(struct estimator *estimator, const char *name, peg_token_fn fn, void *user)
{
    memcpy(estimator->name, name, strlen(name) + 1);
    estimator->fn = fn;
    estimator->user = user;
}

static void remove_own(size_t i)
{
    if (i == n_own)
        return;
    n_own--;
    memmove(&own[i], &own[i + 1], (n_own - i) * sizeof(own[0]));
}

/* Under the lock; false if the table is full. */
static bool put_counter(const char *encoding, peg_token_fn fn, void *user)
{
    const size_t built = find_built_in(encoding);
    const size_t i = find_own(encoding);

    if (built < N_BUILT_IN) {
        set(&replaced[built], encoding, fn, user);
        return true;
    }
    if (!fn) {
        remove_own(i);
        return true;
    }
    if (i == N_OWN_MAX)
        return false;
    set(&own[i], encoding, fn, user);
    if (i == n_own)
        n_own++;
    return true;
}

peg_status peg_token_counter_register(const char *encoding, peg_token_fn fn, void *user,
                                      peg_error *reterr)
{
    bool is_put;

    if (!is_encoding_name(encoding))
        return peg__fail(reterr, PEG_EINVAL, "E_INVALID_ARGUMENT",
                         "'%.64s' is no name of an encoding: it must be [a-z0-9_.-]{1,64}",
                         encoding ? encoding : "");
    pthread_mutex_lock(&lock);
    is_put = put_counter(encoding, fn, user);
    pthread_mutex_unlock(&lock);
    if (!is_put)
        return peg__fail(reterr, PEG_ELIMIT, "E_REGISTRY_FULL",
                         "there are %d encodings already (token_encodings); remove one to register "
                         "'%s'",
                         PEG_LIMIT_TOKEN_ENCODINGS, encoding);
    return PEG_OK;
}

size_t peg__token_counter_names(char ret_names[PEG_LIMIT_TOKEN_ENCODINGS][PEG__TOKEN_COUNTER_NAME])
{
    size_t n = 0;

    for (; n < N_BUILT_IN; n++)
        memcpy(ret_names[n], built_in[n].name, strlen(built_in[n].name) + 1);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_own; i++)
        memcpy(ret_names[n++], own[i].name, PEG__TOKEN_COUNTER_NAME);
    pthread_mutex_unlock(&lock);
    return n;
}

static peg_status fail_unknown(const char *encoding, peg_error *reterr)
{
    char names[PEG_LIMIT_TOKEN_ENCODINGS][PEG__TOKEN_COUNTER_NAME];
    const size_t n = peg__token_counter_names(names);
    char list[PEG_LIMIT_TOKEN_ENCODINGS * (PEG__TOKEN_COUNTER_NAME + 1)];
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t name_len = strlen(names[i]);

        memcpy(list + len, i ? ", " : "", i ? 2 : 0);
        len += i ? 2 : 0;
        memcpy(list + len, names[i], name_len);
        len += name_len;
    }
    list[len] = '\0';
    return peg__fail(reterr, PEG_ENOTFOUND, "E_TOKENS_UNKNOWN",
                     "there is no encoding '%.64s'; there are %s", encoding ? encoding : "", list);
}

static bool find_counter(const char *encoding, peg_token_fn *ret_fn, void **ret_user)
{
    const size_t built = find_built_in(encoding);
    const struct estimator *found = NULL;
    size_t i;

    pthread_mutex_lock(&lock);
    i = find_own(encoding);
    if (built < N_BUILT_IN && replaced[built].fn)
        found = &replaced[built];
    else if (i < n_own)
        found = &own[i];
    if (found) {
        *ret_fn = found->fn;
        *ret_user = found->user;
    } else if (built < N_BUILT_IN) {
        *ret_fn = built_in[built].fn;
        *ret_user = NULL;
    }
    pthread_mutex_unlock(&lock);
    return found || built < N_BUILT_IN;
}

peg_status peg_token_count_estimate(const char *encoding, peg_str text, size_t *ret_n,
                                    peg_error *reterr)
{
    peg_token_fn fn;
    void *user;
    size_t n;

    if (!encoding || !find_counter(encoding, &fn, &user))
        return fail_unknown(encoding, reterr);
    n = fn(text, user);
    /* A tokenizer that fails must not fail what only wants to know how much there is. */
    *ret_n = n == SIZE_MAX ? per_4_bytes(text, NULL) : n;
    return PEG_OK;
}
