/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text/str.h"
#include "pegboard/json.h"

const char *peg_version(void)
{
    return PEG_VERSION;
}

peg_str peg_cstr(const char *s)
{
    return peg__str(s ? s : "");
}
