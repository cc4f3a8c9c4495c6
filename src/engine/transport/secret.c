/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/transport/transport.h"

#include <string.h>
#include <strings.h>

#include "base/text/str.h"

/* Shorter values are words such as "true" or "v1"; without them an error would be hard to read. */
enum { MIN_SECRET = 8 };

static peg_str without_space(peg_str s)
{
    while (s.len && s.ptr[0] == ' ')
        s = peg__str_from(s, 1);
    while (s.len && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

peg_str peg__secret_in(peg_str header)
{
    static const peg_str schemes[] = {PEG_LIT("Bearer "), PEG_LIT("Basic ")};
    const char *colon = header.len ? memchr(header.ptr, ':', header.len) : NULL;
    peg_str value = {"", 0};

    if (colon)
        value = without_space(peg__str_from(header, (size_t)(colon - header.ptr) + 1));
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
        if (value.len > schemes[i].len &&
            strncasecmp(value.ptr, schemes[i].ptr, schemes[i].len) == 0)
            value = without_space(peg__str_from(value, schemes[i].len));
    }
    return value.len >= MIN_SECRET ? value : peg__strn("", 0);
}

static const char stars[] = "***";
enum { N_STARS = sizeof(stars) - 1 };

/* How many bytes of the secret stand at the start of a text; fewer than all only if the text ends
 * there. */
static size_t len_here(peg_str secret, const char *text)
{
    const size_t left = strlen(text);
    const size_t len = left < secret.len ? left : secret.len;

    return len >= MIN_SECRET && memcmp(text, secret.ptr, len) == 0 ? len : 0;
}

void peg__secret_hide(peg_str secret, char *text)
{
    if (!secret.len)
        return;
    for (; (text = strchr(text, secret.ptr[0])); text++) {
        const size_t len = len_here(secret, text);

        if (!len)
            continue;
        memcpy(text, stars, N_STARS);
        memmove(text + N_STARS, text + len, strlen(text + len) + 1);
        text += N_STARS - 1;
    }
}
