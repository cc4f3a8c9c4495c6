/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Goal: a command that never ends, and ignores SIGTERM, costs its own call and nothing else: the
 * call times out, the process and its children are gone, the loop goes on.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../turn/fixture.h"
#include "pegboard/command.h"

static peg_status add_command(struct stage *s, const char *name, const char *script,
                              int64_t timeout_ms)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const peg_command_def def = {PEG_COMMAND_DEF_INIT,
                                 .tool.name = name,
                                 .tool.description = "a command",
                                 .tool.input_schema = ANY_ARGS,
                                 .tool.timeout_ms = timeout_ms,
                                 .argv = argv,
                                 .grace_ms = 50};
    const peg_status status = peg_command_tool_new(&def, &s->tools[s->n_tools], NULL);

    if (!status)
        s->n_tools++;
    return status;
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

/* Whether the command had begun before its time was over. */
static bool goes_on_after(int64_t timeout_ms)
{
    char pid_file[] = "/tmp/peg-command-XXXXXX";
    char script[128];
    struct stage s;
    long pid = 0;
    bool has_begun;
    FILE *file;
    const int fd = mkstemp(pid_file);

    CHECK(fd >= 0);
    close(fd);
    snprintf(script, sizeof(script), "trap '' TERM; echo $$ > %s; while :; do sleep 1; done",
             pid_file);
    CHECK_INT(stage_open(&s), PEG_OK);
    CHECK_INT(add_command(&s, "endless", script, timeout_ms), PEG_OK);
    CHECK_INT(add_command(&s, "cat", "cat", 60000), PEG_OK);
    s.script[0] = "call a endless {}; call b cat {\"x\":1}";
    s.script[1] = "say never mind";
    CHECK_INT(stage_run(&s), PEG_OK);

    CHECK_STR(peg__str(peg_record_code(result_at(s.turn, 0))), "E_TOOL_TIMEOUT");
    CHECK_CONTAINS(text_of(result_at(s.turn, 1)), "{\"x\":1}");
    CHECK_INT(s.outcome.end, PEG_END_ACK);
    file = fopen(pid_file, "r");
    CHECK(file != NULL);
    has_begun = fscanf(file, "%ld", &pid) == 1; /* NOLINT(cert-err34-c) */
    fclose(file);
    unlink(pid_file);
    if (has_begun)
        CHECK(!is_alive((pid_t)pid));
    stage_close(&s);
    return has_begun;
}

/* A machine that is slow needs more time to begin one. */
TEST(the_loop_goes_on_when_a_command_never_ends)
{
    t_try_with_more_time(goes_on_after, 300);
}
