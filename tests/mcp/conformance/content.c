/* SPDX-License-Identifier: Apache-2.0 */

/* Tools that answer with content of each kind, report while they work, and fail. */

#include <pthread.h>
#include <string.h>

#include "fixture.h"
#include "pegboard/cleanup.h"
#include "pegboard/media.h"
#include "pegboard/provider.h"

static const unsigned char png[] = {
    0x89, 'P',  'N',  'G',  0x0d, 0x0a, 0x1a, 0x0a, 0,    0,    0,    0x0d, 'I',  'H',
    'D',  'R',  0,    0,    0,    1,    0,    0,    0,    1,    8,    2,    0,    0,
    0,    0x90, 0x77, 0x53, 0xde, 0,    0,    0,    0x0c, 'I',  'D',  'A',  'T',  8,
    0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0,    0,    3,    1,    1,    0,    0x18, 0xdd, 0x8d,
    0xb0, 0,    0,    0,    0,    'I',  'E',  'N',  'D',  0xae, 0x42, 0x60, 0x82};
static const unsigned char wav[] = {'R', 'I', 'F', 'F', 38, 0,  0, 0, 'W',  'A', 'V', 'E',
                                    'f', 'm', 't', ' ', 16, 0,  0, 0, 1,    0,   1,   0,
                                    64,  31,  0,   0,   64, 31, 0, 0, 1,    0,   8,   0,
                                    'd', 'a', 't', 'a', 2,  0,  0, 0, 0x80, 0x80};

const peg_str fixture_png = {(const char *)png, sizeof(png)};
const peg_str fixture_wav = {(const char *)wav, sizeof(wav)};

#define NO_ARGUMENTS (void)args, (void)user

/* ---- content ---- */

static void say_text(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    peg_call_reply(call, peg_cstr("This is a simple text response for testing."));
}

static void say_error(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    peg_call_fail(call, "This tool intentionally returns an error for testing");
}

static peg_media *make_media(peg_media_kind kind, const char *mime_type, peg_str bytes,
                             const peg_media_note *note)
{
    PEG_CLEANUP(peg_reader_unrefp) peg_reader *reader = NULL;
    peg_media *media = NULL;
    peg_media_def def = {PEG_MEDIA_DEF_INIT, .kind = kind,  .mime_type = mime_type,
                         .filename = "test", .notes = note, .n_notes = note ? 1 : 0};

    if (peg_reader_from_bytes(bytes, &reader, NULL) == PEG_OK) {
        def.reader = reader;
        (void)!peg_media_tool_generated(&def, &media, NULL);
    }
    return media;
}

static void reply_media(peg_call *call, peg_media_kind kind, const char *mime_type, peg_str bytes)
{
    PEG_CLEANUP(peg_media_unrefp) peg_media *media = make_media(kind, mime_type, bytes, NULL);

    if (media)
        peg_call_reply_media(call, &media, 1);
}

static void show_image(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    reply_media(call, PEG_MEDIA_IMAGE, "image/png", fixture_png);
}

static void play_sound(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    reply_media(call, PEG_MEDIA_AUDIO, "audio/wav", fixture_wav);
}

static void embed(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    reply_media(call, PEG_MEDIA_DOCUMENT, "text/plain",
                peg_cstr("This is an embedded resource content."));
}

static void mix(peg_call *call, const peg_json *args, void *user)
{
    const peg_media_note note = {"text:description",
                                 "Multiple content types test:", PEG_TIER_FIRST_PARTY, false};
    PEG_CLEANUP(peg_media_unrefp)
    peg_media *image = make_media(PEG_MEDIA_IMAGE, "image/png", fixture_png, &note);
    PEG_CLEANUP(peg_media_unrefp)
    peg_media *document = make_media(PEG_MEDIA_DOCUMENT, "application/json",
                                     peg_cstr("{\"test\":\"data\",\"value\":123}"), NULL);

    NO_ARGUMENTS;
    if (image && document)
        peg_call_reply_media(call, (peg_media *const[]){image, document}, 2);
}

/* ---- while they work ---- */

static bool pause_a_little(const peg_call *call)
{
    return peg_ctx_wait(peg_call_ctx(call), 50, NULL) == PEG_OK;
}

/* A provider's words become progress at the gateway. */
static void make_progress(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    for (int i = 0; i <= 2; i++) {
        peg_mcp_progress(call, i * 50, 100, NULL);
        peg_provider_delta(call, "stdout", peg_cstr("step\n"));
        (void)!pause_a_little(call);
    }
    peg_call_reply(call, peg_cstr("worked"));
}

static void log_message(peg_call *call, const char *text)
{
    const peg_json data = {.kind = PEG_JSON_STRING, .len = (uint32_t)strlen(text), .u.ptr = text};

    peg_mcp_log(call, PEG_MCP_INFO, "fixture", &data);
    peg_provider_delta(call, "stdout", peg_cstr(text));
}

static void log_steps(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    log_message(call, "Tool execution started");
    (void)!pause_a_little(call);
    log_message(call, "Tool processing data");
    (void)!pause_a_little(call);
    log_message(call, "Tool execution completed");
    peg_call_reply(call, peg_cstr("logged"));
}

static void wait_and_answer(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    (void)!pause_a_little(call);
    peg_call_reply(call, peg_cstr("Reconnection test completed"));
}

/* ---- changes ---- */

/* A tool comes, or goes again. */
static void change_tools(peg_call *call, const peg_json *args, void *user)
{
    static const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "test_changing",
                                     .description = "Comes and goes", .run = say_text};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    peg_registry *registry = peg_ctx_registry(peg_call_ctx(call));
    PEG_CLEANUP(peg_tool_unrefp) peg_tool *tool = NULL;

    NO_ARGUMENTS;
    pthread_mutex_lock(&lock);
    if (peg_registry_unregister(registry, peg_cstr(def.name), NULL) &&
        peg_tool_new(&def, &tool, NULL) == PEG_OK)
        (void)!peg_registry_register(registry, tool, false, NULL);
    pthread_mutex_unlock(&lock);
    peg_call_reply(call, peg_cstr("changed"));
}

static void change_prompts(peg_call *call, const peg_json *args, void *user)
{
    NO_ARGUMENTS;
    fixture_change_prompts();
    peg_call_reply(call, peg_cstr("changed"));
}

/* ---- the tools ---- */

#define SCHEMA_2020_12                                                                             \
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","           \
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"      \
    "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"                          \
    "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"   \
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                      \
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                            \
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"             \
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                            \
    "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"                       \
    "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

static const peg_tool_def defs[] = {
    {PEG_TOOL_DEF_INIT, .name = "test_simple_text", .description = "Text", .run = say_text},
    {PEG_TOOL_DEF_INIT, .name = "test_image_content", .description = "A picture",
     .run = show_image},
    {PEG_TOOL_DEF_INIT, .name = "test_audio_content", .description = "A sound", .run = play_sound},
    {PEG_TOOL_DEF_INIT, .name = "test_embedded_resource", .description = "A document",
     .run = embed},
    {PEG_TOOL_DEF_INIT, .name = "test_multiple_content_types", .description = "Several kinds",
     .run = mix},
    {PEG_TOOL_DEF_INIT, .name = "test_error_handling", .description = "Fails", .run = say_error},
    {PEG_TOOL_DEF_INIT, .name = "test_tool_with_progress", .description = "Reports progress",
     .run = make_progress},
    {PEG_TOOL_DEF_INIT, .name = "test_tool_with_logging", .description = "Logs", .run = log_steps},
    {PEG_TOOL_DEF_INIT, .name = "test_logging_tool", .description = "Logs", .run = log_steps},
    {PEG_TOOL_DEF_INIT, .name = "test_reconnection", .description = "Takes a moment",
     .run = wait_and_answer},
    {PEG_TOOL_DEF_INIT, .name = "test_trigger_tool_change", .description = "Changes the tools",
     .run = change_tools},
    {PEG_TOOL_DEF_INIT, .name = "test_trigger_prompt_change", .description = "Changes the prompts",
     .run = change_prompts},
    {PEG_TOOL_DEF_INIT, .name = "test_custom_headers", .description = "Has a header of its own",
     .run = say_text,
     .input_schema = "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
                     "\"x-mcp-header\":\"Region\"}},\"required\":[\"region\"]}"},
    {PEG_TOOL_DEF_INIT, .name = "json_schema_2020_12_tool",
     .description = "Tool with JSON Schema 2020-12 features", .run = say_text,
     .input_schema = SCHEMA_2020_12},
};

const struct fixture_tools fixture_content_tools = {defs, sizeof(defs) / sizeof(defs[0])};
