/* SPDX-License-Identifier: Apache-2.0 */

/* A client: how it is made, lists, searches, tokens, what changes a registry, and its status. */

#include "pegboard/client.h"

#include <fcntl.h>

#include "../t.h"
#include "base/limits.h"
#include "fake_registry.h"
#include "token_files.h"

/* ---- fixture: one registry, or two --------------------------------------------------------------
 */

struct world {
    struct fake fakes[2];
    size_t n_fakes;
    peg_client_registry registries[2];
    peg_client *client;
    peg_error error;
};

static void world_prepare(struct world *w, size_t n)
{
    memset(w, 0, sizeof(*w));
    w->n_fakes = n;
    for (size_t i = 0; i < n; i++)
        fake_prepare(&w->fakes[i]);
}

static peg_status world_serve(struct world *w)
{
    peg_status status = PEG_OK;

    for (size_t i = 0; i < w->n_fakes && !status; i++) {
        status = fake_serve(&w->fakes[i]);
        w->error = w->fakes[i].error;
        w->registries[i].size = sizeof(w->registries[i]);
        w->registries[i].name = i ? "second" : "first";
        w->registries[i].address = w->fakes[i].address;
    }
    return status;
}

static peg_status world_connect(struct world *w)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = w->registries,
                                        .n_registries = w->n_fakes};

    return peg_client_new(&options, &w->client, &w->error);
}

/* One registry with "weather". */
static peg_status world_open(struct world *w)
{
    peg_status status;

    world_prepare(w, 1);
    fake_add(&w->fakes[0], "weather", "geo");
    if ((status = world_serve(w)) || (status = world_connect(w)))
        return status;
    return PEG_OK;
}

/* Two, with "mail" and "weather" in the first, "chat" and "weather" in the second. */
static peg_status world_open_two(struct world *w)
{
    peg_status status;

    world_prepare(w, 2);
    fake_add(&w->fakes[0], "mail", NULL);
    fake_add(&w->fakes[0], "weather", "geo");
    fake_add(&w->fakes[1], "chat", NULL);
    fake_add(&w->fakes[1], "weather", "geo");
    w->fakes[1].score = 20;
    if ((status = world_serve(w)) || (status = world_connect(w)))
        return status;
    return PEG_OK;
}

static void world_close(struct world *w)
{
    peg_client_unref(w->client);
    for (size_t i = 0; i < w->n_fakes; i++)
        fake_done(&w->fakes[i]);
}

/* "first:mail first:weather " */
static const char *names_of(const peg_toolset_list *list)
{
    static char text[512];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list->len; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s:%s ", list->items[i].registry,
                                list->items[i].name);
    return text;
}

static void write_file(const char *path, const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* ---- options ------------------------------------------------------------------------------------
 */

TEST(a_client_needs_no_gateway_to_be_made)
{
    peg_client *client;
    peg_error error;

    CHECK_STATUS(peg_client_new(NULL, &client, &error), PEG_OK, error);
    CHECK(!peg_client_unref(client));
    CHECK(!peg_client_unref(NULL));
}

TEST(options_that_cannot_work_are_refused_by_name)
{
    const peg_client_registry twins[] = {{PEG_CLIENT_REGISTRY_INIT, .name = "a"},
                                         {PEG_CLIENT_REGISTRY_INIT, .name = "a"}};
    const peg_client_registry both[] = {
        {PEG_CLIENT_REGISTRY_INIT, .token = "x", .token_file = "y"}};
    const peg_client_registry spaced[] = {{PEG_CLIENT_REGISTRY_INIT, .token = "two words"}};
    const peg_client_registry missing[] = {
        {PEG_CLIENT_REGISTRY_INIT, .token_file = "does/not/exist"}};
    const peg_client_registry certless[] = {
        {PEG_CLIENT_REGISTRY_INIT, .ca_file = "does/not/exist"}};
    const struct {
        peg_client_options options;
        peg_status status;
        const char *words;
    } cases[] = {
        {{PEG_CLIENT_OPTIONS_INIT, .address = "no address at all"}, PEG_EPARSE, "address"},
        {{PEG_CLIENT_OPTIONS_INIT, .registries = twins, .n_registries = 2}, PEG_EINVAL, "'a'"},
        {{PEG_CLIENT_OPTIONS_INIT, .registries = both, .n_registries = 1},
         PEG_EINVAL,
         "token_file"},
        {{PEG_CLIENT_OPTIONS_INIT, .registries = spaced, .n_registries = 1}, PEG_EINVAL, "token"},
        {{PEG_CLIENT_OPTIONS_INIT, .registries = missing, .n_registries = 1},
         PEG_EIO,
         "does/not/exist"},
        {{PEG_CLIENT_OPTIONS_INIT, .registries = certless, .n_registries = 1},
         PEG_EIO,
         "does/not/exist"},
        {{PEG_CLIENT_OPTIONS_INIT, .registries = twins, .n_registries = 65},
         PEG_ELIMIT,
         "registries, and at most"},
        {{PEG_CLIENT_OPTIONS_INIT, .n_registries = 1}, PEG_EINVAL, "registries"},
    };
    peg_client *client;
    peg_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(peg_client_new(&cases[i].options, &client, &error), cases[i].status, error);
        if (!strstr(error.message, cases[i].words))
            T_FAIL("case %zu says: %s", i, error.message);
    }
}

TEST(a_token_file_that_does_not_hold_one_token_is_refused)
{
    char path[] = "/tmp/peg-token-XXXXXX";
    const int fd = mkstemp(path);
    const peg_client_registry registry = {PEG_CLIENT_REGISTRY_INIT, .token_file = path};
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = &registry,
                                        .n_registries = 1};
    peg_client *client;
    peg_error error;

    CHECK(fd >= 0);
    close(fd);
    for (size_t i = 0; i < N_BAD_TOKEN_FILES; i++) {
        const struct bad_token_file *bad = bad_token_file(i);

        write_file(path, bad->text);
        CHECK_STATUS(peg_client_new(&options, &client, &error), bad->status, error);
        CHECK(strstr(error.message, bad->words));
        CHECK(strstr(error.message, path));
    }
    unlink(path);
}

TEST(a_token_that_is_given_as_a_file_is_not_repeated)
{
    static const char token[] = "peg_NoUFo9dEsC3ZpTQmvVZ1w8dJp0r6xk2yH5bA7cLgtXk";
    const peg_client_registry registry = {PEG_CLIENT_REGISTRY_INIT, .token_file = token};
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .registries = &registry,
                                        .n_registries = 1};
    peg_client *client;
    peg_error error;

    CHECK_STATUS(peg_client_new(&options, &client, &error), PEG_EIO, error);
    CHECK(strstr(error.message, "use token"));
    CHECK(!strstr(error.message, "NoUFo9"));
}

TEST(a_registry_that_the_client_does_not_have_is_refused_by_name)
{
    peg_client *client;
    peg_toolset_list *list;
    peg_error error;

    CHECK_STATUS(peg_client_new(NULL, &client, &error), PEG_OK, error);

    CHECK_INT(peg_client_list(client, NULL, "nowhere", NULL, &list, &error), PEG_EINVAL);

    CHECK(strstr(error.message, "'nowhere'"));
    peg_client_unref(client);
}

/* ---- lists --------------------------------------------------------------------------------------
 */

TEST(a_list_reports_all_about_its_toolsets)
{
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    CHECK_INT(list->len, 1);
    CHECK_INT(list->n_failures, 0);
    CHECK_STR(peg__str(list->items[0].registry), "first");
    CHECK_STR(peg__str(list->items[0].name), "weather");
    CHECK_STR(peg__str(list->items[0].version), "1.2.0");
    CHECK_STR(peg__str(list->items[0].tags[0]), "geo");
    CHECK_STR(peg__str(list->items[0].registered_at), "2026-01-02T03:04:05Z");
    CHECK_INT(list->items[0].health, PEG_HEALTH_HEALTHY);
    CHECK_INT(list->items[0].n_providers, 1);
    CHECK_INT(list->items[0].n_tools, 2);
    peg_toolset_list_free(list);
    world_close(&w);
}

TEST(a_list_reads_all_pages)
{
    struct world w;
    peg_toolset_list *list;

    world_prepare(&w, 1);
    for (size_t i = 0; i < 5; i++)
        fake_add(&w.fakes[0], (const char *[]){"a", "b", "c", "d", "e"}[i], NULL);
    w.fakes[0].page_size = 2;
    CHECK_STATUS(world_serve(&w), PEG_OK, w.error);
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(names_of(list)), "first:a first:b first:c first:d first:e ");
    CHECK_INT(w.fakes[0].n_lists, 3);
    peg_toolset_list_free(list);
    world_close(&w);
}

VOLUME_TEST(a_gateway_whose_pages_never_end_is_given_up)
{
    struct world w;
    peg_toolset_list *list;

    world_prepare(&w, 1);
    for (size_t i = 0; i < FAKE_TOOLSETS; i++)
        fake_add(&w.fakes[0], "a", NULL);
    w.fakes[0].pages_forever = true;
    CHECK_STATUS(world_serve(&w), PEG_OK, w.error);
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);

    CHECK_INT(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_ELIMIT);

    CHECK(strstr(w.error.message, "there are more than"));
    world_close(&w);
}

TEST(a_list_by_tags_is_the_gateways)
{
    const char *const tags[] = {"geo", NULL};
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_list(w.client, NULL, "first", tags, &list, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(names_of(list)), "first:weather ");
    peg_toolset_list_free(list);
    world_close(&w);
}

TEST(a_list_of_several_registries_is_in_the_order_of_the_options)
{
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);
    w.fakes[0].page_size = 1; /* rounds mix them */

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(names_of(list)), "first:mail first:weather second:chat second:weather ");
    peg_toolset_list_free(list);
    world_close(&w);
}

TEST(a_failed_registry_is_reported_beside_the_others_toolsets)
{
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);
    fake_stop(&w.fakes[0]);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(names_of(list)), "second:chat second:weather ");
    CHECK_INT(list->n_failures, 1);
    CHECK_STR(peg__str(list->failures[0].registry), "first");
    CHECK_STR(peg__str(list->failures[0].error.code), "E_SERVICE_UNAVAILABLE");
    CHECK(strstr(list->failures[0].error.message, w.fakes[0].address));
    peg_toolset_list_free(list);
    world_close(&w);
}

TEST(a_list_fails_if_every_registry_does)
{
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);
    fake_stop(&w.fakes[0]);
    fake_stop(&w.fakes[1]);

    CHECK_INT(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_EIO);

    CHECK_STR(peg__str(w.error.code), "E_SERVICE_UNAVAILABLE");
    world_close(&w);
}

TEST(toolsets_that_are_excluded_are_not_there)
{
    const char *const exclude[] = {"mail", NULL};
    const char *const include[] = {"c*", NULL};
    struct world w;
    peg_toolset_list *list;
    peg_search_result *found;
    peg_toolset *toolset;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);
    peg_client_unref(w.client);
    w.registries[0].exclude = exclude;
    w.registries[1].include = include;
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);
    CHECK_STR(peg__str(names_of(list)), "first:weather second:chat ");
    peg_toolset_list_free(list);

    CHECK_STATUS(peg_client_search(w.client, NULL,
                                   &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "a"}, &found,
                                   &w.error),
                 PEG_OK, w.error);
    CHECK_INT(found->len, 2);
    CHECK_INT(found->total, 2);
    peg_search_result_free(found);

    CHECK_INT(peg_client_get(w.client, NULL, NULL, "mail", &toolset, &w.error), PEG_ENOTFOUND);
    CHECK_STR(peg__str(w.error.code), "E_NOT_FOUND");
    world_close(&w);
}

TEST(a_context_that_has_stopped_sends_no_request)
{
    struct world w;
    peg_ctx *ctx;
    peg_cancel *cancel;
    peg_toolset_list *list;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_INT(peg_ctx_with_cancel(NULL, &ctx, &cancel, NULL), PEG_OK);
    peg_cancel_fire(cancel, "enough");

    CHECK_INT(peg_client_list(w.client, ctx, NULL, NULL, &list, &w.error), PEG_ECANCELED);

    CHECK_INT(w.fakes[0].n_lists, 0);
    peg_cancel_unref(cancel);
    peg_ctx_unref(ctx);
    world_close(&w);
}

TEST(what_the_gateway_says_is_kept_as_an_error)
{
    static const struct {
        enum wire_error error;
        peg_status status;
        const char *code;
    } cases[] = {
        {WIRE_PERMISSION_DENIED, PEG_EHOST, "E_PERMISSION_DENIED"},
        {WIRE_VALIDATION, PEG_ESCHEMA, "E_VALIDATION"},
        {WIRE_MISSING_FIELD, PEG_ESCHEMA, "E_VALIDATION"},
        {WIRE_OVERLOADED, PEG_ELIMIT, "E_OVERLOADED"},
        {WIRE_LIMIT, PEG_ELIMIT, "E_LIMIT_EXCEEDED"},
        {WIRE_UNDECIDED, PEG_ELIMIT, "E_UNDECIDED"},
        {WIRE_SERVICE_UNAVAILABLE, PEG_EIO, "E_SERVICE_UNAVAILABLE"},
        {WIRE_CONFLICT, PEG_ESTATE, "E_CONFLICT"},
        {WIRE_FAULT, PEG_EHOST, "E_GATEWAY"},
        {WIRE_TIMEOUT, PEG_ETIMEOUT, "E_TIMEOUT"},
    };
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        pthread_mutex_lock(&w.fakes[0].lock);
        w.fakes[0].broken = cases[i].error;
        pthread_mutex_unlock(&w.fakes[0].lock);

        CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), cases[i].status,
                     w.error);

        CHECK_STR(peg__str(w.error.code), cases[i].code);
        CHECK_STR(peg__str(w.error.message), "broken on purpose");
    }
    world_close(&w);
}

TEST(answers_that_are_no_messages_are_the_gateways_fault)
{
    struct world w;
    peg_toolset_list *list;
    peg_search_result *found;
    peg_toolset *toolset;

    world_prepare(&w, 1);
    w.fakes[0].is_garbage = true;
    CHECK_STATUS(world_serve(&w), PEG_OK, w.error);
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);

    CHECK_INT(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_EHOST);
    CHECK_STR(peg__str(w.error.code), "E_GATEWAY");
    CHECK(strstr(w.error.message, "cannot be read"));
    CHECK_INT(peg_client_get(w.client, NULL, NULL, "weather", &toolset, &w.error), PEG_EHOST);
    CHECK_STR(peg__str(w.error.code), "E_GATEWAY");
    CHECK_INT(peg_client_search(w.client, NULL,
                                &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "a"}, &found,
                                &w.error),
              PEG_EHOST);
    CHECK_STR(peg__str(w.error.code), "E_GATEWAY");
    world_close(&w);
}

TEST(a_gateway_that_has_come_back_is_found_at_once)
{
    struct world w;
    peg_toolset_list *list;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    fake_stop(&w.fakes[0]);
    CHECK_INT(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_EIO);
    CHECK_STATUS(fake_serve(&w.fakes[0]), PEG_OK, w.fakes[0].error);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    peg_toolset_list_free(list);
    world_close(&w);
}

/* ---- search -------------------------------------------------------------------------------------
 */

TEST(a_search_puts_what_all_registries_found_into_one_order)
{
    struct world w;
    peg_search_result *found;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_search(w.client, NULL,
                                   &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "a"}, &found,
                                   &w.error),
                 PEG_OK, w.error);

    CHECK_INT(found->len, 4);
    CHECK_INT(found->total, 4);
    CHECK_STR(peg__str(found->items[0].toolset.registry), "second");
    CHECK_STR(peg__str(found->items[0].toolset.name), "chat");
    CHECK_STR(peg__str(found->items[2].toolset.registry), "first");
    CHECK_STR(peg__str(found->items[0].tools[0]), "echo");
    CHECK(found->items[0].score > found->items[3].score);
    peg_search_result_free(found);
    world_close(&w);
}

TEST(a_search_is_cut_at_its_limit_and_says_how_many_there_are)
{
    struct world w;
    peg_search_result *found;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);

    CHECK_STATUS(
        peg_client_search(w.client, NULL,
                          &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "a", .limit = 3},
                          &found, &w.error),
        PEG_OK, w.error);

    CHECK_INT(found->len, 3);
    CHECK_INT(found->total, 4);
    peg_search_result_free(found);
    world_close(&w);
}

TEST(a_search_tolerates_a_registry_that_fails_and_reports_it)
{
    struct world w;
    peg_search_result *found;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);
    fake_stop(&w.fakes[1]);

    CHECK_STATUS(peg_client_search(w.client, NULL,
                                   &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "weather"},
                                   &found, &w.error),
                 PEG_OK, w.error);

    CHECK_INT(found->len, 1);
    CHECK_INT(found->n_failures, 1);
    CHECK_STR(peg__str(found->failures[0].registry), "second");
    peg_search_result_free(found);
    world_close(&w);
}

TEST(a_search_without_words_is_refused)
{
    peg_client *client;
    peg_search_result *found;
    peg_error error;

    CHECK_STATUS(peg_client_new(NULL, &client, &error), PEG_OK, error);
    CHECK_INT(peg_client_search(client, NULL,
                                &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = ""}, &found,
                                &error),
              PEG_EINVAL);
    CHECK_INT(
        peg_client_search(client, NULL,
                          &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "x", .limit = 1001},
                          &found, &error),
        PEG_EINVAL);
    peg_client_unref(client);
}

/* ---- tokens -------------------------------------------------------------------------------------
 */

TEST(a_token_is_shown_with_every_request)
{
    struct world w;
    peg_toolset_list *list;

    world_prepare(&w, 1);
    w.fakes[0].token = "open-sesame";
    CHECK_STATUS(world_serve(&w), PEG_OK, w.error);
    w.registries[0].token = "open-sesame";
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    peg_toolset_list_free(list);
    world_close(&w);
}

TEST(a_client_without_the_token_is_refused)
{
    struct world w;
    peg_toolset_list *list;

    world_prepare(&w, 1);
    w.fakes[0].token = "open-sesame";
    CHECK_STATUS(world_serve(&w), PEG_OK, w.error);
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);

    CHECK_INT(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_EHOST);

    CHECK_STR(peg__str(w.error.code), "E_UNAUTHENTICATED");
    world_close(&w);
}

TEST(a_token_file_is_read_again_when_its_token_is_refused)
{
    struct world w;
    peg_toolset_list *list;
    char path[] = "/tmp/peg-token-XXXXXX";
    const int fd = mkstemp(path);

    CHECK(fd >= 0);
    close(fd);
    write_file(path, "old\n");
    world_prepare(&w, 1);
    w.fakes[0].token = "new";
    CHECK_STATUS(world_serve(&w), PEG_OK, w.error);
    w.registries[0].token_file = path;
    CHECK_STATUS(world_connect(&w), PEG_OK, w.error);
    write_file(path, "  new\n");

    CHECK_STATUS(peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    CHECK_INT(w.fakes[0].n_refused, 1);
    peg_toolset_list_free(list);
    unlink(path);
    world_close(&w);
}

/* ---- what changes a registry
 * --------------------------------------------------------------------- */

TEST(a_toolset_is_registered_with_its_tools)
{
    const char *const tags[] = {"geo", "eu", NULL};
    const peg_toolset_tool tool = {.name = "echo",
                                   .description = "says it again",
                                   .input_schema = peg__str("{\"type\":\"object\"}")};
    const peg_toolset_def def = {PEG_TOOLSET_DEF_INIT, .name = "maps", .version = "1.0.0",
                                 .tags = tags,         .tools = &tool, .n_tools = 1};
    struct world w;
    char *stream_id = NULL;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_register(w.client, NULL, NULL, &def, &stream_id, &w.error), PEG_OK,
                 w.error);

    CHECK_STR(peg__str(w.fakes[0].registered), "maps 1.0.0 2 1");
    CHECK_STR(peg__str(stream_id), "toolset:x:requests");
    peg_free(stream_id);
    world_close(&w);
}

TEST(a_definition_that_cannot_be_sent_is_refused_here)
{
    const peg_toolset_tool bare = {.name = "echo"};
    const peg_toolset_tool crooked = {.name = "a b", .description = "x"};
    const peg_toolset_def defs[] = {
        {PEG_TOOLSET_DEF_INIT, .name = "no name"},
        {PEG_TOOLSET_DEF_INIT, .name = "maps", .tools = &bare, .n_tools = 1},
        {PEG_TOOLSET_DEF_INIT, .name = "maps", .tools = &crooked, .n_tools = 1},
        {PEG_TOOLSET_DEF_INIT, .name = "maps", .n_tools = 1},
    };
    peg_client *client;
    peg_error error;

    CHECK_STATUS(peg_client_new(NULL, &client, &error), PEG_OK, error);
    for (size_t i = 0; i < sizeof(defs) / sizeof(defs[0]); i++)
        CHECK_INT(peg_client_register(client, NULL, NULL, &defs[i], NULL, &error), PEG_EINVAL);
    peg_client_unref(client);
}

TEST(a_toolset_is_unregistered_by_name)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_unregister(w.client, NULL, NULL, "weather", &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(w.fakes[0].unregistered), "weather");
    CHECK_INT(peg_client_unregister(w.client, NULL, NULL, "a b", &w.error), PEG_EINVAL);
    world_close(&w);
}

TEST(what_changes_a_registry_needs_its_name_if_there_are_several)
{
    struct world w;

    CHECK_STATUS(world_open_two(&w), PEG_OK, w.error);

    CHECK_INT(peg_client_unregister(w.client, NULL, NULL, "mail", &w.error), PEG_EINVAL);
    CHECK_STATUS(peg_client_unregister(w.client, NULL, "second", "chat", &w.error), PEG_OK,
                 w.error);

    CHECK_STR(peg__str(w.fakes[1].unregistered), "chat");
    world_close(&w);
}

TEST(a_node_reports_its_status)
{
    struct world w;
    peg_node_status *status;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_status(w.client, NULL, NULL, true, &status, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(status->node_id), "node-1");
    CHECK_STR(peg__str(status->bus), "local");
    CHECK_INT(status->n_toolsets, 1);
    CHECK_INT(status->outcomes.n_result, 5);
    CHECK_INT(status->outcomes.n_refused, 2);
    CHECK_INT(status->n_toolset_statuses, 1);
    CHECK_STR(peg__str(status->toolsets[0].toolset.name), "weather");
    CHECK_INT(status->toolsets[0].n_in_flight, 3);
    CHECK(status->totals.n_nodes == 2 && status->totals.n_in_flight == 6);
    CHECK(status->totals.n_queued == 7 && status->totals.calls_per_s > 2.4);
    CHECK_INT(status->totals.outcomes.n_result, 5);
    CHECK_INT(status->n_nodes, 1);
    CHECK_STR(peg__str(status->nodes[0].id), "node-2");
    CHECK(status->nodes[0].calls_per_s > 1.4 && status->nodes[0].outcomes.n_refused == 2);
    peg_node_status_free(status);
    world_close(&w);
}

TEST(all_nodes_of_a_registry_are_listed)
{
    struct world w;
    peg_node_list *list;
    const peg_node *node;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_nodes(w.client, NULL, NULL, &list, &w.error), PEG_OK, w.error);

    CHECK_STR(peg__str(list->registry_name), "tools");
    CHECK_STR(peg__str(list->bus), "redis");
    CHECK_INT(list->n_nodes, 2);
    CHECK(list->nodes[0].answers && !list->nodes[0].pings);
    node = &list->nodes[1];
    CHECK_STR(peg__str(node->id), "node-2");
    CHECK_STR(peg__str(node->address), "10.0.0.2:9090");
    CHECK_STR(peg__str(node->version), "1.2.3");
    CHECK_STR(peg__str(node->state), "draining");
    CHECK_STR(peg__str(node->store), "memory");
    CHECK(node->started_ms == 1 && node->n_threads == 2 && node->protocol == 3 && node->pings);
    CHECK(node->lease_ms == 4 && node->lease_left_ms == 5 && node->n_providers == 6);
    CHECK(node->n_in_flight == 7 && node->n_queued == 8 && node->n_settled == 9);
    CHECK(node->n_unknown == 10 && node->round_trip_us == 11 && !node->answers);
    peg_node_list_free(list);
    world_close(&w);
}

TEST(a_node_is_drained_by_its_id)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_drain_node(w.client, NULL, NULL, "node-2", 5, &w.error), PEG_OK,
                 w.error);
    CHECK_INT(peg_client_drain_node(w.client, NULL, NULL, "node-9", 0, &w.error), PEG_ENOTFOUND);
    CHECK_INT(peg_client_drain_node(w.client, NULL, NULL, "", 0, &w.error), PEG_EINVAL);
    world_close(&w);
}

TEST(what_became_of_a_call_is_described)
{
    struct world w;
    const peg_remote_call_query query = {PEG_REMOTE_CALL_QUERY_INIT, .call_id = "call-7"};
    peg_remote_call_info *info;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_client_describe_call(w.client, NULL, &query, &info, &w.error), PEG_OK,
                 w.error);

    CHECK_STR(peg__str(info->call_id), "call-7");
    CHECK_STR(peg__str(info->state), "ended");
    CHECK_STR(peg__str(info->toolset), "weather");
    CHECK_STR(peg__str(info->tool), "forecast");
    CHECK_STR(peg__str(info->principal), "local");
    CHECK(info->admitted_ms == 1 && info->deadline_ms == 2 && info->kept_until_ms == 3);
    CHECK_STR(peg__str(info->coordinator_id), "node-1");
    CHECK_STR(peg__str(info->coordinator_address), "10.0.0.1:9090");
    CHECK(info->is_coordinator_lost && info->is_other_epoch && info->n_waiters == 4);
    CHECK_INT(info->n_attempts, 2);
    CHECK_STR(peg__str(info->attempts[0].state), "revoked");
    CHECK_STR(peg__str(info->attempts[0].provider), "");
    CHECK_STR(peg__str(info->attempts[1].state), "claimed");
    CHECK_STR(peg__str(info->attempts[1].provider), "incarnation-1");
    CHECK_STR(peg__str(info->attempts[1].node_id), "node-2");
    CHECK_STR(peg__str(info->attempts[1].address), "10.0.0.2:9090");
    CHECK(info->attempts[1].number == 2 && info->attempts[1].is_attached);
    CHECK_STR(peg__str(info->outcome), "error");
    CHECK_STR(peg__str(info->error_name), "no_weather");
    CHECK_STR(peg__str(info->error_message), "there is none today");
    CHECK(info->was_started && info->result_bytes == 5);
    peg_remote_call_info_free(info);
    world_close(&w);
}

TEST(a_call_is_described_by_its_id_or_its_identity)
{
    const peg_remote_call_query by_key = {PEG_REMOTE_CALL_QUERY_INIT, .toolset = "weather",
                                          .idempotency_key = "k"};
    const peg_remote_call_query unknown = {PEG_REMOTE_CALL_QUERY_INIT, .toolset = "weather",
                                           .run_id = "r", .tool_call_id = "c"};
    const peg_remote_call_query half = {PEG_REMOTE_CALL_QUERY_INIT, .toolset = "weather",
                                        .run_id = "r"};
    const peg_remote_call_query keyless = {PEG_REMOTE_CALL_QUERY_INIT, .idempotency_key = "k"};
    struct world w;
    peg_remote_call_info *info = NULL;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    CHECK_STATUS(peg_client_describe_call(w.client, NULL, &by_key, &info, &w.error), PEG_OK,
                 w.error);
    info = peg_remote_call_info_free(info);
    CHECK_INT(peg_client_describe_call(w.client, NULL, &unknown, &info, &w.error), PEG_ENOTFOUND);
    CHECK_INT(peg_client_describe_call(w.client, NULL, &half, &info, &w.error), PEG_EINVAL);
    CHECK_INT(peg_client_describe_call(w.client, NULL, &keyless, &info, &w.error), PEG_EINVAL);
    CHECK_INT(peg_client_describe_call(w.client, NULL, NULL, &info, &w.error), PEG_EINVAL);
    world_close(&w);
}

/* ---- memory -------------------------------------------------------------------------------------
 */

TORTURE(descriptions_of_calls_survive_any_allocation_failure)
{
    const peg_remote_call_query query = {PEG_REMOTE_CALL_QUERY_INIT, .call_id = "call-7"};
    struct world w;
    peg_remote_call_info *info;
    peg_status status = world_open(&w);

    if (!status)
        status = peg_client_describe_call(w.client, NULL, &query, &info, &w.error);
    if (!status)
        peg_remote_call_info_free(info);
    world_close(&w);
    return status;
}

TORTURE(lists_survive_any_allocation_failure)
{
    struct world w;
    peg_toolset_list *list;
    peg_status status = world_open_two(&w);

    if (!status)
        status = peg_client_list(w.client, NULL, NULL, NULL, &list, &w.error);
    if (!status)
        peg_toolset_list_free(list);
    world_close(&w);
    return status;
}

TORTURE(searches_survive_any_allocation_failure)
{
    struct world w;
    peg_search_result *found;
    peg_status status = world_open_two(&w);

    if (!status)
        status = peg_client_search(w.client, NULL,
                                   &(peg_search_query){PEG_SEARCH_QUERY_INIT, .words = "a"}, &found,
                                   &w.error);
    if (!status)
        peg_search_result_free(found);
    world_close(&w);
    return status;
}

TORTURE(changes_and_status_survive_any_allocation_failure)
{
    const peg_toolset_tool tool = {
        .name = "echo", .description = "x", .input_schema = peg__str("{\"type\":\"object\"}")};
    const peg_toolset_def def = {PEG_TOOLSET_DEF_INIT, .name = "maps", .tools = &tool,
                                 .n_tools = 1};
    struct world w;
    peg_node_status *node;
    peg_node_list *nodes;
    char *stream_id = NULL;
    peg_status status = world_open(&w);

    if (!status)
        status = peg_client_register(w.client, NULL, NULL, &def, &stream_id, &w.error);
    if (!status)
        status = peg_client_status(w.client, NULL, NULL, true, &node, &w.error);
    if (!status)
        peg_node_status_free(node);
    if (!status)
        status = peg_client_nodes(w.client, NULL, NULL, &nodes, &w.error);
    if (!status)
        peg_node_list_free(nodes);
    peg_free(stream_id);
    world_close(&w);
    return status;
}
