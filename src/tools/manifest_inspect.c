/* SPDX-License-Identifier: Apache-2.0 */

/* What would keep the tools of a manifest from running, looked for before anybody calls them. */

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "schema/compile/compile.h"
#include "tools/command_internal.h"
#include "tools/manifest_internal.h"
#include "json/json.h"

struct inspection {
    void (*tell)(const char *tool, const char *words, void *user);
    void *user;
    peg_error *reterr;
};

static peg_status tell(const struct inspection *to, const char *tool, struct peg__buf *words)
{
    const peg_status status = words->status;

    if (!status)
        to->tell(tool, words->ptr, to->user);
    peg__buf_free(words);
    return status ? peg__fail_nomem(to->reterr) : PEG_OK;
}

struct typos {
    const struct inspection *to;
    const peg_tool *tool;
    const peg_json *schema;
    peg_status status;
};

static void tell_typo(const peg_json *key, const char *keyword, void *user)
{
    struct typos *typos = user;
    struct peg__buf words = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    peg__buf_puts(&words, "its schema has no keyword ");
    peg__json_pointer_to(typos->schema, key, &words);
    peg__buf_printf(&words, ", which is ignored; did you mean '%s'?", keyword);
    if (words.status == PEG_ELIMIT || typos->status)
        peg__buf_free(&words); /* a name that nobody has meant */
    else
        typos->status = tell(typos->to, peg_tool_name(typos->tool), &words);
}

static peg_status inspect_schema(const struct inspection *to, const peg_tool *tool,
                                 const peg_json *schema)
{
    struct typos typos = {.to = to, .tool = tool, .schema = schema};

    if (schema)
        peg__schema_typos(schema, tell_typo, &typos);
    return typos.status;
}

static peg_status inspect_tool(const struct inspection *to, const peg_tool *tool)
{
    struct peg__buf words = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);
    peg_status status = inspect_schema(to, tool, peg_tool_input_schema(tool));

    if (!status)
        status = inspect_schema(to, tool, peg_tool_output_schema(tool));
    if (status || peg__command_can_start(tool, &words))
        return status;
    return tell(to, peg_tool_name(tool), &words);
}

static peg_status inspect_variable(const struct inspection *to,
                                   const struct peg__manifest_unset *unset)
{
    struct peg__buf words = PEG__BUF(PEG_LIMIT_FAILURE_BYTES);

    peg__buf_printf(&words, "the variable '%.256s' of env is not set here: it is not passed on",
                    unset->name);
    return tell(to, unset->tool, &words);
}

peg_status peg_manifest_inspect(const peg_manifest *manifest,
                                void (*tell_of)(const char *tool, const char *words, void *user),
                                void *user, peg_error *reterr)
{
    const struct inspection to = {tell_of, user, reterr};
    peg_tool_list tools;
    peg_status status = peg_registry_visible(manifest->registry, &tools, reterr);

    if (status)
        return status;
    for (size_t i = 0; !status && i < tools.len; i++)
        status = inspect_tool(&to, tools.items[i]);
    for (const struct peg__manifest_unset *unset = manifest->unset; !status && unset;
         unset = unset->next)
        status = inspect_variable(&to, unset);
    peg_tool_list_free(&tools);
    return status;
}
