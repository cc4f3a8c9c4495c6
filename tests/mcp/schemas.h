/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_TESTS_MCP_SCHEMAS_H
#define PEG_TESTS_MCP_SCHEMAS_H

/*
 * Whether what we send is what the protocol's own schemas describe: schema.json of both revisions,
 * beside the source tree or where PEG_MCP_DATA says. Without them nothing is checked, and
 * schemas_are_there() says so.
 */

#include "../suite.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/schema.h"

struct schemas {
    peg_schema_docs *docs; /* NULL: not there */
};

static const char *const schema_versions[] = {"2025-11-25", "2026-07-28"};

static inline bool schemas_find(char path[SUITE_PATH])
{
    return suite_find(path, "mcp", "PEG_MCP_DATA");
}

static inline bool schemas_add(struct schemas *schemas, const char *folder, const char *version)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    char path[SUITE_PATH];
    char uri[64];
    peg_str text;
    bool is_added;

    suite_path(path, "%s/%s/schema.json", folder, version);
    text = suite_read(path);
    snprintf(uri, sizeof(uri), "mcp:%s", version);
    is_added =
        peg_json_parse(text, NULL, &doc, NULL) == PEG_OK &&
        peg_schema_docs_add(schemas->docs, peg_cstr(uri), peg_json_root(doc), NULL) == PEG_OK;
    free(peg__unconst(text.ptr));
    return is_added;
}

static inline void schemas_load(struct schemas *schemas)
{
    char folder[SUITE_PATH];

    schemas->docs = NULL;
    if (!schemas_find(folder))
        return;
    schemas->docs = peg_schema_docs_new();
    for (size_t i = 0; i < 2; i++) {
        if (!schemas_add(schemas, folder, schema_versions[i]))
            exit(EXIT_FAILURE);
    }
}

static inline void schemas_free(struct schemas *schemas)
{
    schemas->docs = peg_schema_docs_free(schemas->docs);
}

/* "" if the value is a `definition` of the revision, else why not. */
static inline void schemas_check(const struct schemas *schemas, bool is_modern,
                                 const char *definition, const peg_json *value, char ret_why[512])
{
    PEG_CLEANUP(peg_schema_unrefp) peg_schema *schema = NULL;
    PEG_CLEANUP(peg_checker_freep) peg_checker *checker = NULL;
    PEG_CLEANUP(peg_report_freep) peg_report *report = NULL;
    const peg_schema_options options = {PEG_SCHEMA_OPTIONS_INIT, .docs = schemas->docs,
                                        .max_subschemas = 20000};
    char text[256];
    peg_error error;

    ret_why[0] = '\0';
    if (!schemas->docs)
        return;
    snprintf(text, sizeof(text), "{\"$ref\":\"mcp:%s#/$defs/%s\"}", schema_versions[is_modern],
             definition);
    if (peg_schema_compile(peg_cstr(text), &options, &schema, &error) ||
        peg_checker_new(NULL, &checker, &error) || peg_report_new(&report, &error)) {
        snprintf(ret_why, 512, "%s: %s", definition, error.message);
        return;
    }
    if (peg_schema_report(schema, checker, value, report) != PEG_VALID)
        snprintf(ret_why, 512, "no %s of %s: at '%.*s': %.*s", definition,
                 schema_versions[is_modern], PEG_ARG(peg_report_at(report, 0)->instance),
                 PEG_ARG(peg_report_at(report, 0)->message));
}

/* ---- which definition ---- */

struct schemas_row {
    const char *method;
    const char *definition;
};

static inline const char *schemas_row(const struct schemas_row *rows, size_t n, peg_str method)
{
    for (size_t i = 0; i < n; i++) {
        if (peg__str_is(method, rows[i].method))
            return rows[i].definition;
    }
    return NULL;
}

/* Of the result of a method. */
static inline const char *schemas_result(peg_str method, const peg_json *result)
{
    static const struct schemas_row rows[] = {
        {"initialize", "InitializeResult"},
        {"server/discover", "DiscoverResult"},
        {"tools/list", "ListToolsResult"},
        {"tools/call", "CallToolResult"},
        {"resources/list", "ListResourcesResult"},
        {"resources/templates/list", "ListResourceTemplatesResult"},
        {"resources/read", "ReadResourceResult"},
        {"prompts/list", "ListPromptsResult"},
        {"prompts/get", "GetPromptResult"},
        {"completion/complete", "CompleteResult"},
        {"subscriptions/listen", "SubscriptionsListenResult"},
        {"tasks/get", "Result"},
        {"tasks/update", "Result"},
        {"tasks/cancel", "Result"},
    };
    const peg_str type = peg_json_str(peg_json_get(result, "resultType"));
    const char *definition = schemas_row(rows, sizeof(rows) / sizeof(rows[0]), method);

    if (peg__str_is(type, "input_required"))
        return "InputRequiredResult";
    if (peg__str_is(type, "task"))
        return "Result";
    return definition ? definition : "EmptyResult";
}

static inline const char *schemas_error(const peg_json *error, bool is_modern)
{
    switch (peg_json_int64_or(peg_json_get(error, "code"), 0)) {
    case -32021:
        return "MissingRequiredClientCapabilityError";
    case -32022:
        return "UnsupportedProtocolVersionError";
    default:
        (void)is_modern;
        return "JSONRPCErrorResponse";
    }
}

/* Of a notification, or a request to a legacy client. */
static inline const char *schemas_message(peg_str method)
{
    static const struct schemas_row rows[] = {
        {"notifications/progress", "ProgressNotification"},
        {"notifications/message", "LoggingMessageNotification"},
        {"notifications/tools/list_changed", "ToolListChangedNotification"},
        {"notifications/prompts/list_changed", "PromptListChangedNotification"},
        {"notifications/resources/list_changed", "ResourceListChangedNotification"},
        {"notifications/resources/updated", "ResourceUpdatedNotification"},
        {"notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotification"},
        {"elicitation/create", "ElicitRequest"},
        {"sampling/createMessage", "CreateMessageRequest"},
        {"roots/list", "ListRootsRequest"},
    };
    const char *definition = schemas_row(rows, sizeof(rows) / sizeof(rows[0]), method);

    return definition ? definition : "no such message";
}

#endif
