/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "gateway/search/internal.h"
#include "json/json.h"

/* ---- finding ---- */

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

/* ---- words ---- */

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

bool gw_next_keyword(struct gw_keywords *keywords, peg_str *ret_keyword)
{
    for (;;) {
        const size_t start = keywords->len - keywords->word.len;
        const bool is_number = keywords->word.len && peg__is_digit(keywords->word.ptr[0]);

        if (keywords->word.len) {
            keywords->word = peg__str_from(keywords->word, piece_len(keywords->word));
            *ret_keyword =
                peg__strn(keywords->folded + start, keywords->len - keywords->word.len - start);
            keywords->has_pieces = ret_keyword->len < keywords->len;
            if (!keywords->has_pieces || !is_number)
                return true;
        } else if (keywords->has_pieces) {
            keywords->has_pieces = false;
            *ret_keyword = peg__strn(keywords->folded, keywords->len);
            return true;
        } else {
            if (!gw_next_word(&keywords->rest, &keywords->word))
                return false;
            keywords->word = cut_word(keywords->word);
            keywords->len = keywords->word.len;
            gw_fold(keywords->word, keywords->folded);
        }
    }
}

/*
 * Small letters of capital ones: those that Unicode has beyond ASCII and whose small letters take
 * as many bytes of UTF-8, in all alphabets of its first 65,536 characters. And the final sigma,
 * whose capital is that of every other one. (The rows were made with Python's str.lower(),
 * Unicode 14.)
 */

static const struct {
    uint16_t first;
    uint16_t last;
    uint16_t step; /* 2: every other one, with the small letters in between */
    int32_t to_small;
} rows[] = {
    {0xC0, 0xD6, 1, 32},        {0xD8, 0xDE, 1, 32},         {0x100, 0x12E, 2, 1},
    {0x132, 0x136, 2, 1},       {0x139, 0x147, 2, 1},        {0x14A, 0x176, 2, 1},
    {0x178, 0x178, 1, -121},    {0x179, 0x17D, 2, 1},        {0x181, 0x181, 1, 210},
    {0x182, 0x184, 2, 1},       {0x186, 0x186, 1, 206},      {0x187, 0x187, 1, 1},
    {0x189, 0x18A, 1, 205},     {0x18B, 0x18B, 1, 1},        {0x18E, 0x18E, 1, 79},
    {0x18F, 0x18F, 1, 202},     {0x190, 0x190, 1, 203},      {0x191, 0x191, 1, 1},
    {0x193, 0x193, 1, 205},     {0x194, 0x194, 1, 207},      {0x196, 0x196, 1, 211},
    {0x197, 0x197, 1, 209},     {0x198, 0x198, 1, 1},        {0x19C, 0x19C, 1, 211},
    {0x19D, 0x19D, 1, 213},     {0x19F, 0x19F, 1, 214},      {0x1A0, 0x1A4, 2, 1},
    {0x1A6, 0x1A6, 1, 218},     {0x1A7, 0x1A7, 1, 1},        {0x1A9, 0x1A9, 1, 218},
    {0x1AC, 0x1AC, 1, 1},       {0x1AE, 0x1AE, 1, 218},      {0x1AF, 0x1AF, 1, 1},
    {0x1B1, 0x1B2, 1, 217},     {0x1B3, 0x1B5, 2, 1},        {0x1B7, 0x1B7, 1, 219},
    {0x1B8, 0x1B8, 1, 1},       {0x1BC, 0x1BC, 1, 1},        {0x1C4, 0x1C4, 1, 2},
    {0x1C5, 0x1C5, 1, 1},       {0x1C7, 0x1C7, 1, 2},        {0x1C8, 0x1C8, 1, 1},
    {0x1CA, 0x1CA, 1, 2},       {0x1CB, 0x1DB, 2, 1},        {0x1DE, 0x1EE, 2, 1},
    {0x1F1, 0x1F1, 1, 2},       {0x1F2, 0x1F4, 2, 1},        {0x1F6, 0x1F6, 1, -97},
    {0x1F7, 0x1F7, 1, -56},     {0x1F8, 0x21E, 2, 1},        {0x220, 0x220, 1, -130},
    {0x222, 0x232, 2, 1},       {0x23B, 0x23B, 1, 1},        {0x23D, 0x23D, 1, -163},
    {0x241, 0x241, 1, 1},       {0x243, 0x243, 1, -195},     {0x244, 0x244, 1, 69},
    {0x245, 0x245, 1, 71},      {0x246, 0x24E, 2, 1},        {0x370, 0x372, 2, 1},
    {0x376, 0x376, 1, 1},       {0x37F, 0x37F, 1, 116},      {0x386, 0x386, 1, 38},
    {0x388, 0x38A, 1, 37},      {0x38C, 0x38C, 1, 64},       {0x38E, 0x38F, 1, 63},
    {0x391, 0x3A1, 1, 32},      {0x3A3, 0x3AB, 1, 32},       {0x3C2, 0x3C2, 1, 1},
    {0x3CF, 0x3CF, 1, 8},       {0x3D8, 0x3EE, 2, 1},        {0x3F4, 0x3F4, 1, -60},
    {0x3F7, 0x3F7, 1, 1},       {0x3F9, 0x3F9, 1, -7},       {0x3FA, 0x3FA, 1, 1},
    {0x3FD, 0x3FF, 1, -130},    {0x400, 0x40F, 1, 80},       {0x410, 0x42F, 1, 32},
    {0x460, 0x480, 2, 1},       {0x48A, 0x4BE, 2, 1},        {0x4C0, 0x4C0, 1, 15},
    {0x4C1, 0x4CD, 2, 1},       {0x4D0, 0x52E, 2, 1},        {0x531, 0x556, 1, 48},
    {0x10A0, 0x10C5, 1, 7264},  {0x10C7, 0x10C7, 1, 7264},   {0x10CD, 0x10CD, 1, 7264},
    {0x13A0, 0x13EF, 1, 38864}, {0x13F0, 0x13F5, 1, 8},      {0x1C90, 0x1CBA, 1, -3008},
    {0x1CBD, 0x1CBF, 1, -3008}, {0x1E00, 0x1E94, 2, 1},      {0x1EA0, 0x1EFE, 2, 1},
    {0x1F08, 0x1F0F, 1, -8},    {0x1F18, 0x1F1D, 1, -8},     {0x1F28, 0x1F2F, 1, -8},
    {0x1F38, 0x1F3F, 1, -8},    {0x1F48, 0x1F4D, 1, -8},     {0x1F59, 0x1F5F, 2, -8},
    {0x1F68, 0x1F6F, 1, -8},    {0x1F88, 0x1F8F, 1, -8},     {0x1F98, 0x1F9F, 1, -8},
    {0x1FA8, 0x1FAF, 1, -8},    {0x1FB8, 0x1FB9, 1, -8},     {0x1FBA, 0x1FBB, 1, -74},
    {0x1FBC, 0x1FBC, 1, -9},    {0x1FC8, 0x1FCB, 1, -86},    {0x1FCC, 0x1FCC, 1, -9},
    {0x1FD8, 0x1FD9, 1, -8},    {0x1FDA, 0x1FDB, 1, -100},   {0x1FE8, 0x1FE9, 1, -8},
    {0x1FEA, 0x1FEB, 1, -112},  {0x1FEC, 0x1FEC, 1, -7},     {0x1FF8, 0x1FF9, 1, -128},
    {0x1FFA, 0x1FFB, 1, -126},  {0x1FFC, 0x1FFC, 1, -9},     {0x2132, 0x2132, 1, 28},
    {0x2160, 0x216F, 1, 16},    {0x2183, 0x2183, 1, 1},      {0x24B6, 0x24CF, 1, 26},
    {0x2C00, 0x2C2F, 1, 48},    {0x2C60, 0x2C60, 1, 1},      {0x2C63, 0x2C63, 1, -3814},
    {0x2C67, 0x2C6B, 2, 1},     {0x2C72, 0x2C72, 1, 1},      {0x2C75, 0x2C75, 1, 1},
    {0x2C80, 0x2CE2, 2, 1},     {0x2CEB, 0x2CED, 2, 1},      {0x2CF2, 0x2CF2, 1, 1},
    {0xA640, 0xA66C, 2, 1},     {0xA680, 0xA69A, 2, 1},      {0xA722, 0xA72E, 2, 1},
    {0xA732, 0xA76E, 2, 1},     {0xA779, 0xA77B, 2, 1},      {0xA77D, 0xA77D, 1, -35332},
    {0xA77E, 0xA786, 2, 1},     {0xA78B, 0xA78B, 1, 1},      {0xA790, 0xA792, 2, 1},
    {0xA796, 0xA7A8, 2, 1},     {0xA7B3, 0xA7B3, 1, 928},    {0xA7B4, 0xA7C2, 2, 1},
    {0xA7C4, 0xA7C4, 1, -48},   {0xA7C6, 0xA7C6, 1, -35384}, {0xA7C7, 0xA7C9, 2, 1},
    {0xA7D0, 0xA7D0, 1, 1},     {0xA7D6, 0xA7D8, 2, 1},      {0xA7F5, 0xA7F5, 1, 1},
    {0xFF21, 0xFF3A, 1, 32},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static uint32_t fold_char(uint32_t c)
{
    size_t low = 0;
    size_t high = N_ROWS;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (rows[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == N_ROWS || c < rows[low].first || (c - rows[low].first) % rows[low].step)
        return c;
    return (uint32_t)((int32_t)c + rows[low].to_small);
}

/* A loop that compilers make wide instructions of. */
static void fold_ascii(peg_str text, char *ret_folded)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];

        ret_folded[i] = (char)(c + ((unsigned char)(c - 'A') < 26 ? 0x20 : 0));
    }
}

/* Two or three bytes, from the last one on: the first keeps what says how many there are. */
static void fold_long(const char *text, size_t n, char *ret_folded)
{
    const unsigned head = n == 2 ? 0x1Fu : 0x0Fu;
    uint32_t c = (unsigned char)text[0] & head;

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3Fu);
    c = fold_char(c);
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        ret_folded[i] = (char)(0x80 | (c & 0x3F));
    ret_folded[0] = (char)(((unsigned char)text[0] & ~head) | c);
}

void gw_fold(peg_str text, char *ret_folded)
{
    size_t n;

    if (peg__str_is_ascii(text)) {
        fold_ascii(text, ret_folded);
        return;
    }
    for (size_t i = 0; i < text.len; i += n) {
        n = peg__utf8_char_len(peg__str_from(text, i));
        if (n == 2 || n == 3) {
            fold_long(text.ptr + i, n, ret_folded + i);
            continue;
        }
        n = n ? n : 1; /* what is no UTF-8 stays as it is */
        memcpy(ret_folded + i, text.ptr + i, n);
        if (peg__is_upper(text.ptr[i]))
            ret_folded[i] = (char)(text.ptr[i] | 0x20);
    }
}
