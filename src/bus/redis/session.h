/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BUS_REDIS_SESSION_H
#define PEG_BUS_REDIS_SESSION_H

/*
 * A connection to a Redis that is fit for a registry, made again whenever it is lost:
 *
 *   look up -> connect -> HELLO 3, SELECT, INFO -> ready -> lost -> back-off -> look up ...
 *
 * Fit is a primary of version 7.0 or later, by itself (no Redis Cluster, no Sentinel), that is not
 * loading and does not evict keys. On the loop's thread.
 */

#include "bus/redis/conn.h"
#include "bus/redis/url.h"

enum { REDIS_RUN_ID_TEXT = 41 };

struct redis_session;

/* Any of them may free the session. */
struct redis_session_events {
    void (*on_ready)(void *user);
    void (*on_push)(void *user, const struct resp_value *push);
    void (*on_drained)(void *user);
    /* An attempt failed, or a connection that was ready is lost (`was_ready`); another attempt
     * follows. */
    void (*on_lost)(void *user, const peg_error *error, bool was_ready);
};

struct redis_session_options {
    const struct redis_url *url; /* borrowed, as long as the session is there */
    struct net_tls_config *tls;  /* of rediss:// */
    const char *client_name;     /* as CLIENT LIST shows it; borrowed until new() returns */
    int64_t timeout_ms;
    struct redis_traffic *traffic; /* outlives the session; NULL: it is not counted */
};

/* Begins to connect; events come later. */
peg_status redis_session_new(struct net_loop *loop, const struct redis_session_options *options,
                             const struct redis_session_events *events, void *user,
                             struct redis_session **ret_session, peg_error *reterr);
/* Requests without a reply get NULL; what was sent may still arrive. NULL is allowed. */
struct redis_session *redis_session_free(struct redis_session *session);

bool redis_session_is_ready(const struct redis_session *session);
/* Does nothing unless it is ready and what was sent before has left. */
void redis_session_send(struct redis_session *session, struct redis_queue *queue);
/* Ends the connection as soon as no reply is being read, and connects again. */
void redis_session_doom(struct redis_session *session, const peg_error *error);
/* Of the server that it is connected to. */
const char *redis_session_run_id(const struct redis_session *session);
bool redis_session_lacks_aof(const struct redis_session *session);

/* ---- replies ---- */

/* A reply that is an error as one of ours, with what to do: E_REDIS_AUTH, E_REDIS_LOADING,
 * E_REDIS_ROLE, E_REDIS_MODE, E_REDIS_MEMORY, E_REDIS_REPLY. */
void redis_fail_reply(peg_error *ret_error, const struct resp_value *reply);
/* An error that every command would get. */
bool redis_reply_is_fatal(const struct resp_value *reply);
/* Dooms the connection for such an error, so that the next handshake says what is wrong. NULL is
 * allowed. */
void redis_session_check_reply(struct redis_session *session, const struct resp_value *reply);
/* The reply to INFO: is the server fit, and still the same? */
peg_status redis_check_info(peg_str info, char ret_run_id[REDIS_RUN_ID_TEXT], peg_error *reterr);
/* The same: does the server say that it writes no append-only file? */
bool redis_info_lacks_aof(peg_str info);
/* By two settings of the server: what is at risk, and what to change. NULL: they are well. Static.
 */
const char *redis_persistence_risk(peg_str appendonly, peg_str appendfsync);

#endif
