/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/search_text.h"

#include "base/str.h"

/* ---- finding -----------------------------------------------------------------------------------
 */

/* From what texts have often to what they have hardly ever. */
static unsigned rareness(char c)
{
    static const char often[] = " etaoinsrhldcumfpgwybvkxjqz";
    const char *found = memchr(often, c, sizeof(often) - 1);

    return found ? (unsigned)(found - often) : sizeof(often);
}

struct gw_needle gw_needle_of(peg_str folded)
{
    struct gw_needle needle = {.text = folded};

    for (size_t i = 1; i < folded.len; i++) {
        if (rareness(folded.ptr[i]) > rareness(folded.ptr[needle.anchor]))
            needle.anchor = i;
    }
    return needle;
}

bool gw_needle_is_in(const struct gw_needle *needle, peg_str folded)
{
    const char *end = folded.ptr + folded.len;
    const char *at = folded.ptr + needle->anchor;
    const size_t behind = needle->text.len - needle->anchor;

    while (at < end && (size_t)(end - at) >= behind) {
        at = memchr(at, needle->text.ptr[needle->anchor], (size_t)(end - at) - behind + 1);
        if (!at)
            return false;
        if (memcmp(at - needle->anchor, needle->text.ptr, needle->text.len) == 0)
            return true;
        at++;
    }
    return false;
}

/* ---- words -------------------------------------------------------------------------------------
 */

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

bool gw_is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || is_capital(c) ||
           (unsigned char)c >= 0x80;
}

bool gw_next_word(peg_str *rest, peg_str *ret_word)
{
    size_t start = 0;
    size_t end;

    while (start < rest->len && !gw_is_word_byte(rest->ptr[start]))
        start++;
    end = start;
    while (end < rest->len && gw_is_word_byte(rest->ptr[end]))
        end++;
    *ret_word = peg__strn(rest->ptr + start, end - start);
    *rest = peg__str_from(*rest, end);
    return end > start;
}

/* Does a piece begin at i? After a small letter or a digit, or where a run of capitals ends. */
static bool is_edge(peg_str word, size_t i)
{
    if (!is_capital(word.ptr[i]))
        return false;
    if (!is_capital(word.ptr[i - 1]))
        return true;
    return i + 1 < word.len && word.ptr[i + 1] >= 'a' && word.ptr[i + 1] <= 'z';
}

bool gw_next_piece(peg_str *word, peg_str *ret_piece)
{
    size_t end = 1;

    if (word->len == 0)
        return false;
    while (end < word->len && !is_edge(*word, end))
        end++;
    *ret_piece = peg__strn(word->ptr, end);
    *word = peg__str_from(*word, end);
    return true;
}

peg_str gw_cut_word(peg_str word)
{
    if (word.len > GW_WORD_BYTES)
        word.len = peg__utf8_cut(word.ptr, GW_WORD_BYTES);
    return word;
}

/* ---- stems -------------------------------------------------------------------------------------
 */

static bool ends_with(peg_str word, const char *end)
{
    const size_t n = strlen(end);

    return word.len > n && memcmp(word.ptr + word.len - n, end, n) == 0;
}

static bool has_vowel(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strchr("aeiouy", text[i]))
            return true;
    }
    return false;
}

/* "cities" becomes "city", "boxes" "box", "tools" "tool"; "class", "status", "analysis" stay. */
static size_t cut_plural(char *word, size_t n)
{
    const peg_str text = {word, n};

    if (n > 4 && ends_with(text, "ies")) {
        word[n - 3] = 'y';
        return n - 2;
    }
    if (n > 4 && (ends_with(text, "sses") || ends_with(text, "xes") || ends_with(text, "zes") ||
                  ends_with(text, "ches") || ends_with(text, "shes")))
        return n - 2;
    if (n > 3 && ends_with(text, "s") && !ends_with(text, "ss") && !ends_with(text, "us") &&
        !ends_with(text, "is"))
        return n - 1;
    return n;
}

/* "running" and "planned" lose a letter more. */
static size_t cut_double(const char *word, size_t n)
{
    const bool is_double = n > 3 && word[n - 1] == word[n - 2];

    return is_double && !strchr("aeiouslz", word[n - 1]) ? n - 1 : n;
}

static size_t cut_verb(const char *word, size_t n)
{
    const peg_str text = {word, n};

    if (n > 5 && ends_with(text, "ing") && has_vowel(word, n - 3))
        return cut_double(word, n - 3);
    if (n > 4 && ends_with(text, "ed") && has_vowel(word, n - 2))
        return cut_double(word, n - 2);
    return n;
}

size_t gw_stem(peg_str folded, char ret_stem[GW_WORD_BYTES])
{
    size_t n = folded.len < GW_WORD_BYTES ? folded.len : GW_WORD_BYTES;

    memcpy(ret_stem, folded.ptr, n);
    if (folded.len > GW_WORD_BYTES)
        return n;
    n = cut_plural(ret_stem, n);
    n = cut_verb(ret_stem, n);
    if (n > 3 && ret_stem[n - 1] == 'e')
        n--;
    return n;
}

size_t gw_stem_prefix(peg_str stem)
{
    return stem.len > 1 && stem.ptr[stem.len - 1] == 'y' ? stem.len - 1 : stem.len;
}
