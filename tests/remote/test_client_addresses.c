/* SPDX-License-Identifier: Apache-2.0 */

/* A client of a registry that has two addresses. */

#include "../t.h"
#include "call_world.h"

/* ---- fixture: two made-up gateways of one registry ------------------------------------------ */

struct two {
    struct world w; /* the first gateway is w.fake */
    struct fake other;
};

static peg_status two_open(struct two *t)
{
    char addresses[2 * NET_ADDRESS_TEXT + 1];
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .address = addresses,
                                        .timeout_ms = WORLD_TIMEOUT_MS};
    peg_status status;

    memset(t, 0, sizeof(*t));
    status = fake_open(&t->w.fake);
    if (!status)
        status = fake_open(&t->other);
    snprintf(addresses, sizeof(addresses), "%s,%s", t->w.fake.address, t->other.address);
    if (!status)
        status = peg_client_new(&options, &t->w.client, &t->w.error);
    return status;
}

static void two_close(struct two *t)
{
    world_close(&t->w);
    fake_done(&t->other);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(calls_go_to_the_first_address)
{
    struct two t;

    CHECK_STATUS(two_open(&t), PEG_OK, t.w.error);
    for (unsigned i = 0; i < 5; i++)
        CHECK_STATUS(call_tool(&t.w, "echo"), PEG_OK, t.w.error);

    CHECK_INT(t.w.fake.n_calls, 5);
    CHECK_INT(t.other.n_calls, 0);
    two_close(&t);
}

TEST(a_gateway_that_drains_is_left_for_another)
{
    struct two t;

    CHECK_STATUS(two_open(&t), PEG_OK, t.w.error);
    atomic_store(&t.w.fake.n_drops, 1);
    CHECK_STATUS(call_tool(&t.w, "drain"), PEG_OK, t.w.error);
    CHECK_INT(t.w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_STATUS(call_tool(&t.w, "echo"), PEG_OK, t.w.error);

    CHECK_INT(t.w.fake.n_calls, 1);
    CHECK_INT(t.other.n_calls, 2);
    two_close(&t);
}

TEST(a_call_is_refused_when_all_gateways_drain)
{
    struct two t;

    CHECK_STATUS(two_open(&t), PEG_OK, t.w.error);
    atomic_store(&t.w.fake.n_drops, 1);
    atomic_store(&t.other.n_drops, 1);
    CHECK_STATUS(call_tool(&t.w, "drain"), PEG_OK, t.w.error);

    CHECK_INT(t.w.result->outcome, PEG_REMOTE_REFUSED);
    CHECK(!t.w.result->was_started);
    CHECK_INT(t.w.fake.n_calls, 1);
    CHECK_INT(t.other.n_calls, 1);
    two_close(&t);
}

TEST(the_only_gateway_that_drains_refuses_the_call)
{
    struct world w;

    CHECK_STATUS(world_open(&w), PEG_OK, w.error);
    atomic_store(&w.fake.n_drops, 1);
    CHECK_STATUS(call_tool(&w, "drain"), PEG_OK, w.error);

    CHECK_INT(w.result->outcome, PEG_REMOTE_REFUSED);
    CHECK_INT(w.fake.n_calls, 1);
    world_close(&w);
}

TEST(a_call_with_an_identity_is_asked_again_at_the_next_address)
{
    peg_remote_request request = request_of("drop");
    struct two t;

    CHECK_STATUS(two_open(&t), PEG_OK, t.w.error);
    atomic_store(&t.w.fake.n_drops, 1);
    request.idempotency_key = "once";
    CHECK_STATUS(call(&t.w, NULL, &request), PEG_OK, t.w.error);

    CHECK_INT(t.w.result->outcome, PEG_REMOTE_RESULT);
    CHECK(t.w.result->was_attached);
    CHECK_INT(t.w.fake.n_calls, 1);
    CHECK_INT(t.other.n_calls, 1);
    CHECK_STR(peg__str(t.other.asked.key), "once");
    two_close(&t);
}

TEST(a_call_without_an_identity_is_not_asked_for_elsewhere)
{
    struct two t;

    CHECK_STATUS(two_open(&t), PEG_OK, t.w.error);
    atomic_store(&t.w.fake.n_drops, 1);
    CHECK_STATUS(call_tool(&t.w, "drop"), PEG_OK, t.w.error);
    CHECK_INT(t.w.result->outcome, PEG_REMOTE_UNKNOWN);
    CHECK_INT(t.other.n_calls, 0);

    CHECK_STATUS(call_tool(&t.w, "echo"), PEG_OK, t.w.error); /* but the next one is */
    CHECK_INT(t.w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(t.other.n_calls, 1);
    two_close(&t);
}

TEST(a_call_goes_elsewhere_when_its_gateway_is_gone)
{
    struct two t;

    CHECK_STATUS(two_open(&t), PEG_OK, t.w.error);
    CHECK_STATUS(call_tool(&t.w, "echo"), PEG_OK, t.w.error);
    fake_done(&t.w.fake);
    CHECK_STATUS(call_tool(&t.w, "echo"), PEG_OK, t.w.error);

    CHECK_INT(t.w.result->outcome, PEG_REMOTE_RESULT);
    CHECK_INT(t.other.n_calls, 1);
    peg_remote_result_free(t.w.result);
    peg_client_unref(t.w.client);
    fake_done(&t.other);
}

TEST(a_bad_address_is_named_by_its_place)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT, .address = "a:1,b:c"};
    peg_client *client;
    peg_error error;

    CHECK_INT(peg_client_new(&options, &client, &error), PEG_EPARSE);
    CHECK_STR(peg__str(error.code), "E_ADDRESS");
    CHECK(strstr(error.message, "the 2nd address: 'b:c' is not an address"));
}

TORTURE(a_client_of_two_addresses_survives_any_allocation_failure)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT,
                                        .address = "127.0.0.1:1,a.example:1"};
    peg_client *client = NULL;
    const peg_status status = peg_client_new(&options, &client, NULL);

    peg_client_unref(client);
    return status;
}
