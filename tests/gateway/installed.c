/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Built against what is installed, as C and as C++, with pkg-config alone: a host keeps the
 * toolsets of its gateway in a store of its own, and a second gateway finds there what was
 * registered with the first. What is wrong is printed, and the program ends with 1.
 */

#include <pegboard/client.h>
#include <pegboard/gateway.h>
#include <pegboard/pegboard.h>
#include <pegboard/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 4 };

struct row {
    char name[64];
    char body[4096];
    peg_store_record record;
};

/* Outlives the gateways. */
struct shelf {
    struct row rows[MAX_ROWS];
    size_t len;
    int n_freed;
};

static void must(int truth, const char *what, const peg_error *error)
{
    if (truth)
        return;
    fprintf(stderr, "%s: %s\n", what, error->message);
    exit(1); /* NOLINT(concurrency-mt-unsafe): nothing is handled at exit */
}

/* ---- the store ------------------------------------------------------------------------------- */

static struct row *find_row(struct shelf *shelf, peg_str name)
{
    for (size_t i = 0; i < shelf->len; i++)
        if (strlen(shelf->rows[i].name) == name.len &&
            memcmp(shelf->rows[i].name, name.ptr, name.len) == 0)
            return &shelf->rows[i];
    return shelf->len < MAX_ROWS ? &shelf->rows[shelf->len++] : NULL;
}

static peg_status fail(peg_error *reterr, peg_status status, const char *code)
{
    if (reterr) {
        memset(reterr, 0, sizeof(*reterr));
        reterr->status = status;
        reterr->code = code;
        reterr->cause = "";
        snprintf(reterr->message, sizeof(reterr->message), "the shelf does not take it");
    }
    return status;
}

static peg_status shelf_put(void *self, const peg_store_record *record, peg_error *reterr)
{
    struct row *row = find_row((struct shelf *)self, record->name);

    if (!row || record->name.len >= sizeof(row->name) || record->body.len >= sizeof(row->body))
        return fail(reterr, PEG_ELIMIT, "E_SHELF_FULL");
    if (row->record.revision >= record->revision)
        return fail(reterr, PEG_ESTATE, "E_STORE_REVISION");
    snprintf(row->name, sizeof(row->name), "%.*s", (int)record->name.len, record->name.ptr);
    snprintf(row->body, sizeof(row->body), "%.*s", (int)record->body.len, record->body.ptr);
    row->record = *record;
    row->record.name = peg_cstr(row->name);
    row->record.body = peg_cstr(row->body);
    return PEG_OK;
}

static peg_status shelf_read(void *self, peg_store_each_fn each, void *user, peg_error *reterr)
{
    struct shelf *shelf = (struct shelf *)self;
    peg_status status = PEG_OK;

    for (size_t i = 0; i < shelf->len && !status; i++)
        status = each(&shelf->rows[i].record, user, reterr);
    return status;
}

static peg_status shelf_forget(void *self, int64_t before_ms, peg_error *reterr)
{
    (void)self, (void)before_ms, (void)reterr;
    return PEG_OK;
}

static void shelf_free(void *self)
{
    ((struct shelf *)self)->n_freed++;
}

/* ---- a gateway with it -------------------------------------------------------------------------
 */

static peg_gateway *serve(struct shelf *shelf, peg_client **ret_client)
{
    const peg_store store = {"shelf", shelf_put, shelf_read, shelf_forget, shelf_free, shelf};
    peg_gateway_config config = {PEG_GATEWAY_CONFIG_INIT};
    peg_client_options options = {PEG_CLIENT_OPTIONS_INIT};
    peg_gateway *gateway = NULL;
    peg_error error;

    config.store = &store;
    config.log_level = PEG_LOG_ERROR;
    must(!peg_gateway_new(&config, &gateway, &error), "a gateway", &error);
    must(!peg_gateway_listen(gateway, "127.0.0.1:0", &error), "listening", &error);
    options.address = peg_gateway_address(gateway);
    must(!peg_client_new(&options, ret_client, &error), "a client", &error);
    return gateway;
}

static void end(peg_gateway *gateway, peg_client *client)
{
    peg_error error;

    peg_client_unref(client);
    must(!peg_gateway_drain(gateway, &error), "draining", &error);
    peg_gateway_free(gateway);
}

static void register_toolset(peg_client *client)
{
    peg_toolset_tool tool;
    peg_toolset_def def = {PEG_TOOLSET_DEF_INIT};
    peg_error error;

    memset(&tool, 0, sizeof(tool));
    tool.name = "forecast";
    tool.description = "Tells the weather.";
    tool.input_schema = peg_cstr("{\"type\":\"object\"}");
    def.name = "weather";
    def.tools = &tool;
    def.n_tools = 1;
    must(!peg_client_register(client, NULL, NULL, &def, NULL, &error), "registering", &error);
}

static void find_toolset(peg_client *client)
{
    peg_toolset *toolset = NULL;
    peg_error error;

    must(!peg_client_get(client, NULL, NULL, "weather", &toolset, &error), "finding it", &error);
    must(toolset->info.n_tools == 1 && strcmp(toolset->tools[0].name, "forecast") == 0,
         "the toolset is another one", &error);
    peg_toolset_unref(toolset);
}

int main(void)
{
    static struct shelf shelf;
    peg_client *client = NULL;
    peg_gateway *gateway = serve(&shelf, &client);
    peg_error none;

    memset(&none, 0, sizeof(none));
    register_toolset(client);
    end(gateway, client);
    must(shelf.len > 0 && shelf.n_freed == 1, "the store was not used", &none);
    gateway = serve(&shelf, &client);
    find_toolset(client);
    end(gateway, client);
    must(shelf.n_freed == 2, "the store was not given back", &none);
    printf("%s is on the shelf\n", shelf.rows[shelf.len - 1].name);
    return 0;
}
