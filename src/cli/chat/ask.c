/* SPDX-License-Identifier: Apache-2.0 */

/* On the thread that runs the turn, which waits meanwhile. */

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/chat/chat.h"
#include "pegboard/call.h"
#include "pegboard/gate.h"
#include "json/json.h"

enum { MAX_TRIES = 3 }; /* to answer one question of a tool */

/* As tools of a gateway are imported: what says nothing of itself may be destructive. */
static bool may_do_harm(const peg_tool *tool)
{
    if (peg_tool_is_destructive(tool))
        return true;
    return !peg_tool_is_artifact_tool(tool) && !peg_tool_is_read_only(tool) &&
           !peg_tool_is_idempotent(tool) && !peg_tool_is_additive(tool);
}

/* The tool itself was approved, which the map keeps alive: its address is no other tool's. */
bool chat_is_asked_about(const struct chat *c, const peg_tool *tool)
{
    return !c->options->approves_all && may_do_harm(tool) &&
           peg__map_get(&c->approved, peg__str(peg_tool_name(tool))) != tool;
}

void chat_forget_approved(struct chat *c)
{
    PEG__MAP_EACH(&c->approved, entry)
    {
        peg_tool_unref(entry->value);
    }
    peg__map_free(&c->approved);
}

static bool is_word(peg_str line, const char *initial, const char *word)
{
    return peg__str_is(line, initial) || peg__str_is(line, word);
}

/* ---- approval ---- */

/* All of the arguments: what is not shown is not approved. False: there is no memory for them, or
 * they are too long. */
static bool show_question(struct chat *c, const peg_tool *tool, const peg_json *args)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    bool is_whole;

    peg__json_write(args, PEG_JSON_COMPACT, &text);
    peg__buf_puts(&line, "call ");
    chat_put_call(&line, &c->view, peg__str(peg_tool_name(tool)), peg__buf_view(&text));
    peg__buf_putc(&line, '\n');
    if (text.status)
        line.status = text.status;
    is_whole = !line.status;
    chat_show(&c->view, stderr, &line);
    peg__buf_free(&text);
    c->view.is_call_known = true;
    return is_whole;
}

static bool refuse_call(struct chat *c, peg_call *call, peg_str words)
{
    c->view.is_call_known = true; /* which is announced as refused */
    if (words.len)
        peg_call_fail(call, "the user refused this call, and says: " PEG_FMT, PEG_ARG(words));
    else
        peg_call_fail(call, "the user refused this call: do not repeat it");
    return false;
}

/* Without memory it is asked about again. */
static void remember_approved(struct chat *c, const peg_tool *tool)
{
    peg_tool *kept = peg_tool_ref(peg__unconst(tool));
    void *old = NULL;

    if (peg__map_put(&c->approved, peg__str(peg_tool_name(tool)), kept, &old))
        old = kept;
    peg_tool_unref(old);
}

static bool ask_approval(struct chat *c, peg_call *call, const peg_json *args)
{
    const peg_tool *tool = peg_call_tool(call);
    peg_str line = {"", 0};

    if (peg_call_should_stop(call))
        return refuse_call(c, call, line);
    if (!show_question(c, tool, args)) {
        peg_call_fail(call, "the arguments could not be shown to the user, whose approval this "
                            "call needs: send shorter ones");
        return false;
    }
    chat_input_discard(&c->input);
    if (chat_input_line(&c->input, "run it? [y]es, [n]o, [a]lways, or why not: ", &line) !=
            CHAT_LINE ||
        !line.len || is_word(line, "n", "no"))
        return refuse_call(c, call, (peg_str){"", 0});
    if (is_word(line, "a", "always")) {
        remember_approved(c, tool);
        return true;
    }
    return is_word(line, "y", "yes") || refuse_call(c, call, line);
}

bool chat_is_allowed(peg_call *call, const peg_json *args, void *user)
{
    struct chat *c = user;

    if (!chat_is_asked_about(c, peg_call_tool(call)))
        return true;
    if (c->input.is_terminal)
        return ask_approval(c, call, args);
    peg_call_fail(call, "this call needs the approval of the user, and there is no terminal to ask "
                        "at: do without it");
    return false;
}

/* ---- questions of tools ---- */

static peg_status ask_form(struct chat *c, const peg_json *requests, peg_json_doc **ret_answers,
                           peg_error *reterr)
{
    const peg_remote_question question = {.call_id = "", .number = 1, .requests = requests};
    struct call_answers none = {.n = 0};
    peg_status status;

    chat_input_discard(&c->input);
    clearerr(stdin); /* after one that was interrupted */
    atomic_store(&c->input.is_interruptible, true);
    status = call_ask(&question, &none, ret_answers, reterr);
    atomic_store(&c->input.is_interruptible, false);
    return status;
}

/* An answer that does not fit is asked for again. */
static void answer_form(struct chat *c, peg_gate *gate, const peg_json *requests)
{
    peg_error error = {.status = PEG_OK};

    for (int i = 0; i < MAX_TRIES && !peg_gate_is_settled(gate); i++) {
        peg_json_doc *answers = NULL;

        if (ask_form(c, requests, &answers, &error)) {
            peg_gate_reject(gate, NULL, "%s", error.message);
            return;
        }
        if (peg_gate_resolve(gate, peg_json_root(answers), &error))
            remote_complain_local(NULL, &error);
        peg_json_doc_free(answers);
    }
    if (!peg_gate_is_settled(gate))
        peg_gate_reject(gate, NULL, "the user gave no answer that fits: %s", error.message);
}

static void answer_yes_or_no(struct chat *c, peg_gate *gate)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_str answer = {"", 0};
    peg_error error;

    cli_put_safe(&line, peg__str(peg_gate_reason(gate)));
    peg__buf_putc(&line, '\n');
    chat_show(&c->view, stderr, &line);
    chat_input_discard(&c->input);
    if (chat_input_line(&c->input, "[y]es or [n]o: ", &answer) != CHAT_LINE ||
        !is_word(answer, "y", "yes"))
        peg_gate_reject(gate, NULL, "the user refused");
    else if (peg_gate_resolve(gate, peg_gate_payload(gate), &error))
        peg_gate_reject(gate, NULL, "%s", error.message);
}

void chat_answer_gate(peg_gate *gate, void *user)
{
    struct chat *c = user;
    const peg_json *requests = peg_json_get(peg_gate_payload(gate), "pegboard/requests");

    if (requests)
        answer_form(c, gate, requests);
    else
        answer_yes_or_no(c, gate);
}
