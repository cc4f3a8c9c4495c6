/* SPDX-License-Identifier: Apache-2.0 */

/* The resolver of the system is replaced by one that knows some names, so that no network is
 * needed; it runs on a worker as the other would. */

#include <netdb.h>
#include <semaphore.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "net/address.h"
#include "t.h"

/* ---- the resolver ------------------------------------------------------------------------- */

enum { MAX_FOUND = PEG_LIMIT_NET_ADDRESSES + 2 };

static struct addrinfo infos[MAX_FOUND];
static struct net_address addresses[MAX_FOUND];
static sem_t is_asked;
static sem_t may_answer;

static struct addrinfo *answer(const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct net_endpoint endpoint;

        (void)net_endpoint_parse(peg__str(texts[i]), &endpoint, NULL);
        (void)net_endpoint_is_numeric(&endpoint, &addresses[i]);
        infos[i] = (struct addrinfo){.ai_addr = &addresses[i].at.any,
                                     .ai_addrlen = addresses[i].len,
                                     .ai_next = i + 1 < n ? &infos[i + 1] : NULL};
    }
    return infos;
}

static struct addrinfo *answer_many(void)
{
    static char texts[MAX_FOUND][32];
    const char *pointers[MAX_FOUND];

    for (unsigned i = 0; i < MAX_FOUND; i++) {
        snprintf(texts[i], sizeof(texts[i]), "10.0.0.%u:5", i);
        pointers[i] = texts[i];
    }
    return answer(pointers, MAX_FOUND);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *req,
                struct addrinfo **pai)
{
    static const char *const two[] = {"[2001:db8::1]:5", "10.0.0.1:5", "[2001:db8::1]:5"};

    if (strcmp(service, "5") != 0 || req->ai_socktype != SOCK_STREAM)
        return EAI_SERVICE;
    if (strcmp(name, "two.example") == 0)
        *pai = answer(two, 3);
    else if (strcmp(name, "many.example") == 0)
        *pai = answer_many();
    else if (strcmp(name, "slow.example") == 0) {
        sem_post(&is_asked);
        sem_wait(&may_answer);
        *pai = answer(two, 1);
    } else {
        return EAI_NONAME;
    }
    return 0;
}

void freeaddrinfo(struct addrinfo *ai)
{
    (void)ai;
}

/* ---- what was told ------------------------------------------------------------------------ */

struct told {
    struct net_loop *loop;
    unsigned n_calls;
    size_t n;
    char texts[PEG_LIMIT_NET_ADDRESSES][NET_ADDRESS_TEXT];
    peg_error error;
};

static void on_resolved(void *user, const struct net_address *found, size_t n,
                        const peg_error *error)
{
    struct told *told = (struct told *)user;

    told->n_calls++;
    told->n = n;
    for (size_t i = 0; i < n; i++)
        net_address_format(&found[i], told->texts[i]);
    if (error)
        told->error = *error;
    net_loop_stop(told->loop);
}

static struct net_endpoint endpoint_of(const char *text)
{
    struct net_endpoint endpoint;

    CHECK_INT(net_endpoint_parse(peg__str(text), &endpoint, NULL), PEG_OK);
    return endpoint;
}

static struct net_resolve *begin(struct told *told, const char *text)
{
    const struct net_endpoint endpoint = endpoint_of(text);
    struct net_resolve *resolve;
    peg_error error;

    *told = (struct told){0};
    CHECK_STATUS(net_loop_new(&told->loop, &error), PEG_OK, error);
    CHECK_STATUS(net_resolve(told->loop, &endpoint, on_resolved, told, &resolve, &error), PEG_OK,
                 error);
    CHECK_INT(told->n_calls, 0);
    return resolve;
}

static void look_up(struct told *told, const char *text)
{
    (void)begin(told, text);
    while (told->n_calls == 0)
        net_loop_run(told->loop);
    net_loop_free(told->loop);
    CHECK_INT(told->n_calls, 1);
}

/* ---- tests -------------------------------------------------------------------------------- */

TEST(a_name_has_its_addresses_in_order_and_each_once)
{
    static struct told told;

    look_up(&told, "two.example:5");
    CHECK_INT(told.n, 2);
    CHECK_STR(peg__str(told.texts[0]), "[2001:db8::1]:5");
    CHECK_STR(peg__str(told.texts[1]), "10.0.0.1:5");
}

TEST(what_needs_no_lookup_is_told_the_same_way)
{
    static struct told told;

    look_up(&told, "127.0.0.1:9");
    CHECK_INT(told.n, 1);
    CHECK_STR(peg__str(told.texts[0]), "127.0.0.1:9");
    look_up(&told, "unix:x");
    CHECK_STR(peg__str(told.texts[0]), "unix:x");
}

TEST(a_name_that_does_not_exist_is_told)
{
    static struct told told;

    look_up(&told, "nope.example:5");
    CHECK_INT(told.n, 0);
    CHECK_INT(told.error.status, PEG_EIO);
    CHECK_STR(peg__str(told.error.code), "E_RESOLVE");
    CHECK(strstr(told.error.message, "nope.example"));
}

TEST(addresses_beyond_the_limit_are_left_out)
{
    static struct told told;

    look_up(&told, "many.example:5");
    CHECK_INT(told.n, PEG_LIMIT_NET_ADDRESSES);
}

TEST(a_canceled_lookup_tells_nothing)
{
    static struct told told;

    net_resolve_cancel(begin(&told, "127.0.0.1:9"));
    net_loop_free(told.loop);
    CHECK_INT(told.n_calls, 0);

    net_resolve_cancel(begin(&told, "two.example:5"));
    net_loop_free(told.loop);
    CHECK_INT(told.n_calls, 0);
    net_resolve_cancel(NULL);
}

TEST(a_lookup_that_runs_can_be_canceled)
{
    static struct told told;
    struct net_resolve *resolve;

    sem_init(&is_asked, 0, 0);
    sem_init(&may_answer, 0, 0);
    resolve = begin(&told, "slow.example:5");
    sem_wait(&is_asked);
    net_resolve_cancel(resolve);
    sem_post(&may_answer);
    net_loop_free(told.loop);
    CHECK_INT(told.n_calls, 0);
}

TEST(a_lookup_is_told_once_when_its_loop_ends)
{
    static struct told told;

    (void)begin(&told, "two.example:5");
    net_loop_free(told.loop);
    CHECK_INT(told.n_calls, 1);
    if (told.n == 0)
        CHECK_INT(told.error.status, PEG_ECANCELED);
}

TORTURE(a_lookup_survives_any_allocation_failure)
{
    static struct told told;
    const struct net_endpoint endpoint = endpoint_of("two.example:5");
    struct net_resolve *resolve;
    peg_status status;

    told = (struct told){0};
    status = net_loop_new(&told.loop, NULL);
    if (!status)
        status = net_resolve(told.loop, &endpoint, on_resolved, &told, &resolve, NULL);
    CHECK_INT(told.n_calls, 0);
    net_loop_free(told.loop);
    return status;
}
