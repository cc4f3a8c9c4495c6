/* SPDX-License-Identifier: Apache-2.0 */

/* Stems by libstemmer, and the words that say nothing about a tool. */

#include <libstemmer.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/search/internal.h"

static const char english[] = "english";

/* Sorted. Pieces of "don't" and "they've" are among them, as apostrophes end words. */
static const char *const stop_words[] = {
    "a",       "about",  "above",   "after",      "again",  "against",   "all",      "am",
    "an",      "and",    "any",     "are",        "aren",   "as",        "at",       "be",
    "because", "been",   "before",  "being",      "below",  "between",   "both",     "but",
    "by",      "can",    "cannot",  "could",      "couldn", "d",         "did",      "didn",
    "do",      "does",   "doesn",   "doing",      "don",    "down",      "during",   "each",
    "few",     "for",    "from",    "had",        "hadn",   "has",       "hasn",     "have",
    "haven",   "having", "he",      "her",        "here",   "hers",      "herself",  "him",
    "himself", "his",    "how",     "i",          "if",     "in",        "into",     "is",
    "isn",     "it",     "its",     "itself",     "just",   "let",       "ll",       "m",
    "me",      "might",  "more",    "most",       "must",   "my",        "myself",   "no",
    "nor",     "not",    "now",     "of",         "off",    "on",        "once",     "only",
    "or",      "other",  "ought",   "our",        "ours",   "ourselves", "out",      "over",
    "own",     "please", "re",      "s",          "same",   "shall",     "she",      "should",
    "shouldn", "so",     "some",    "such",       "t",      "than",      "that",     "the",
    "their",   "theirs", "them",    "themselves", "then",   "there",     "these",    "they",
    "this",    "those",  "through", "to",         "too",    "under",     "until",    "up",
    "ve",      "very",   "was",     "wasn",       "we",     "were",      "weren",    "what",
    "when",    "where",  "which",   "while",      "who",    "whom",      "why",      "will",
    "with",    "would",  "wouldn",  "you",        "your",   "yours",     "yourself", "yourselves",
};

/* Nouns whose stem isn't their verb's: "conversion" and "convert". */
static const struct {
    const char *noun;
    const char *verb;
} endings[] = {
    {"version", "vert"},  {"scription", "scribe"}, {"olution", "olve"},  {"duction", "duce"},
    {"ception", "ceive"}, {"clusion", "clude"},    {"cision", "cide"},   {"ivision", "ivide"},
    {"tension", "tend"},  {"pansion", "pand"},     {"bmission", "bmit"}, {"rmission", "rmit"},
};

enum { N_STOP_WORDS = sizeof(stop_words) / sizeof(stop_words[0]) };

struct gw_stemmer {
    struct sb_stemmer *stemmer; /* NULL: words stay as they are */
    bool is_english;
    char word[GW_WORD_BYTES];
};

/* ---- names ---- */

bool gw_language_find(const char *name, struct gw_language *ret_language)
{
    if (strcmp(name, "none") == 0) {
        *ret_language = (struct gw_language){.stemmer = NULL};
        return true;
    }
    for (const char **known = sb_stemmer_list(); *known; known++) {
        if (strcmp(name, *known) == 0) {
            *ret_language = (struct gw_language){.stemmer = *known};
            return true;
        }
    }
    return false;
}

void gw_language_names(char *ret_text, size_t size)
{
    size_t len = (size_t)snprintf(ret_text, size, "none");

    for (const char **known = sb_stemmer_list(); *known && len < size; known++)
        len += (size_t)snprintf(ret_text + len, size - len, ", %s", *known);
}

/* ---- stems ---- */

struct gw_stemmer *gw_stemmer_new(struct gw_language language)
{
    struct gw_stemmer *stemmer = peg__alloc_zero(1, sizeof(*stemmer));

    if (!stemmer || !language.stemmer)
        return stemmer;
    stemmer->is_english = strcmp(language.stemmer, english) == 0;
    stemmer->stemmer = sb_stemmer_new(language.stemmer, NULL);
    return stemmer->stemmer ? stemmer : gw_stemmer_free(stemmer);
}

struct gw_stemmer *gw_stemmer_free(struct gw_stemmer *stemmer)
{
    if (stemmer)
        sb_stemmer_delete(stemmer->stemmer);
    peg__free(stemmer);
    return NULL;
}

static int compare_stop_word(const void *key, const void *item)
{
    const peg_str *word = key;
    const char *stop = *(const char *const *)item;
    const int order = strncmp(word->ptr, stop, word->len);

    return order ? order : -(stop[word->len] != '\0');
}

static bool is_stop_word(peg_str word)
{
    return bsearch(&word, stop_words, N_STOP_WORDS, sizeof(stop_words[0]), compare_stop_word);
}

/* The verb of a noun, written into the stemmer; other words are returned as they are. */
static peg_str find_verb(struct gw_stemmer *stemmer, peg_str word)
{
    const size_t plural = word.len > 1 && word.ptr[word.len - 1] == 's';
    const peg_str noun = peg__strn(word.ptr, word.len - plural);

    if (noun.len < 2 || noun.ptr[noun.len - 1] != 'n' || noun.ptr[noun.len - 2] != 'o')
        return word;
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        const size_t len = strlen(endings[i].noun);
        const size_t verb_len = strlen(endings[i].verb);

        if (noun.len > len && memcmp(noun.ptr + noun.len - len, endings[i].noun, len) == 0) {
            memcpy(stemmer->word, noun.ptr, noun.len - len);
            memcpy(stemmer->word + noun.len - len, endings[i].verb, verb_len);
            return peg__strn(stemmer->word, noun.len - len + verb_len);
        }
    }
    return word;
}

peg_str gw_stemmer_stem(struct gw_stemmer *stemmer, peg_str folded)
{
    const sb_symbol *stem;

    if (!stemmer->stemmer)
        return folded;
    if (stemmer->is_english) {
        if (is_stop_word(folded))
            return peg__str("");
        folded = find_verb(stemmer, folded);
    }
    stem = sb_stemmer_stem(stemmer->stemmer, (const sb_symbol *)folded.ptr, (int)folded.len);
    if (!stem)
        return (peg_str){.ptr = NULL};
    return peg__strn((const char *)stem, (size_t)sb_stemmer_length(stemmer->stemmer));
}
