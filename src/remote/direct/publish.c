/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A result is added to the stream of its call, then its entry is acknowledged, then the call is
 * forgotten. What is lost on the way is repeated: a result that comes twice is the gateway's to
 * tell, as is one of a call that ran twice.
 *
 * Every entry is added NOMKSTREAM: the caller deletes the stream when it has what it wants, and a
 * late entry would leave one that never expires.
 */

#include "remote/direct/direct.h"

#include "base/error.h"
#include "base/mem.h"
#include "json/json.h"

static void add_to_result(struct remote__direct *direct, const struct pulse_entry *entry,
                          peg_str tool_use_id, const struct remote__direct_command *command)
{
    struct peg__buf payload = PEG__BUF(PEG_LIMIT_PULSE_ENTRY_BYTES);
    struct remote__direct_command failed = *command;
    char key[PULSE_NAME];

    pulse_entry_write(entry, &payload);
    if (!payload.status) {
        DIRECT_ASK(direct, command, peg__str("XADD"), pulse_result_key(tool_use_id, key),
                   peg__str("NOMKSTREAM"), peg__str("MAXLEN"), peg__str("~"), peg__str("1000"),
                   peg__str("*"), peg__str("n"), peg__str(pulse_event_name(entry->event)),
                   peg__str("p"), peg__buf_view(&payload));
    } else {
        failed.direct = direct;
        failed.fn(&failed, NULL);
        remote__prov_call_unref(failed.call);
        if (failed.delta)
            remote__prov_delta_free(failed.delta);
    }
    peg__buf_free(&payload);
}

/* ---- results ------------------------------------------------------------------------------- */

static void on_acked(struct remote__direct_command *command, const struct resp_value *reply)
{
    struct remote__direct *direct = command->direct;

    command->call->is_sent = false;
    if (!reply || reply->kind == RESP_ERROR || direct->prov->phase == REMOTE__PROV_ENDED)
        return;
    remote__prov_forget_done(command->call);
    if (direct->has_given_up)
        remote__direct_claim(direct);
    remote__direct_read(direct);
    remote__prov_check_end(direct->prov);
}

static void ack_call(struct remote__prov_call *call)
{
    struct remote__direct *direct = remote__direct_of(call->prov);

    DIRECT_ASK(
        direct,
        &((struct remote__direct_command){.fn = on_acked, .call = remote__prov_call_ref(call)}),
        peg__str("XACK"), peg__str(direct->key), peg__str(PULSE_PROVIDERS), call->key);
}

static void on_result_published(struct remote__prov_call *call, bool is_published)
{
    if (call->prov->phase == REMOTE__PROV_ENDED)
        return;
    call->is_published = is_published;
    call->is_sent = is_published;
    if (is_published)
        ack_call(call);
}

/* A null says that no caller waits for the result any more. */
static void on_added(struct remote__direct_command *command, const struct resp_value *reply)
{
    struct remote__prov_call *call = command->call;
    const bool is_refused = reply && reply->kind == RESP_ERROR;

    if (is_refused)
        call->n_reviews++;
    if (is_refused && call->n_reviews == PEG_LIMIT_DIRECT_REFUSALS)
        peg__log(PEG_LOG_ERROR, "E_REDIS_REPLY", "Redis refused the result of call %s: dropped",
                 call->face.call_id);
    on_result_published(call,
                        reply && (!is_refused || call->n_reviews >= PEG_LIMIT_DIRECT_REFUSALS));
}

static void write_server_data(const struct remote__prov_outcome *outcome, struct peg__buf *buf)
{
    struct peg__out out = {.buf = buf};

    if (!outcome->n_server_data)
        return;
    peg__out_array(&out);
    for (size_t i = 0; i < outcome->n_server_data; i++) {
        const Pegboard__V1__ServerData *data = outcome->server_data[i];

        peg__out_object(&out);
        peg__out_cmember(&out, "kind", data->kind);
        peg__out_cmember(&out, "audience", data->audience);
        peg__out_key(&out, "data");
        peg__out_raw(&out, peg__strn((const char *)data->data.data, data->data.len));
        peg__out_end_object(&out);
    }
    peg__out_end_array(&out);
}

static void add_result(struct remote__prov_call *call)
{
    const struct remote__prov_outcome *outcome = &call->outcome;
    struct peg__buf server_data = PEG__BUF(PEG_LIMIT_PULSE_ENTRY_BYTES);
    struct pulse_entry entry = {.event = PULSE_RESULT};

    if (outcome->is_content)
        remote__prov_outcome_flatten(call);
    entry.result = (struct pulse_result){.tool_use_id = call->call_id,
                                         .is_failure = outcome->code[0] != '\0',
                                         .json = peg__strn(outcome->json, outcome->json_len),
                                         .code = peg__str(outcome->code),
                                         .message = peg__str(outcome->message)};
    write_server_data(outcome, &server_data);
    if (server_data.status) {
        on_result_published(call, false);
    } else {
        entry.result.server_data = peg__buf_view(&server_data);
        add_to_result(
            remote__direct_of(call->prov), &entry, call->call_id,
            &(struct remote__direct_command){.fn = on_added, .call = remote__prov_call_ref(call)});
    }
    peg__buf_free(&server_data);
}

void remote__direct_publish(struct remote__prov_call *call)
{
    struct remote__direct *direct = remote__direct_of(call->prov);

    if (!direct->is_joined || call->is_sent)
        return; /* when it has joined, or at the next tick */
    call->is_sent = true;
    if (call->is_published)
        ack_call(call);
    else if (direct->emits_results)
        remote__direct_emit(call, on_result_published);
    else
        add_result(call);
}

void remote__direct_publish_all(struct remote__direct *direct)
{
    PEG__MAP_EACH(&direct->prov->calls, entry)
    {
        struct remote__prov_call *call = entry->value;

        if (call->is_done)
            remote__direct_publish(call);
    }
}

/* ---- deltas -------------------------------------------------------------------------------- */

/* The command owns the delta, and frees it whatever the reply is. */
static void on_delta_added(struct remote__direct_command *command, const struct resp_value *reply)
{
    (void)command;
    (void)reply;
}

void remote__direct_take_delta(struct remote__prov_delta *delta)
{
    struct remote__direct *direct = remote__direct_of(delta->call->prov);
    const struct pulse_entry entry = {.event = PULSE_DELTA,
                                      .delta = {.tool_use_id = delta->call->call_id,
                                                .stream = peg__str(delta->stream),
                                                .delta = peg__str(delta->text)}};

    if (direct->is_joined)
        add_to_result(direct, &entry, delta->call->call_id,
                      &(struct remote__direct_command){.fn = on_delta_added, .delta = delta});
    else
        remote__prov_delta_free(delta);
}
