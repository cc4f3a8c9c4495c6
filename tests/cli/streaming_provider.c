/* SPDX-License-Identifier: Apache-2.0 */

/* A provider in C, for what commands cannot do: a tool that writes output while it runs, and one
 * that draws. streaming_provider ADDRESS */

#include <stdio.h>

#include "pegboard/cleanup.h"
#include "pegboard/media.h"
#include "pegboard/pegboard.h"
#include "pegboard/provider.h"

static void count(peg_call *call, const peg_json *args, void *user)
{
    int64_t n = 0;
    char line[32];

    (void)user;
    peg_json_int64(peg_json_get(args, "n"), &n);
    for (int64_t i = 1; i <= n; i++) {
        snprintf(line, sizeof(line), "line %d\n", (int)i);
        peg_provider_delta(call, "stdout", peg_cstr(line));
    }
    peg_provider_delta(call, "stdout", peg_cstr("\033[2J\n")); /* would clear the screen */
    peg_call_add_server_data(call, "note", "ui", args);
    peg_call_reply_json(call, peg_json_get(args, "n"));
}

/* 100,000 bytes that are no text, a link, and nothing else. */
static void draw(peg_call *call, const peg_json *args, void *user)
{
    static char bytes[100000];
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    PEG_CLEANUP(peg_media_unrefp) peg_media *image = NULL;
    PEG_CLEANUP(peg_media_unrefp) peg_media *link = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_IMAGE, .mime_type = "image/png",
                         .filename = "a.png"};
    const peg_media_def elsewhere = {PEG_MEDIA_DEF_INIT, .kind = PEG_MEDIA_DOCUMENT,
                                     .mime_type = "application/pdf", .filename = "b.pdf",
                                     .uri = "https://example.org/b.pdf"};

    (void)args;
    (void)user;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i % 251);
    if (peg_reader_from_bytes((peg_str){bytes, sizeof(bytes)}, &reader, NULL))
        return;
    def.reader = reader;
    if (peg_media_tool_generated(&def, &image, NULL) == PEG_OK &&
        peg_media_retrieved_public(&elsewhere, &link, NULL) == PEG_OK)
        peg_call_reply_media(call, (peg_media *const[]){image, link}, 2);
}

static peg_status offer(peg_registry *registry, const peg_tool_def *def, peg_error *reterr)
{
    PEG_CLEANUP(peg_tool_unrefp) peg_tool *tool = NULL;
    const peg_status status = peg_tool_new(def, &tool, reterr);

    return status ? status : peg_registry_register(registry, tool, false, reterr);
}

int main(int argc, char **argv)
{
    const peg_tool_def counts = {
        PEG_TOOL_DEF_INIT,
        .name = "count",
        .description = "Counts aloud",
        .input_schema = "{\"type\":\"object\",\"required\":[\"n\"],"
                        "\"properties\":{\"n\":{\"type\":\"integer\"}}}",
        .run = count,
    };
    const peg_tool_def draws = {
        PEG_TOOL_DEF_INIT,      .name = "draw",
        .description = "Draws", .run = draw,
        .read_only = true,      .version = "2 beta",
        .examples = "[{}]",     .meta = "{\"title\":\"Draw it\"}",
    };
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "talk",
                                          .address = argc > 1 ? argv[1] : NULL,
                                          .handles_signals = true};
    PEG_CLEANUP(peg_registry_unrefp) peg_registry *registry = NULL;
    peg_error error;

    if (peg_registry_new(NULL, 0, &registry, &error) || offer(registry, &counts, &error) ||
        offer(registry, &draws, &error) || peg_provider_serve(registry, &options, &error)) {
        fprintf(stderr, "%s: %s\n", error.code, error.message);
        return 1;
    }
    return 0;
}
