/* SPDX-License-Identifier: Apache-2.0 */

#include "remote/direct/direct.h"

#include "base/mem.h"

static void free_owned(struct remote__direct_command *command)
{
    if (command->delta)
        remote__prov_delta_free(command->delta);
    remote__prov_call_unref(command->call);
}

static void on_command_reply(struct redis_request *request, const struct resp_value *reply)
{
    struct remote__direct_command *command = (struct remote__direct_command *)request;
    struct remote__direct *direct = command->direct;

    if (reply && direct->commands)
        redis_session_check_reply(direct->commands, reply);
    if (command->fn)
        command->fn(command, reply);
    free_owned(command);
    peg__free(command);
}

static bool put_command(struct remote__direct *direct, const peg_str *args, size_t n,
                        struct remote__direct_command *command)
{
    const size_t mark = redis_queue_mark(&direct->queue);

    resp_put_command(&direct->queue.out, n);
    for (size_t i = 0; i < n; i++)
        resp_put(&direct->queue.out, args[i]);
    return redis_queue_add(&direct->queue, mark, &command->request) == PEG_OK;
}

void remote__direct_ask(struct remote__direct *direct, const peg_str *args, size_t n,
                        const struct remote__direct_command *command)
{
    const bool is_ready = direct->commands && redis_session_is_ready(direct->commands);
    struct remote__direct_command *asked = is_ready ? peg__alloc(sizeof(*asked)) : NULL;
    struct remote__direct_command failed = *command;

    if (asked) {
        *asked = *command;
        asked->direct = direct;
        asked->request = (struct redis_request){.fn = on_command_reply};
        if (put_command(direct, args, n, asked)) {
            net_loop_later(direct->prov->loop, &direct->flush);
            return;
        }
        peg__free(asked);
    }
    failed.direct = direct;
    if (failed.fn)
        failed.fn(&failed, NULL);
    free_owned(&failed);
}

void remote__direct_send_commands(struct net_later *later)
{
    struct remote__direct *direct = peg__container_of(later, struct remote__direct, flush);

    if (direct->commands)
        redis_session_send(direct->commands, &direct->queue);
}

void remote__direct_ack(struct remote__direct *direct, peg_str id)
{
    DIRECT_ASK(direct, &(struct remote__direct_command){0}, peg__str("XACK"), peg__str(direct->key),
               peg__str(PULSE_PROVIDERS), id);
}

void remote__direct_report_lost(struct remote__direct *direct, const peg_error *error)
{
    remote__prov_notify(direct->prov, &(peg_provider_event){.kind = PEG_PROVIDER_LOST,
                                                            .code = error->code,
                                                            .message = error->message});
}
