/* SPDX-License-Identifier: Apache-2.0 */

/* A provider follows its registry: what changes there is offered to the gateway. */

#include "t.h"

#include "provider_world.h"

/* Of the tools of every world none is called more or extra. */
static bool offers(const struct fake_frame *frame, const char *tool)
{
    return strstr(frame->words, tool) != NULL;
}

/* A registry of one tool, so that what is offered is short. */
static void world_attach(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->gateway = fake_new();
    if (peg_registry_new(NULL, 0, &w->registry, NULL))
        T_FAIL("no registry");
    add(w->registry, "echo", run_echo, NULL);
    world_provide(w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_await_stream(w->gateway, 0);
    while (!peg_provider_info(w->provider).is_attached)
        poll(NULL, 0, 1);
}

static void send_offered(struct world *w)
{
    Pegboard__V1__Offered offered = PEGBOARD__V1__OFFERED__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;

    offered.revision = 1;
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_OFFERED;
    response.offered = &offered;
    fake_send(w->gateway, 0, &response);
}

TEST(provider_offers_a_tool_that_is_registered_after_its_start)
{
    struct world w;
    const struct fake_frame *offer;

    world_attach(&w);
    add(w.registry, "more", run_echo, NULL);
    offer = fake_await(w.gateway, FAKE_OFFER, NULL, 0);
    CHECK(offers(offer, "echo("));
    CHECK(offers(offer, "more("));
    world_stop(&w);
}

TEST(provider_does_not_offer_a_tool_any_more_that_is_unregistered_or_hidden)
{
    const char *const names[] = {"more"};
    struct world w;

    world_attach(&w);
    add(w.registry, "more", run_echo, NULL);
    CHECK(offers(fake_await(w.gateway, FAKE_OFFER, NULL, 0), "more("));
    CHECK_INT(peg_registry_hide(w.registry, names, 1, NULL), PEG_OK);
    CHECK(!offers(fake_await(w.gateway, FAKE_OFFER, NULL, 1), "more("));
    CHECK_INT(peg_registry_clear_hidden(w.registry, NULL), PEG_OK);
    CHECK(offers(fake_await(w.gateway, FAKE_OFFER, NULL, 2), "more("));
    CHECK_INT(peg_registry_unregister(w.registry, peg_cstr("more"), NULL), PEG_OK);
    CHECK(!offers(fake_await(w.gateway, FAKE_OFFER, NULL, 3), "more("));
    world_stop(&w);
}

/* Its Hello has the tools of before, and there is no stream yet to tell of others. */
TEST(provider_offers_tools_that_come_while_it_attaches)
{
    Pegboard__V1__Welcome welcome = PEGBOARD__V1__WELCOME__INIT;
    Pegboard__V1__AttachResponse response = PEGBOARD__V1__ATTACH_RESPONSE__INIT;
    struct world w;

    memset(&w, 0, sizeof(w));
    w.gateway = fake_new();
    if (peg_registry_new(NULL, 0, &w.registry, NULL))
        T_FAIL("no registry");
    w.gateway->is_mute = true;
    world_provide(&w, (peg_provider_options){PEG_PROVIDER_OPTIONS_INIT, .concurrency = 1});
    fake_await(w.gateway, FAKE_HELLO, NULL, 0);
    add(w.registry, "more", run_echo, NULL);
    response.frame_case = PEGBOARD__V1__ATTACH_RESPONSE__FRAME_WELCOME;
    response.welcome = &welcome;
    fake_send(w.gateway, 0, &response);
    CHECK(offers(fake_await(w.gateway, FAKE_OFFER, NULL, 0), "more("));
    world_stop(&w);
}

TEST(provider_offers_what_changed_meanwhile_when_its_offer_was_answered)
{
    struct world w;

    world_attach(&w);
    w.gateway->keeps_offered = true;
    add(w.registry, "more", run_echo, NULL);
    fake_await(w.gateway, FAKE_OFFER, NULL, 0);
    add(w.registry, "extra", run_echo, NULL);
    CHECK_INT(peg_registry_unregister(w.registry, peg_cstr("echo"), NULL), PEG_OK);
    CHECK_INT(fake_count(w.gateway, FAKE_OFFER, NULL), 1);
    send_offered(&w);
    CHECK(offers(fake_await(w.gateway, FAKE_OFFER, NULL, 1), "extra("));
    CHECK(!offers(fake_await(w.gateway, FAKE_OFFER, NULL, 1), "echo("));
    world_stop(&w);
}

TEST(provider_reports_refused_tools_and_offers_them_again_if_asked)
{
    struct world w;

    world_attach(&w);
    w.gateway->refuses_offers = true;
    add(w.registry, "more", run_echo, NULL);
    while (!atomic_load(&w.n_refused_offers))
        poll(NULL, 0, 1);
    CHECK_INT(atomic_load(&w.n_lost), 0);
    peg_provider_refresh(w.provider);
    CHECK(offers(fake_await(w.gateway, FAKE_OFFER, NULL, 1), "more("));
    world_stop(&w);
}

TEST(provider_offers_another_description_version_and_tags)
{
    static const char *const tags[] = {"new", NULL};
    struct world w;
    peg_error error;

    world_attach(&w);
    CHECK_INT(peg_provider_describe(w.provider, "x", "no version", NULL, &error), PEG_EINVAL);
    CHECK_STR(peg_cstr(error.where), "/version");
    CHECK_STATUS(peg_provider_describe(w.provider, "other words", "2.0.0", tags, &error), PEG_OK,
                 error);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_OFFER, NULL, 0)->data), "other words|2.0.0|new");
    CHECK_STATUS(peg_provider_describe(w.provider, NULL, NULL, NULL, &error), PEG_OK, error);
    CHECK_STR(peg_cstr(fake_await(w.gateway, FAKE_OFFER, NULL, 1)->data), "||");
    world_stop(&w);
}

TORTURE(describing_a_toolset_survives_any_allocation_failure)
{
    static const char *const tags[] = {"a", "b", NULL};
    struct remote__prov_about *about = NULL;
    const peg_status status = remote__prov_about_new("words", "1.0.0", tags, &about, NULL);

    remote__prov_about_free(about);
    return status;
}

TEST(provider_that_has_ended_ignores_changes)
{
    struct world w;

    world_attach(&w);
    w.provider = peg_provider_free(w.provider);
    add(w.registry, "more", run_echo, NULL);
    CHECK_INT(fake_count(w.gateway, FAKE_OFFER, NULL), 0);
    world_stop(&w);
}
