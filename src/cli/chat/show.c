/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The model's text goes to standard output, all else to standard error, so that a pipe gets the
 * answer alone. Whatever others have written cannot steer the terminal.
 */

#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "cli/chat/chat.h"
#include "pegboard/record.h"

enum { SHOWN_BYTES = 160 }; /* of a result: the model has all of it */

void chat_view_init(struct chat_view *view, enum cli_color color)
{
    const struct cli_style *plain = cli_style_for(CLI_COLOR_NEVER, STDOUT_FILENO);
    const bool is_for_people =
        color == CLI_COLOR_ALWAYS || (isatty(STDOUT_FILENO) && isatty(STDERR_FILENO));

    *view =
        (struct chat_view){.style = is_for_people ? cli_style_for(color, STDERR_FILENO) : plain};
}

static void print_piece(struct chat_view *view, FILE *to, peg_str text)
{
    if (!text.len)
        return;
    if (view->midline && view->midline != to)
        cli_write(view->midline, peg__str("\n"));
    if (to == stderr)
        (void)cli_flush(); /* in a shared terminal, the order tells the story */
    cli_write(to, text);
    if (to == stdout)
        (void)cli_flush();
    view->midline = text.ptr[text.len - 1] == '\n' ? NULL : to;
}

static void end_printed_line(struct chat_view *view)
{
    if (view->midline)
        print_piece(view, view->midline, peg__str("\n"));
}

void chat_show(struct chat_view *view, FILE *to, struct peg__buf *text)
{
    end_printed_line(view);
    print_piece(view, to,
                text->status ? peg__str("pegboard: out of memory\n") : peg__buf_view(text));
    peg__buf_free(text);
}

/* A piece of what grows: text of the model, or output of a tool. */
static void show_piece(struct chat_view *view, FILE *to, const char *on, peg_str piece)
{
    struct peg__buf text = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&text, on);
    cli_put_safe_lines(&text, piece);
    if (*on)
        peg__buf_puts(&text, view->style->off);
    if (!text.status && piece.len) {
        print_piece(view, to, peg__buf_view(&text));
        view->midline = piece.ptr[piece.len - 1] == '\n' ? NULL : to;
    }
    peg__buf_free(&text);
}

/* ---- calls ---- */

void chat_put_call(struct peg__buf *out, const struct chat_view *view, peg_str tool, peg_str args)
{
    peg__buf_puts(out, view->style->bold);
    cli_put_safe(out, tool);
    peg__buf_printf(out, "%s ", view->style->off);
    cli_put_safe(out, args.len ? args : peg__str("{}"));
}

static void show_start(struct chat_view *view, const peg_tool_call_event *call)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    if (view->is_call_known) {
        view->is_call_known = false;
        return;
    }
    peg__buf_puts(&line, "call ");
    chat_put_call(&line, view, call->tool, call->args);
    peg__buf_putc(&line, '\n');
    chat_show(view, stderr, &line);
}

/* The first line of it. */
static void put_first_line(struct peg__buf *out, const peg_record *record)
{
    peg_str answer;
    const char *end;
    size_t len;

    if (peg_record_answer(record, &answer, NULL))
        return;
    while (answer.len && answer.ptr[answer.len - 1] == '\n')
        answer.len--;
    end = answer.len ? memchr(answer.ptr, '\n', answer.len) : NULL;
    len = end ? (size_t)(end - answer.ptr) : answer.len;
    if (len > SHOWN_BYTES)
        len = peg__utf8_cut(answer.ptr, SHOWN_BYTES);
    cli_put_safe(out, peg__strn(answer.ptr, len));
    if (len < answer.len)
        peg__buf_printf(out, " ... (%zu bytes)", answer.len);
    if (peg_record_n_media(record))
        peg__buf_printf(out, "%zu media", peg_record_n_media(record));
}

static void show_end(struct chat_view *view, const peg_tool_call_event *call)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_str text = peg_record_text(call->record);

    peg__buf_printf(&line, "%s%s%s ", call->is_error ? view->style->bad : view->style->good,
                    call->is_error ? "failed" : "done", view->style->off);
    cli_put_safe(&line, call->tool);
    peg__buf_puts(&line, ": ");
    if (call->is_error) { /* all of it: this is what the model has to act on */
        cli_put_safe_lines(&line, text);
        peg__buf_printf(&line, " (%s)", peg_record_code(call->record));
    } else {
        put_first_line(&line, call->record);
    }
    peg__buf_putc(&line, '\n');
    chat_show(view, stderr, &line);
}

static void show_warning(struct chat_view *view, const peg_error *error)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);

    peg__buf_puts(&line, "warning: ");
    cli_put_error(&line, "", error);
    peg__buf_printf(&line, " (%s)\n", error->code);
    chat_show(view, stderr, &line);
}

void chat_show_event(const peg_event *event, void *user)
{
    struct chat_view *view = user;

    switch (event->kind) {
    case PEG_EVENT_MESSAGE:
        show_piece(view, stdout, "", event->u.stream.delta);
        break;
    case PEG_EVENT_THOUGHT:
        show_piece(view, stderr, view->style->dim, event->u.stream.delta);
        break;
    case PEG_EVENT_TOOL_CALL:
        if (event->u.tool_call.is_complete)
            show_end(view, &event->u.tool_call);
        else
            show_start(view, &event->u.tool_call);
        return;
    case PEG_EVENT_LOG:
        if (peg__str_is(event->u.log.kind, "tool_output"))
            show_piece(view, stderr, view->style->dim, event->u.log.message);
        return;
    case PEG_EVENT_WARNING:
        if (event->error)
            show_warning(view, event->error);
        return;
    default:
        return;
    }
    if (event->u.stream.is_complete)
        end_printed_line(view);
}
