/* SPDX-License-Identifier: Apache-2.0 */

#include "generate/language.h"

#include <string.h>

#include "generate/c/c.h"
#include "generate/python/python.h"
#include "generate/ts/ts.h"

static const struct gen_language *const languages[] = {&gen_c, &gen_python, &gen_ts};
const char gen_language_names[] = "c, python, ts";

const struct gen_language *gen_language_find(const char *name)
{
    for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]); i++) {
        if (!strcmp(languages[i]->name, name))
            return languages[i];
    }
    return NULL;
}
