/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Holds what happened to calls of real gateways against the promises, with the simulator's own
 * checker (gateway/sim/history.h). Reads from standard input, for one call after the other:
 *
 *   call ID IDEMPOTENT LOST     a new call; LOST: registers were lost while it lived
 *   put c|k|t N HEX             a register was written, in this order
 *   start ATTEMPT PROVIDER      a provider was handed it
 *   produce HEX                 and answered with this response, or output
 *   output HEX                  a caller got this output
 *   notify KIND ERROR STARTED HEX   a caller got this outcome
 *   refused                     its only caller was told that it was not started
 *   end
 *
 * HEX is "-" for nothing. Each promise that was not kept is a line: ID PROMISE message.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/value.h"

/* The simulator hears of more than what is seen of processes. */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "../gateway/sim/history.h"

enum { LINE = 1 << 20, WORDS = 6 };

static struct {
    struct bus_sim *sim;
    struct h_call *call;
    unsigned long n_lines;
} checked;

static _Noreturn void quit(const char *message)
{
    fprintf(stderr, "check_history: line %lu: %s\n", checked.n_lines, message);
    exit(2); // NOLINT(concurrency-mt-unsafe): one thread
}

static unsigned digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a' + 10);
    quit("not a hexadecimal digit");
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

/* In place. */
static peg_str unhex(char *text)
{
    size_t len = 0;

    if (strcmp(text, "-") == 0)
        return peg__strn(text, 0);
    for (const char *at = text; *at; at += 2)
        text[len++] = (char)(digit(at[0]) << 4 | digit(at[1]));
    text[len] = '\0';
    return peg__strn(text, len);
}

static const char *token(char *text)
{
    static char cut[H_TOKEN]; /* as the checker cuts what it compares */

    snprintf(cut, sizeof(cut), "%s", unhex(text).ptr);
    return cut;
}

static void begin_call(char **words)
{
    struct bus_id id;

    if (!bus_id_parse(peg__str(words[1]), &id))
        quit("not an id");
    h_begin(checked.sim, secure_getenv("CHECK_VERBOSE") != NULL);
    h.has_lost_registers = words[3][0] == '1';
    checked.call = h_call(&id);
    checked.call->is_idempotent = words[2][0] == '1';
}

static void put(char **words)
{
    const struct bus_key key = {.id = checked.call->id, .what = words[1][0], .n = number(words[2])};
    struct peg__blob *value = peg__blob_copy(unhex(words[3]));

    if (!value)
        quit("no memory");
    h_on_written(NULL, &key, value, (struct bus_address){.node = 1});
    peg__blob_unref(value);
}

/* Registers of a call that stays in its node are in the node: there was one if its caller has its
 * outcome. */
static void put_unseen(const struct calls_outcome *outcome)
{
    const struct bus_key key = {.id = checked.call->id, .what = BUS_RESULT};
    struct peg__blob *value = calls_outcome_write(outcome);

    if (!value)
        quit("no memory");
    h_on_written(NULL, &key, value, (struct bus_address){.node = 1});
    peg__blob_unref(value);
}

static enum calls_error error_of(const char *name)
{
    for (int error = CALLS_OK; error < CALLS_N_ERRORS; error++)
        if (strcmp(wire_error_name(gw_error_of_call((enum calls_error)error)), name) == 0)
            return (enum calls_error)error;
    return strcmp(name, "-") == 0 ? CALLS_OK : CALLS_FAULT;
}

static enum calls_outcome_kind kind_of(const char *name)
{
    for (int kind = 0; kind < CALLS_N_KINDS; kind++)
        if (strcmp(gw_outcome_kind_name((enum calls_outcome_kind)kind), name) == 0)
            return (enum calls_outcome_kind)kind;
    quit("no such kind of outcome");
}

static void notify(char **words)
{
    const struct calls_outcome outcome = {
        .kind = kind_of(words[1]),
        .error = error_of(words[2]),
        .was_started = words[3][0] == '1',
        .response = unhex(words[4]),
    };

    if (calls_id_is_node_local(&checked.call->id) && !checked.call->n_written &&
        outcome.was_started)
        put_unseen(&outcome);
    h_notified(&checked.call->id, &outcome);
}

static void end_call(void)
{
    char text[BUS_ID_TEXT];

    h_check_calls();
    bus_id_print(&checked.call->id, text);
    if (h.is_broken)
        printf("%s %s %s\n", text, h.promise, h.message);
}

static void take(char **words, unsigned n)
{
    static const struct {
        const char *verb;
        unsigned n;
    } verbs[] = {{"call", 4},   {"put", 4},    {"start", 3},   {"produce", 2},
                 {"output", 2}, {"notify", 5}, {"refused", 1}, {"end", 1}};
    unsigned i = 0;

    while (i < sizeof(verbs) / sizeof(verbs[0]) && strcmp(verbs[i].verb, words[0]) != 0)
        i++;
    if (i == sizeof(verbs) / sizeof(verbs[0]) || verbs[i].n != n || (i && !checked.call))
        quit("not a line of a history");
    switch (i) {
    case 0:
        begin_call(words);
        return;
    case 1:
        put(words);
        return;
    case 2:
        h_started(&checked.call->id, number(words[1]), words[2]);
        return;
    case 3:
        h_produced(&checked.call->id, token(words[1]));
        return;
    case 4:
        h_output(&checked.call->id, peg__str(token(words[1])));
        return;
    case 5:
        notify(words);
        return;
    case 6:
        h_refused(&checked.call->id);
        return;
    default:
        end_call();
        return;
    }
}

int main(void)
{
    static char line[LINE];

    if (bus_sim_new(&checked.sim, NULL))
        quit("no memory");
    while (fgets(line, sizeof(line), stdin)) {
        char *words[WORDS];
        char *rest = line;
        unsigned n = 0;

        checked.n_lines++;
        while (n < WORDS && (words[n] = strtok_r(rest, " \n", &rest)) != NULL)
            n++;
        if (n)
            take(words, n);
    }
    checked.sim = bus_sim_free(checked.sim);
    return 0;
}
