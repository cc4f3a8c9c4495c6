/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A transcript:
 *
 *   turn t-1 (turn.yaml)
 *     session  s-1
 *     blocks   4
 *     tools    query_orders
 *
 *   1 user
 *     how many open orders?
 *
 *   2 call query_orders  call_7
 *     {"sql":"SELECT count(*) FROM orders"}
 */

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "pegboard/definitions.h"
#include "json/json.h"

enum {
    INDENT = 2,
    LABEL_INDENT = 11,   /* "  session  " */
    SHOWN_ARGS = 400,    /* bytes; more with --full */
    SHOWN_RESULT = 1200, /* the same */
};

#define NS_PER_MS 1000000

/* Value; borrows all. */
struct printing {
    const struct turn_show_options *options;
    const struct turn_file *file;
    const peg_turn *turn;
    struct peg__buf *out;
    const struct cli_style *style;
    unsigned width;
};

/* ---- words ------------------------------------------------------------------------------ */

static void put_body(const struct printing *p, peg_str text, const char *on)
{
    const struct cli_text how = {.out = p->out,
                                 .width = p->width,
                                 .indent = INDENT,
                                 .on = on,
                                 .off = *on ? p->style->off : ""};

    if (text.len)
        cli_put_text(&how, text);
}

static void put_cut(const struct printing *p, peg_str text, size_t max)
{
    const size_t len = text.len;

    if (!p->options->is_full && len > max) {
        text.len = peg__utf8_cut(text.ptr, max);
        put_body(p, text, "");
        peg__buf_printf(p->out, "%*s%s... (", INDENT, "", p->style->dim);
        cli_put_count(p->out, len - text.len);
        peg__buf_printf(p->out, " more bytes; --full shows them)%s\n", p->style->off);
    } else {
        put_body(p, text, "");
    }
}

/* A line of the head: "  session  s-1". */
static void put_line(const struct printing *p, const char *label, peg_str text)
{
    char first[64];
    const struct cli_text how = {.out = p->out,
                                 .width = p->width,
                                 .first = first,
                                 .indent = LABEL_INDENT,
                                 .on = "",
                                 .off = ""};

    snprintf(first, sizeof(first), "%*s%s%-*s%s", INDENT, "", p->style->dim, LABEL_INDENT - INDENT,
             label, p->style->off);
    cli_put_text(&how, text);
}

/* ---- the head --------------------------------------------------------------------------- */

static void add_string_of(struct peg__buf *line, const peg_json *object, const char *name,
                          const char *before, const char *after)
{
    const peg_json *value = peg_json_get(object, name);

    if (!value || value->kind != PEG_JSON_STRING || !value->len)
        return;
    peg__buf_puts(line, line->len ? before : "");
    peg__buf_str(line, peg_json_str(value));
    peg__buf_puts(line, after);
}

static void add_tokens(struct peg__buf *line, const peg_json *usage, const char *name,
                       const char *what)
{
    const peg_json *value = peg_json_get(usage, name);
    int64_t number;

    if (!value || !peg_json_int64(value, &number) || number < 0)
        return;
    peg__buf_puts(line, line->len ? ", " : "");
    cli_put_count(line, (uint64_t)number);
    peg__buf_printf(line, " %s", what);
}

static void put_built(const struct printing *p, const char *label, struct peg__buf *line)
{
    if (line->status)
        p->out->status = line->status;
    else if (line->len)
        put_line(p, label, peg__buf_view(line));
    peg__buf_free(line);
}

static void put_inference(const struct printing *p)
{
    struct peg__buf model = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf usage = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf stop = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_json *result = NULL;
    const peg_json *tokens;

    if (peg_turn_get(p->turn, &peg_key_inference_result, &result, NULL) || !result)
        return;
    add_string_of(&model, result, "model", "", "");
    add_string_of(&model, result, "provider", " of ", "");
    put_built(p, "model", &model);

    tokens = peg_json_get(result, "usage");
    if (tokens) {
        add_tokens(&usage, tokens, "input_tokens", "tokens in");
        add_tokens(&usage, tokens, "output_tokens", "out");
        add_tokens(&usage, tokens, "cached_tokens", "cached");
        add_tokens(&usage, tokens, "cache_read_input_tokens", "read from the cache");
        add_tokens(&usage, tokens, "reasoning_tokens", "of thought");
    }
    put_built(p, "usage", &usage);

    add_string_of(&stop, result, "stop_reason", "", "");
    add_string_of(&stop, result, "finish_class", " (", stop.len ? ")" : "");
    put_built(p, "stopped", &stop);
}

static void put_tools_line(const struct printing *p)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const peg_json *definitions = NULL;
    peg_error error;

    if (peg_turn_definitions(p->turn, &definitions, &error))
        peg__buf_printf(&line, "unusable: %s", error.message);
    if (definitions) {
        PEG_JSON_EACH_ITEM (definitions, definition) {
            peg__buf_puts(&line, line.len ? ", " : "");
            peg__buf_str(&line, peg_json_str(peg_json_get(definition, "name")));
        }
    }
    put_built(p, "tools", &line);
}

static void put_pending_line(const struct printing *p)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    size_t n = 0;
    size_t n_begun = 0;

    for (size_t i = peg_turn_next_pending(p->turn, 0); i < peg_turn_len(p->turn);
         i = peg_turn_next_pending(p->turn, i + 1)) {
        n++;
        n_begun += turn_has_begun(p->file, peg_block_id(peg_turn_at(p->turn, i)));
    }
    if (!n)
        return;
    peg__buf_printf(&line, "%zu %s", n, n == 1 ? "call" : "calls");
    if (n_begun)
        peg__buf_printf(&line, ", %zu begun", n_begun);
    put_built(p, "pending", &line);
}

static void put_turn_head(const struct printing *p)
{
    const peg_str id = peg_turn_id(p->turn);
    struct peg__buf count = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_str session;

    peg__buf_printf(p->out, "%sturn%s", p->style->bold, id.len ? " " : "");
    cli_put_safe(p->out, id);
    peg__buf_printf(p->out, "%s (", p->style->off);
    cli_put_safe(p->out, peg__str(cli_file_label(p->file->path)));
    peg__buf_puts(p->out, ")\n");
    if (!peg_turn_get_string(p->turn, &peg_key_session_id, &session, NULL) && session.len)
        put_line(p, "session", session);
    cli_put_count(&count, peg_turn_len(p->turn));
    put_built(p, "blocks", &count);
    put_tools_line(p);
    put_inference(p);
    put_pending_line(p);
}

/* ---- heads of blocks -------------------------------------------------------------------- */

static void put_block_time(const struct printing *p, int64_t ms)
{
    const time_t seconds = (time_t)(ms / 1000);
    char text[64];
    struct tm tm;

    /* Years of more than four digits are no real time. */
    if (ms <= 0 || !gmtime_r(&seconds, &tm) || tm.tm_year > 9999 - 1900)
        return;
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
    peg__buf_printf(p->out, "  %s%s%s", p->style->dim, text, p->style->off);
}

static void put_word(const struct printing *p, const char *on, peg_str word)
{
    if (!word.len)
        return;
    peg__buf_printf(p->out, "  %s", on);
    cli_put_safe(p->out, word);
    peg__buf_puts(p->out, *on ? p->style->off : "");
}

static void put_call_state(const struct printing *p, const peg_block *call)
{
    const peg_str id = peg_block_id(call);

    if (peg_turn_result_of(p->turn, id))
        return;
    put_word(p, p->style->bad,
             peg__str(turn_has_begun(p->file, id) ? "begun, outcome unknown" : "pending"));
}

static void put_outcome(const struct printing *p, const peg_record *record)
{
    const peg_block *call = peg_turn_find(p->turn, peg_record_key(record));

    if (!call || peg_block_kind_of(call) != PEG_BLOCK_CALL)
        put_word(p, p->style->bad, peg__str("without a call"));
    if (peg_record_is_error(record)) {
        put_word(p, p->style->bad, peg__str(peg_record_code(record)));
        put_word(p, p->style->dim, peg__str(peg_record_cause(record)));
    }
    if (peg_record_duration_ns(record))
        peg__buf_printf(p->out, "  %s%" PRId64 " ms%s", p->style->dim,
                        (peg_record_duration_ns(record) + NS_PER_MS / 2) / NS_PER_MS,
                        p->style->off);
}

/* What comes behind the kind, as one word of the title. */
static peg_str block_title_name(const peg_block *block)
{
    return peg_block_kind_of(block) == PEG_BLOCK_OTHER ? peg_block_type(block)
                                                       : peg_block_tool(block);
}

static void put_block_head(const struct printing *p, const peg_block *block, size_t i)
{
    const peg_str name = block_title_name(block);

    peg__buf_printf(p->out, "\n%s%zu %s%s", p->style->bold, i + 1,
                    peg_block_kind_name(peg_block_kind_of(block)), name.len ? " " : "");
    cli_put_safe(p->out, name);
    peg__buf_puts(p->out, p->style->off);
    put_word(p, p->style->dim, peg_block_call_id(block));
    if (peg_block_kind_of(block) == PEG_BLOCK_CALL)
        put_call_state(p, block);
    else if (peg_block_kind_of(block) == PEG_BLOCK_RESULT)
        put_outcome(p, peg_block_record(block));
    else if (peg_block_tier(block))
        put_word(p, p->style->dim, peg__str(peg_trust_tier_name(peg_block_tier(block))));
    put_block_time(p, peg_block_created_ms(block));
    peg__buf_putc(p->out, '\n');
}

/* ---- what blocks hold ------------------------------------------------------------------- */

/* Compact JSON, or whatever the model wrote. */
static peg_status put_args(const struct printing *p, peg_str args, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *compact = NULL;
    peg_json_doc *doc = NULL;
    peg_status status = peg_json_parse(args, NULL, &doc, NULL);
    size_t len;

    if (status) {
        put_cut(p, args, SHOWN_ARGS);
        return status == PEG_ENOMEM ? peg__fail_nomem(reterr) : PEG_OK;
    }
    status = peg_json_write(peg_json_root(doc), PEG_JSON_COMPACT, &compact, &len, reterr);
    if (!status)
        put_cut(p, peg__strn(compact, len), SHOWN_ARGS);
    peg_json_doc_free(doc);
    return status;
}

/* ", 12,345 bytes", and whether they are elsewhere. */
static void put_length(const struct printing *p, peg_reader *reader, bool is_here)
{
    const int64_t length = peg_reader_byte_length(reader);

    if (length >= 0) {
        peg__buf_puts(p->out, ", ");
        cli_put_count(p->out, (uint64_t)length);
        peg__buf_puts(p->out, length == 1 ? " byte" : " bytes");
    }
    if (!is_here)
        peg__buf_printf(p->out, ", %snot in the file%s", p->style->bad, p->style->off);
}

/* Can its first byte be had? */
static bool is_here(peg_reader *reader)
{
    char byte;
    size_t n;

    return peg_reader_read_at(reader, 0, &byte, 1, &n, NULL) == PEG_OK;
}

/* Its words too, if it has any: a result of a tool is nearly always an artifact. */
static peg_status put_artifact_lines(const struct printing *p, peg_artifact *artifact,
                                     peg_error *reterr)
{
    peg_str bytes = {NULL, 0};
    const peg_status status = peg_artifact_bytes(artifact, &bytes, reterr);

    if (status == PEG_ENOMEM)
        return status;
    peg__buf_printf(p->out, "%*sartifact ", INDENT, "");
    cli_put_safe(p->out, peg__str(peg_artifact_kind_of(artifact)->name));
    put_length(p, peg_artifact_reader(artifact), !status);
    peg__buf_putc(p->out, '\n');
    if (!status && peg__utf8_is_valid(bytes))
        put_cut(p, bytes, SHOWN_RESULT);
    return PEG_OK;
}

static void put_media_line(const struct printing *p, const peg_media *media)
{
    peg__buf_printf(p->out, "%*s%s ", INDENT, "", peg_media_kind_name(peg_media_kind_of(media)));
    cli_put_safe(p->out, peg__str(peg_media_filename(media)));
    peg__buf_puts(p->out, " (");
    cli_put_safe(p->out, peg__str(peg_media_mime_type(media)));
    peg__buf_putc(p->out, ')');
    if (peg_media_has_bytes(media))
        put_length(p, peg_media_reader(media), is_here(peg_media_reader(media)));
    if (*peg_media_uri(media)) {
        peg__buf_puts(p->out, ", ");
        cli_put_safe(p->out, peg__str(peg_media_uri(media)));
    }
    if (*peg_media_file_id(media)) {
        peg__buf_puts(p->out, ", file id ");
        cli_put_safe(p->out, peg__str(peg_media_file_id(media)));
    }
    peg__buf_putc(p->out, '\n');
}

/* A vendor's own payload: its member names for reasoning, all of it for an unknown block. */
static peg_status put_payload(const struct printing *p, const peg_block *block, peg_error *reterr)
{
    PEG_CLEANUP(peg__freep) char *compact = NULL;
    const peg_json *payload = peg_block_payload(block);
    peg_status status;
    size_t len;

    if (peg_block_kind_of(block) == PEG_BLOCK_REASONING) {
        peg__buf_printf(p->out, "%*s%s(no words", INDENT, "", p->style->dim);
        PEG_JSON_EACH_MEMBER (payload, key) {
            peg__buf_puts(p->out, key == payload + 1 ? "; " : ", ");
            cli_put_safe(p->out, peg_json_str(key));
        }
        peg__buf_printf(p->out, ")%s\n", p->style->off);
        return PEG_OK;
    }
    status = peg_json_write(payload, PEG_JSON_COMPACT, &compact, &len, reterr);
    if (!status)
        put_cut(p, peg__strn(compact, len), SHOWN_RESULT);
    return status;
}

static peg_status put_block_content(const struct printing *p, const peg_block *block,
                                    peg_error *reterr)
{
    const peg_block_kind kind = peg_block_kind_of(block);
    peg_artifact *artifact = peg_block_artifact(block);
    peg_status status = PEG_OK;

    if (kind == PEG_BLOCK_CALL)
        status = put_args(p, peg_block_args(block), reterr);
    else if (kind == PEG_BLOCK_RESULT)
        put_cut(p, peg_record_text(peg_block_record(block)), SHOWN_RESULT);
    else
        put_body(p, peg_block_text(block), kind == PEG_BLOCK_REASONING ? p->style->dim : "");
    for (size_t i = 0; i < peg_block_n_media(block); i++)
        put_media_line(p, peg_block_media(block, i));
    if (!status && artifact)
        status = put_artifact_lines(p, artifact, reterr);
    if (!status && peg_block_payload(block) && !peg_block_text(block).len &&
        (kind == PEG_BLOCK_REASONING || kind == PEG_BLOCK_OTHER))
        status = put_payload(p, block, reterr);
    return status;
}

size_t turn_show_from(const struct turn_show_options *options, const peg_turn *turn)
{
    size_t n = peg_turn_count(turn, options->kinds);
    size_t i = peg_turn_next(turn, options->kinds, 0);

    for (; options->last && n > options->last; n--)
        i = peg_turn_next(turn, options->kinds, i + 1);
    return i;
}

peg_status turn_print(const struct turn_show_options *options, const struct turn_file *file,
                      peg_error *reterr)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    const struct printing p = {.options = options,
                               .file = file,
                               .turn = file->turn,
                               .out = &out,
                               .style = cli_style_for(options->common.color, STDOUT_FILENO),
                               .width = cli_width(STDOUT_FILENO)};
    peg_status status;

    put_turn_head(&p);
    status = turn_flush(&out, reterr);
    for (size_t i = turn_show_from(options, file->turn); !status && i < peg_turn_len(file->turn);
         i = peg_turn_next(file->turn, options->kinds, i + 1)) {
        put_block_head(&p, peg_turn_at(file->turn, i), i);
        status = put_block_content(&p, peg_turn_at(file->turn, i), reterr);
        if (!status)
            status = turn_flush(&out, reterr);
    }
    peg__buf_free(&out);
    return status;
}
