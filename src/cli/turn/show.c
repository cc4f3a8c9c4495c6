/* SPDX-License-Identifier: Apache-2.0 */

/* pegboard turn show: a conversation to read. */

#include <stdio.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cli/turn/turn.h"
#include "pegboard/definitions.h"
#include "turn/file/file.h"
#include "json/json.h"

/*
 * A turn as JSON lines. First what is known about it:
 *
 *   {"type":"turn","file":"turn.yaml","id":"t-1","session_id":"s-1","blocks":5,
 *    "tools":["query_orders"],"inference_result":{...},"pending":["call_7"]}
 *
 * then each block, as it stands in a file but complete without the others:
 *
 *   {"type":"block","index":2,"state":"answered","block":{"id":"call_7","kind":"tool_call",...}}
 *
 * pegboard-turn(1) documents it.
 */

/* ---- the turn --------------------------------------------------------------------------- */

static void put_string_or_null(struct peg__out *out, const char *name, peg_str text)
{
    peg__out_key(out, name);
    if (text.ptr)
        peg__out_string(out, text);
    else
        peg__out_null(out);
}

static void out_tools(struct peg__out *out, const peg_turn *turn)
{
    const peg_json *definitions = NULL;

    cli_out_array(out, "tools");
    if (!peg_turn_definitions(turn, &definitions, NULL) && definitions) {
        PEG_JSON_EACH_ITEM (definitions, definition)
            peg__out_string(out, peg_json_str(peg_json_get(definition, "name")));
    }
    peg__out_end_array(out);
}

static void out_inference_result(struct peg__out *out, const peg_turn *turn)
{
    const peg_json *result = NULL;

    peg__out_key(out, "inference_result");
    if (!peg_turn_get(turn, &peg_key_inference_result, &result, NULL) && result)
        peg__out_value(out, result);
    else
        peg__out_null(out);
}

static void out_pending(struct peg__out *out, const peg_turn *turn)
{
    cli_out_array(out, "pending");
    for (size_t i = peg_turn_next_pending(turn, 0); i < peg_turn_len(turn);
         i = peg_turn_next_pending(turn, i + 1))
        peg__out_string(out, peg_block_id(peg_turn_at(turn, i)));
    peg__out_end_array(out);
}

static void put_turn(struct peg__out *out, const struct turn_file *file)
{
    peg_str session = {NULL, 0};

    if (peg_turn_get_string(file->turn, &peg_key_session_id, &session, NULL))
        session = (peg_str){NULL, 0};
    peg__out_object(out);
    peg__out_cmember(out, "type", "turn");
    cli_out_file(out, file->path);
    peg__out_member(out, "id", peg_turn_id(file->turn));
    put_string_or_null(out, "session_id", session);
    cli_out_integer(out, "blocks", (int64_t)peg_turn_len(file->turn));
    out_tools(out, file->turn);
    out_inference_result(out, file->turn);
    out_pending(out, file->turn);
    peg__out_end_object(out);
}

/* ---- blocks ----------------------------------------------------------------------------- */

static const char *state_of(const struct turn_file *file, const peg_block *call)
{
    if (peg_turn_result_of(file->turn, peg_block_id(call)))
        return "answered";
    return turn_has_begun(file, peg_block_id(call)) ? "begun" : "pending";
}

static peg_status out_block(struct peg__out *out, const struct turn_file *file, size_t i,
                            peg_error *reterr)
{
    /* What is in the file stays in the text, however large. */
    static const peg_turn_write_options options = {PEG_TURN_WRITE_OPTIONS_INIT,
                                                   .inline_below = INT64_MAX};
    static const struct peg__block_write how = {.options = &options};
    const peg_block *block = peg_turn_at(file->turn, i);
    peg_json_builder *b = peg_json_builder_new();
    peg_json_doc *doc = NULL;
    peg_status status = peg__block_write(&how, block, b, reterr);

    if (status) {
        peg_json_builder_free(b);
        return status;
    }
    status = peg_json_builder_finish(b, &doc, reterr);
    if (status)
        return status;
    peg__out_object(out);
    peg__out_cmember(out, "type", "block");
    cli_out_integer(out, "index", (int64_t)i);
    if (peg_block_kind_of(block) == PEG_BLOCK_CALL)
        peg__out_cmember(out, "state", state_of(file, block));
    peg__out_key(out, "block");
    peg__out_value(out, peg_json_root(doc));
    peg__out_end_object(out);
    peg_json_doc_free(doc);
    return PEG_OK;
}

static peg_status end_object_line(struct peg__out *out, peg_error *reterr)
{
    peg__buf_putc(out->buf, '\n');
    out->needs_comma = false;
    return turn_flush(out->buf, reterr);
}

peg_status turn_print_objects(const struct turn_show_options *options, const struct turn_file *file,
                              peg_error *reterr)
{
    struct peg__buf line = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__out out = {.buf = &line};
    peg_status status;

    put_turn(&out, file);
    status = end_object_line(&out, reterr);
    for (size_t i = turn_show_from(options, file->turn); !status && i < peg_turn_len(file->turn);
         i = peg_turn_next(file->turn, options->kinds, i + 1)) {
        status = out_block(&out, file, i, reterr);
        if (!status)
            status = end_object_line(&out, reterr);
    }
    peg__buf_free(&line);
    return status;
}

enum option_id { OPT_KINDS = 1 };

static const struct cli_option option_table[] = {
    {OPT_KINDS, 0, "kinds", "LIST",
     "only blocks of these kinds: system, user, assistant,\nreasoning, call, result, other; or as "
     "files call them:\nllm_text, tool_call, tool_use (a result)",
     .kind = CLI_OWN},
    {0, 0, "last", "N", "only the last N blocks, of those kinds", .kind = CLI_SIZE,
     .at = offsetof(struct turn_show_options, last), .least = 1, .most = PEG_LIMIT_TURN_BLOCKS},
    CLI_OPTION_FLAG(struct turn_show_options, is_full, 0, "full",
                    "cut neither arguments nor results"),
    CLI_OPTION_FLAG(struct turn_show_options, as_json, 0, "json",
                    "print JSON lines: the turn, then each block"),
    TURN_OPTIONS,
    {.name = NULL},
};

/* ---- options ---------------------------------------------------------------------------- */

static bool find_block_kind(peg_str name, peg_block_kind *ret_kind)
{
    for (int kind = PEG_BLOCK_SYSTEM; kind <= PEG_BLOCK_OTHER; kind++) {
        if (peg__str_is(name, peg_block_kind_name((peg_block_kind)kind)) ||
            peg__str_is(name, peg__block_file_kind((peg_block_kind)kind))) {
            *ret_kind = (peg_block_kind)kind;
            return true;
        }
    }
    return false;
}

static bool read_kinds(const char *list, unsigned *ret_kinds)
{
    unsigned kinds = 0;

    for (;;) {
        const size_t len = strcspn(list, ",");
        peg_block_kind kind;

        if (!find_block_kind(peg__strn(list, len), &kind))
            return false;
        kinds |= PEG_BLOCKS(kind);
        if (!list[len])
            break;
        list += len + 1;
    }
    *ret_kinds = kinds;
    return true;
}

static const char *take_kinds(void *into, int id, const char *value)
{
    struct turn_show_options *o = into;

    (void)id;
    return read_kinds(value, &o->kinds)
               ? NULL
               : "some of system, user, assistant, reasoning, call, result and other, with commas "
                 "between them";
}

/* ---- work ------------------------------------------------------------------------------- */

static int show_file(const struct turn_show_options *o, const char *path)
{
    struct turn_file file = TURN_FILE;
    peg_error error;
    peg_status status = turn_load(&o->common, path, &file, &error);

    if (!status)
        status = o->as_json ? turn_print_objects(o, &file, &error) : turn_print(o, &file, &error);
    if (status)
        turn_complain(&o->common, path, &error);
    turn_file_free(&file);
    return status ? CLI_UNUSABLE : CLI_OK;
}

static int show_all(const struct turn_show_options *o, char *const *paths, size_t n)
{
    int answer = CLI_OK;

    for (size_t i = 0; i < n; i++) {
        if (i && !o->as_json)
            putchar('\n');
        if (show_file(o, paths[i]))
            answer = CLI_UNUSABLE;
    }
    return answer;
}

static int run_turn_show(const struct cli_command *self, int argc, char **argv)
{
    struct turn_show_options options = {.kinds = PEG_BLOCKS_ALL};
    struct cli_args args = {.command = self, .argc = argc, .argv = argv};

    if (!cli_read(&args, &options, take_kinds))
        return args.exit;
    if (!cli_reads_stdin_once(args.operands, args.n_operands))
        return cli_bad_use(self, "standard input can be read only once");
    return show_all(&options, args.operands, args.n_operands);
}

const struct cli_command cli_turn_show = {
    .name = "turn show",
    .usage = "[options] FILE...",
    .summary = "print a conversation as a transcript, or as JSON lines",
    .about = "Prints each turn for reading: what it is, which tools it was offered, what the last\n"
             "answer cost, then block by block what was said, called and answered. A call without\n"
             "a result is marked as pending, or as begun if its outcome is unknown.\n"
             "Arguments and results are cut; messages are not. What could steer the terminal is\n"
             "written as \\x1B.\n\n"
             "A FILE is JSON or YAML, by its name (.json, .yaml, .yml) or its first character;\n"
             "`-` is standard input.",
    .options = option_table,
    .min_operands = 1,
    .max_operands = CLI_MANY,
    .needed = "at least one file is needed",
    .notes = "exit status:\n"
             "  0  every file was shown\n"
             "  2  something could not be used: a file that is no turn, an option, a limit (the\n"
             "     other files are still shown)\n\n"
             "examples:\n"
             "  pegboard turn show turn.yaml\n"
             "  pegboard turn show --kinds call,result --last 4 --full turn.json\n"
             "  pegboard turn show --json turn.json | jq 'select(.state == \"pending\").block'",
    .run = run_turn_show,
};
