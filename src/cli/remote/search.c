/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard search: which toolsets are about this? */

#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/remote/remote.h"

struct search_options {
    struct remote_args remote;
    size_t limit;
    struct peg__buf words; /* all operands: one question */
};

static const struct cli_option option_table[] = {
    {0, 0, "limit", "N", "at most so many toolsets; 20 by default, up to 1000", .kind = CLI_SIZE,
     .at = offsetof(struct search_options, limit), .least = 1, .most = 1000},
    REMOTE_OPTION_TAG,
    REMOTE_FLAG("json", as_json, "print one JSON object with \"hits\" and \"total\""),
    REMOTE_OPTIONS,
    REMOTE_OPTION_COLOR,
    {.name = NULL},
};

static const struct cli_column columns[] = {
    {"SCORE", true, false},       {"TOOLSET", false, true},
    {"HEALTH", false, false},     {"TOOLS THAT MATCH", false, true},
    {"DESCRIPTION", false, true},
};

static void put_hits_json(struct peg__buf *buf, const peg_search_result *found)
{
    struct peg__out out = {.buf = buf};

    peg__out_object(&out);
    cli_out_array(&out, "hits");
    for (size_t i = 0; i < found->len; i++) {
        const peg_search_hit *hit = &found->items[i];

        peg__out_object(&out);
        toolset_out(&out, &hit->toolset);
        peg__out_key(&out, "score");
        peg__out_double(&out, hit->score);
        toolset_out_strings(&out, "tools", hit->tools, hit->n_tools);
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
    cli_out_integer(&out, "total", (int64_t)found->total);
    cli_out_end_line(&out);
}

static peg_str print_score(double score, char text[static 32])
{
    return peg__strn(text, (size_t)snprintf(text, 32, "%.1f", score));
}

static void put_hits_table(struct peg__buf *buf, const struct cli_style *style,
                           const peg_search_result *found)
{
    char score[32];
    struct cli_table table = {.columns = columns,
                              .n_columns = sizeof(columns) / sizeof(columns[0])};

    for (size_t i = 0; i < found->len; i++) {
        const peg_search_hit *hit = &found->items[i];

        cli_table_cell(&table, print_score(hit->score, score), "");
        cli_table_cell(&table, peg__str(hit->toolset.name), "");
        toolset_health_cell(&table, &hit->toolset, style);
        toolset_strings_cell(&table, hit->tools, hit->n_tools);
        toolset_line_cell(&table, hit->toolset.description);
    }
    cli_table_print(&table, cli_width(STDOUT_FILENO), style, buf);
    cli_table_free(&table);
    if (found->total > found->len)
        peg__buf_printf(buf, "and %zu more; --limit shows them\n", found->total - found->len);
}

static int show_hits(const struct remote_args *remote, const peg_search_result *found)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    int answer;

    if (remote->as_json)
        put_hits_json(&out, found);
    else if (found->len)
        put_hits_table(&out, cli_style_for(remote->color, STDOUT_FILENO), found);
    else
        peg__buf_puts(&out, "nothing found\n");
    toolset_warn(found->failures, found->n_failures);
    answer = remote_print(&out);
    return answer ? answer : found->len ? CLI_OK : CLI_NO;
}

/* ---- the command ---- */

static int search_toolsets(struct remote_args *remote, peg_client *client)
{
    const struct search_options *o = (const struct search_options *)remote;
    const peg_search_query query = {PEG_SEARCH_QUERY_INIT, .words = o->words.ptr,
                                    .tags = remote->tags, .limit = o->limit};
    peg_search_result *found = NULL;
    peg_error error;
    const int answer = peg_client_search(client, NULL, &query, &found, &error)
                           ? remote_complain(remote, &error)
                           : show_hits(remote, found);

    peg_search_result_free(found);
    return answer;
}

static int run_search(const struct cli_command *self, int argc, char **argv)
{
    struct search_options o = {.limit = 20, .words = PEG__BUF(4096)};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};
    int answer;

    if (!remote_read(&o.remote, &args, remote_take_tag))
        return args.exit;
    for (size_t i = 0; i < args.n_operands; i++)
        peg__buf_printf(&o.words, "%s%s", i ? " " : "", args.operands[i]);
    answer = o.words.status ? cli_bad_use(self, "that is more than 4096 bytes to search for")
             : o.words.len  ? remote_work(&o.remote, search_toolsets)
                            : cli_bad_use(self, "%s", self->needed);
    peg__buf_free(&o.words);
    return answer;
}

const struct cli_command cli_search = {
    .name = "search",
    .usage = "[options] WORD...",
    .summary = "find toolsets by words",
    .about = "Prints the toolsets that have to do with some words or a question, best first:\n"
             "by name, description, tags, and the names, descriptions and arguments of their\n"
             "tools. Words are compared by their stems, and a word that no toolset has finds\n"
             "similar ones.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .needed = "something to search for is needed",
    .notes = "exit status:\n"
             "  0  something was found\n"
             "  1  nothing was found\n" REMOTE_EXIT_STATUS "\n"
             "examples:\n"
             "  pegboard search weather forecast\n"
             "  pegboard search --tag public --json invoice | jq -r '.hits[].name'",
    .run = run_search,
};
