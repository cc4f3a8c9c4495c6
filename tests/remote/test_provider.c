/* SPDX-License-Identifier: Apache-2.0 */

/* A provider against a gateway that does what the test says: how it attaches, and what it refuses.
 */

#include "t.h"

#include "base/limits.h"
#include "remote/provider_world.h"
#include "token_files.h"

/* ---- attaching ---------------------------------------------------------------------------------
 */

TEST(provider_says_hello_with_the_visible_tools_of_its_registry)
{
    struct world w;
    const struct fake_frame *hello;
    static const char *const hidden[] = {"text",  "bytes", "twice", "fail", "hold",  "wait",
                                         "large", "tell",  "late",  "nest", "mutter"};
    static const char *const tags[] = {"sample", NULL};

    world_prepare(&w);
    CHECK_INT(peg_registry_hide(w.registry, hidden, 11, NULL), PEG_OK);
    world_provide(&w,
                  (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 3,
                                         .max_queued = 2, .description = "Tools of a test",
                                         .version = "1.2.0", .tags = tags, .token = "peg_secret"});
    hello = fake_await(w.gateway, FAKE_HELLO, NULL, 0);

    CHECK_STR(peg_cstr(hello->name), "tools");
    CHECK_INT(hello->number, 5);
    CHECK_INT(strlen(hello->id), 32);
    CHECK_INT(hello->len, 0);
    CHECK_STR(peg_cstr(hello->data), "Tools of a test|1.2.0|sample|tools");
    CHECK_STR(
        peg_cstr(hello->words),
        "echo({\"type\":\"object\"})i0 look({\"type\":\"object\"})7000 "
        "typed({\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},\"requ)i0 ");
    CHECK_STR(peg_cstr(w.gateway->authorization), "Bearer peg_secret");
    world_stop(&w);
}

TEST(provider_ends_if_the_gateway_refuses_its_toolset)
{
    struct world w;
    peg_error error;

    world_prepare(&w);
    w.gateway->refuses = GRPC_PERMISSION_DENIED;
    snprintf(w.gateway->refusal, sizeof(w.gateway->refusal), "it belongs to alice");
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});

    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_EHOST);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_REFUSED");
    CHECK(strstr(error.message, "it belongs to alice"));
    world_stop(&w);
}

/* Registered again it would be there as if nobody had unregistered it. */
TEST(provider_ends_if_its_toolset_was_unregistered)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_end(w.gateway, 0, GRPC_NOT_FOUND);

    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_EHOST);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER_UNREGISTERED");
    CHECK(strstr(error.message, "toolset 'tools' was unregistered"));
    CHECK_INT(fake_count(w.gateway, FAKE_HELLO, NULL), 1);
    world_stop(&w);
}

/* Nobody waits for their results, and whoever frees it waits for them. */
TEST(provider_whose_toolset_was_unregistered_cancels_what_runs)
{
    struct world w;
    peg_error error;

    world_start(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_call(w.gateway, 0, "c1", "wait", "{}");
    sem_wait(&entered);
    fake_end(w.gateway, 0, GRPC_NOT_FOUND);

    CHECK_INT(peg_provider_wait(w.provider, &error), PEG_EHOST);
    world_stop(&w); /* joins its handler */
    CHECK(strstr(seen, "the provider ends"));
}

TEST(provider_tries_again_while_the_gateway_is_not_available)
{
    struct world w;

    world_prepare(&w);
    w.gateway->refuses = GRPC_UNAVAILABLE;
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_await(w.gateway, FAKE_HELLO, NULL, 2);
    w.gateway->refuses = GRPC_OK;

    while (!peg_provider_info(w.provider).is_attached)
        fake_await(w.gateway, FAKE_HELLO, NULL, fake_count(w.gateway, FAKE_HELLO, NULL) - 1);
    CHECK(atomic_load(&w.n_lost) >= 3);
    world_stop(&w);
}

TEST(provider_waits_for_a_gateway_that_comes_later)
{
    struct world w;
    char address[NET_ADDRESS_TEXT];

    world_prepare(&w);
    snprintf(address, sizeof(address), "%s", w.gateway->address);
    snprintf(w.target, sizeof(w.target), "%s", address);
    fake_kill(w.gateway);
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    while (!atomic_load(&w.n_lost))
        poll(NULL, 0, 1);
    fake_listen(w.gateway, address);

    fake_await_stream(w.gateway, 0);
    world_stop(&w);
}

/* ---- mistakes ----------------------------------------------------------------------------------
 */

TEST(provider_does_not_start_with_a_token_file_that_cannot_be_read)
{
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "t",
                                          .token_file = "/nowhere/token"};
    struct world w;
    peg_error error;

    world_prepare(&w);
    CHECK_STATUS(peg_provider_new(w.registry, &options, &w.provider, &error), PEG_OK, error);

    CHECK_INT(peg_provider_start(w.provider, &error), PEG_EIO);
    CHECK_STR(peg_cstr(error.code), "E_PROVIDER");
    CHECK(strstr(error.message, "No such file or directory"));
    world_stop(&w);
}

/* What is in it is shown whole, or not at all. */
TEST(provider_does_not_start_with_a_token_file_that_does_not_hold_one_token)
{
    char path[] = "/tmp/peg-token-XXXXXX";
    const int fd = mkstemp(path);
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "t",
                                          .token_file = path};
    struct world w;
    peg_error error;

    CHECK(fd >= 0);
    world_prepare(&w);
    CHECK_STATUS(peg_provider_new(w.registry, &options, &w.provider, &error), PEG_OK, error);
    for (size_t i = 0; i < N_BAD_TOKEN_FILES; i++) {
        const struct bad_token_file *bad = bad_token_file(i);
        const size_t len = strlen(bad->text);

        CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, bad->text, len, 0) == (ssize_t)len);
        CHECK_INT(peg_provider_start(w.provider, &error), bad->status);
        CHECK_STR(peg_cstr(error.code), "E_PROVIDER");
        CHECK(strstr(error.message, bad->words));
        CHECK(strstr(error.message, path));
    }
    close(fd);
    unlink(path);
    world_stop(&w);
}

/* Longer than what was once cut off without a word. */
TEST(provider_shows_the_whole_token_of_a_file)
{
    enum { LONG = 5000 };
    char path[] = "/tmp/peg-token-XXXXXX";
    const int fd = mkstemp(path);
    char text[LONG + 2];
    char shown[LONG + 16];
    struct world w;

    CHECK(fd >= 0);
    memset(text, 'a', LONG);
    memcpy(text + LONG - 1, "z\n", 3);
    CHECK(write(fd, text, LONG + 1) == LONG + 1);
    close(fd);
    snprintf(shown, sizeof(shown), "Bearer %.*s", LONG, text);
    world_prepare(&w);
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .token_file = path});
    fake_await(w.gateway, FAKE_HELLO, NULL, 0);
    CHECK(strcmp(w.gateway->authorization, shown) == 0); /* CHECK_STR would print all of it */
    unlink(path);
    world_stop(&w);
}

TEST(provider_refuses_options_that_cannot_work)
{
    static const struct {
        peg_provider_options options;
        const char *where;
    } cases[] = {
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = NULL}, "/toolset"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a b"}, "/toolset"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .version = "one"}, "/version"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .concurrency = 257}, "/concurrency"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .max_queued = 10000}, "/max_queued"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .drain_ms = -1}, "/drain_ms"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .token = "x", .token_file = "y"},
         "/token_file"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .token = ""}, "/token"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .token = "two words"}, "/token"},
        {{PEG_PROVIDER_OPTIONS_INIT, .toolset = "a", .cert_file = "x"}, "/key_file"},
    };
    peg_registry *registry = make_registry();
    peg_provider *provider = NULL;
    peg_error error;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(peg_provider_new(registry, &cases[i].options, &provider, &error), PEG_EINVAL);
        CHECK_STR(peg_cstr(error.where), cases[i].where);
    }
    CHECK_INT(peg_provider_new(registry,
                               &(peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .toolset = "a",
                                                       .address = "no:port:here"},
                               &provider, &error),
              PEG_EPARSE);
    CHECK_INT(peg_provider_new(registry,
                               &(peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .toolset = "a",
                                                       .ca_file = "/nowhere"},
                               &provider, &error),
              PEG_EIO);
    peg_registry_unref(registry);
}

TEST(delta_of_a_call_that_came_by_no_provider_is_dropped)
{
    peg_registry *registry = make_registry();
    peg_record *record = NULL;
    peg_error error;

    CHECK_STATUS(peg_registry_call(registry, "tell", "{}", &record, &error), PEG_OK, error);
    CHECK(!peg_record_is_error(record));
    peg_record_unref(record);
    peg_registry_unref(registry);
}

TORTURE(making_a_provider_survives_any_allocation_failure)
{
    static const char *const tags[] = {"a", "b", NULL};
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT, .toolset = "tools",
                                          .tags = tags, .token = "t", .description = "d"};
    peg_registry *registry = NULL;
    peg_provider *provider = NULL;
    peg_status status = peg_registry_new(NULL, 0, &registry, NULL);

    if (!status)
        status = peg_provider_new(registry, &options, &provider, NULL);
    peg_provider_free(provider);
    peg_registry_unref(registry);
    return status;
}
