/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/search/text.h"

#include "base/text/str.h"

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

static bool is_word_byte(char c)
{
    return peg__is_alnum(c) || (unsigned char)c >= 0x80;
}

/* Punctuation beyond ASCII, in two or three bytes: quotes, dashes, dots, those of Chinese. */
static size_t wide_separator_at(peg_str text, size_t i)
{
    const unsigned char *at = (const unsigned char *)text.ptr + i;
    const size_t left = text.len - i;

    if (left >= 2 && at[0] == 0xC2)
        return 2; /* U+0080 to U+00BF */
    if (left < 3)
        return 0;
    if (at[0] == 0xE2 && (at[1] == 0x80 || at[1] == 0x81))
        return 3; /* U+2000 to U+207F */
    if (at[0] == 0xE3 && at[1] == 0x80)
        return 3; /* U+3000 to U+303F */
    if (at[0] == 0xEF && at[1] == 0xBC && (at[2] <= 0x8F || (at[2] >= 0x9A && at[2] <= 0xA0)))
        return 3; /* U+FF00 to U+FF0F, U+FF1A to U+FF20 */
    return 0;
}

/* How many bytes of text[i..] separate words; 0: a word goes on. */
static size_t separator_at(peg_str text, size_t i)
{
    if (!is_word_byte(text.ptr[i]))
        return 1;
    return (unsigned char)text.ptr[i] < 0x80 ? 0 : wide_separator_at(text, i);
}

bool gw_next_word(peg_str *rest, peg_str *ret_word)
{
    size_t start = 0;
    size_t end;
    size_t n;

    while (start < rest->len && (n = separator_at(*rest, start)))
        start += n;
    end = start;
    while (end < rest->len && !separator_at(*rest, end))
        end++;
    *ret_word = peg__strn(rest->ptr + start, end - start);
    *rest = peg__str_from(*rest, end);
    return end > start;
}

/* Does a piece begin at i? Between letters and digits, behind a small letter, and where a run of
 * capitals ends. */
static bool is_edge(peg_str word, size_t i)
{
    if (peg__is_digit(word.ptr[i]) != peg__is_digit(word.ptr[i - 1]))
        return true;
    if (!peg__is_upper(word.ptr[i]))
        return false;
    if (!peg__is_upper(word.ptr[i - 1]))
        return true;
    return i + 1 < word.len && word.ptr[i + 1] >= 'a' && word.ptr[i + 1] <= 'z';
}

static size_t piece_len(peg_str word)
{
    size_t end = 1;

    while (end < word.len && !is_edge(word, end))
        end++;
    return end;
}

static peg_str cut_word(peg_str word)
{
    if (word.len > GW_WORD_BYTES)
        word.len = peg__utf8_cut(word.ptr, GW_WORD_BYTES);
    return word;
}

bool gw_next_token(struct gw_tokens *tokens, peg_str *ret_token)
{
    for (;;) {
        const size_t start = tokens->len - tokens->word.len;
        const bool is_number = tokens->word.len && peg__is_digit(tokens->word.ptr[0]);

        if (tokens->word.len) {
            tokens->word = peg__str_from(tokens->word, piece_len(tokens->word));
            *ret_token = peg__strn(tokens->folded + start, tokens->len - tokens->word.len - start);
            tokens->has_pieces = ret_token->len < tokens->len;
            if (!tokens->has_pieces || !is_number)
                return true;
        } else if (tokens->has_pieces) {
            tokens->has_pieces = false;
            *ret_token = peg__strn(tokens->folded, tokens->len);
            return true;
        } else {
            if (!gw_next_word(&tokens->rest, &tokens->word))
                return false;
            tokens->word = cut_word(tokens->word);
            tokens->len = tokens->word.len;
            gw_fold(tokens->word, tokens->folded);
        }
    }
}
