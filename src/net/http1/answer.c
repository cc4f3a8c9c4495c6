/* SPDX-License-Identifier: Apache-2.0 */

/* What an answer is made of, and who waits for one; HTTP/2 (grpc/client/call_page.c) has the same.
 */

#include "base/limits.h"
#include "base/mem.h"
#include "base/refs.h"
#include "net/http1/http1.h"

/* ---- answers ------------------------------------------------------------------------------ */

void net_http1_answer_init(struct net_http1_answer *ret_answer)
{
    *ret_answer = (struct net_http1_answer){.status = 200,
                                            .content_type = "text/plain; charset=utf-8",
                                            .body = PEG__BUF(PEG_LIMIT_HTTP1_ANSWER_BYTES)};
}

void net_http1_answer_free(struct net_http1_answer *answer)
{
    peg__buf_free(&answer->body);
    answer->shared = net_http1_body_unref(answer->shared);
}

static const struct peg__buf *bytes_of(const struct net_http1_answer *answer)
{
    return answer->shared ? &answer->shared->bytes : &answer->body;
}

bool net_http1_answer_is_right(const struct net_http1_answer *answer)
{
    return !answer->body.status && !bytes_of(answer)->status && answer->status >= 200 &&
           answer->status <= 599;
}

peg_str net_http1_answer_body(const struct net_http1_answer *answer)
{
    return peg__buf_view(bytes_of(answer));
}

/* ---- bodies that are shared --------------------------------------------------------------- */

struct net_http1_body *net_http1_body_new(void)
{
    struct net_http1_body *body = peg__alloc_zero(1, sizeof(*body));

    if (!body)
        return NULL;
    atomic_init(&body->n_refs, 1);
    body->bytes.max = PEG_LIMIT_HTTP1_ANSWER_BYTES;
    return body;
}

struct net_http1_body *net_http1_body_ref(struct net_http1_body *body)
{
    if (body)
        peg__refs_take(&body->n_refs);
    return body;
}

struct net_http1_body *net_http1_body_unref(struct net_http1_body *body)
{
    if (!body || !peg__refs_drop(&body->n_refs))
        return NULL;
    peg__buf_free(&body->bytes);
    peg__free(body);
    return NULL;
}

/* ---- who waits ---------------------------------------------------------------------------- */

void net_http1_wait(struct net_http1_waiter *waiters, struct net_http1_waiter *waiter)
{
    waiter->next = waiters;
    waiter->prev = waiters->prev;
    waiter->prev->next = waiter;
    waiters->prev = waiter;
}

void net_http1_not_wait(struct net_http1_waiter *waiter)
{
    if (!waiter->next)
        return;
    waiter->prev->next = waiter->next;
    waiter->next->prev = waiter->prev;
    waiter->next = waiter->prev = NULL;
}

void net_http1_wake(struct net_http1_waiter *waiters)
{
    /* Who waits again, or comes meanwhile, waits for the next time. */
    struct net_http1_waiter woken = *waiters;

    if (waiters->next == waiters)
        return;
    woken.next->prev = &woken;
    woken.prev->next = &woken;
    net_http1_waiters_init(waiters);
    while (woken.next != &woken) {
        struct net_http1_waiter *waiter = woken.next;

        net_http1_not_wait(waiter);
        waiter->wake(waiter);
    }
}
