/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/terminal/terminal.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/str.h"

void cli_suggestion_start(struct cli_suggestion *suggestion, const char *unknown)
{
    suggestion->name = NULL;
    peg__typo_start(&suggestion->typo, peg__str(unknown));
}

void cli_suggestion_offer(struct cli_suggestion *suggestion, const char *name)
{
    const peg_str unknown = suggestion->typo.unknown;

    if (peg__typo_offer(&suggestion->typo, peg__str(name)) ||
        (!suggestion->name && unknown.len >= 2 && peg__str_starts(peg__str(name), unknown)))
        suggestion->name = name;
}

static void append_to_message(peg_error *error, const char *text)
{
    const size_t len = strlen(error->message);

    snprintf(error->message + len, sizeof(error->message) - len, "%s", text);
}

void cli_suggestion_toolset(peg_client *client, const char *unknown, peg_error *error)
{
    char advice[sizeof(error->message)] = "; `pegboard list` shows all";
    struct cli_suggestion suggestion;
    peg_toolset_list *list = NULL;

    if (strcmp(error->code, "E_NOT_FOUND") != 0)
        return;
    cli_suggestion_start(&suggestion, unknown);
    if (peg_client_list(client, NULL, NULL, NULL, &list, NULL))
        return;
    for (size_t i = 0; i < list->len; i++)
        cli_suggestion_offer(&suggestion, list->items[i].name);
    if (suggestion.name)
        snprintf(advice, sizeof(advice), "; did you mean '%.80s'? `pegboard list` shows all",
                 suggestion.name);
    append_to_message(error, advice);
    peg_toolset_list_free(list);
}

const peg_toolset_tool *cli_find_tool(const peg_toolset *toolset, const char *name,
                                      peg_error *ret_error)
{
    const char *of = toolset->info.name;
    char guess[128] = "";
    struct cli_suggestion suggestion;

    cli_suggestion_start(&suggestion, name);
    for (size_t i = 0; i < toolset->n_tools; i++) {
        if (strcmp(toolset->tools[i].name, name) == 0)
            return &toolset->tools[i];
        cli_suggestion_offer(&suggestion, toolset->tools[i].name);
    }
    if (suggestion.name)
        snprintf(guess, sizeof(guess), " did you mean '%.80s'?", suggestion.name);
    peg__fail(ret_error, PEG_ENOTFOUND, "E_NOT_FOUND",
              "toolset '%.60s' has no tool '%.60s';%s `pegboard get %.60s` shows those it has", of,
              name, guess, of);
    return NULL;
}
