/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What loops say to each other about sessions, on one node or several. A request of a session is
 * served by the loop that it comes to, when the owner of the session has said that it exists. The
 * owner notes that loop, so that what the client cancels can be brought there; a question names its
 * loop itself, in its id.
 *
 *   USE, END   to the owner: level, whether it has a request, principal
 *   FOUND      its answer, with the number of the question: standing, level, loops
 *   TAKE       to a loop with requests: session, principal, and a message of the client
 *   GONE       likewise: the session is over
 *
 * As everywhere, messages may be lost. An owner that does not answer in time makes the request
 * fail, and the client may repeat it.
 */

#include <endian.h>
#include <string.h>

#include "base/blob.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/limits/mcp.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/mcp/internal.h"
#include "json/json.h"

enum session_message { USE = 1, END, FOUND, TAKE, GONE };

enum {
    LATE_MS = 10 * 1000,
    RENEWAL_MS = PEG_LIMIT_GATEWAY_MCP_SESSION_IDLE_MS / 3,
    ADDRESS_BYTES = 8 + 4,
    /* of FOUND */
    HEAD_BYTES = 2,
    FOUND_BYTES = HEAD_BYTES + PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS * ADDRESS_BYTES,
};

static const struct gw_mcp_peeked nothing_said = {.log_level = MCP_N_LEVELS};

typedef void found_fn(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found);

static bool is_self(const struct gw_mcp *mcp, struct bus_address address)
{
    return bus_address_equal(mcp->sessions.self, address);
}

static struct bus_id id_of(const unsigned char key[GW_MCP_SESSION_KEY])
{
    struct bus_id id = {.len = GW_MCP_SESSION_KEY};

    memcpy(id.bytes, key, GW_MCP_SESSION_KEY);
    return id;
}

/* ---- the owner's side ---- */

static void use_session(struct gw_mcp *mcp, enum session_message what,
                        const unsigned char key[GW_MCP_SESSION_KEY], peg_str body,
                        struct bus_address from, struct gw_mcp_found *ret_found)
{
    const unsigned level = body.len ? (unsigned char)body.ptr[0] : MCP_N_LEVELS;
    struct gw_mcp_session *session =
        body.len < HEAD_BYTES
            ? NULL
            : gw_mcp_session_find(&mcp->sessions, key, peg__str_from(body, HEAD_BYTES),
                                  gw_mcp_now_ms(mcp));

    *ret_found = (struct gw_mcp_found){.standing = session ? GW_MCP_KNOWN : GW_MCP_GONE};
    if (!session)
        return;
    if (level < MCP_N_LEVELS)
        session->log_level = (int)level;
    if (body.ptr[1])
        gw_mcp_session_note(session, from);
    ret_found->log_level = session->log_level;
    ret_found->n_loops = session->n_loops;
    memcpy(ret_found->loops, session->loops, session->n_loops * sizeof(session->loops[0]));
    if (what == END)
        gw_mcp_session_end(&mcp->sessions, session);
}

static void send_found(struct gw_mcp *mcp, const struct bus_message *asked,
                       const struct gw_mcp_found *found)
{
    struct bus_message message = {.kind = BUS_SESSION,
                                  .attempt = FOUND,
                                  .id = asked->id,
                                  .epoch = asked->epoch,
                                  .from = mcp->sessions.self};
    char bytes[FOUND_BYTES];
    char *at = bytes;

    *at++ = (char)found->standing;
    *at++ = (char)found->log_level;
    for (size_t i = 0; i < found->n_loops; i++, at += ADDRESS_BYTES) {
        const uint64_t node = htole64(found->loops[i].node);
        const uint32_t loop = htole32(found->loops[i].loop);

        memcpy(at, &node, 8);
        memcpy(at + 8, &loop, 4);
    }
    message.body = peg__blob_copy(peg__strn(bytes, (size_t)(at - bytes)));
    if (message.body)
        bus_send(mcp->calls->bus, asked->from, &message, NULL);
    peg__blob_unref(message.body);
}

static void answer_use(struct gw_mcp *mcp, const struct bus_message *message, peg_str body)
{
    struct gw_mcp_found found;

    use_session(mcp, (enum session_message)message->attempt, message->id.bytes, body, message->from,
                &found);
    if (message->epoch)
        send_found(mcp, message, &found);
}

/* ---- the side that asks ---- */

static void end_lookup(struct gw_mcp_exchange *exchange, const struct gw_mcp_found *found)
{
    gw_mcp_forget_lookup(exchange);
    exchange->lookup.fn(exchange, found);
}

static void on_lookup_late(struct net_timer *timer)
{
    end_lookup(peg__container_of(timer, struct gw_mcp_exchange, lookup.late),
               &(struct gw_mcp_found){.standing = GW_MCP_UNREACHABLE});
}

/* A loop that cannot be reached is gone, unless the bus itself is in trouble. */
static enum gw_mcp_standing standing_of(const struct bus_answer *answer)
{
    if (answer->status)
        return GW_MCP_UNREACHABLE;
    return answer->written ? GW_MCP_KNOWN : GW_MCP_GONE;
}

static void on_asked(struct bus_wait *wait, const struct bus_answer *answer)
{
    const enum gw_mcp_standing standing = standing_of(answer);

    if (standing != GW_MCP_KNOWN)
        end_lookup(peg__container_of(wait, struct gw_mcp_exchange, lookup.wait),
                   &(struct gw_mcp_found){.standing = standing});
}

static void on_forwarded(struct bus_wait *wait, const struct bus_answer *answer)
{
    end_lookup(peg__container_of(wait, struct gw_mcp_exchange, lookup.wait),
               &(struct gw_mcp_found){.standing = standing_of(answer)});
}

static void begin_lookup(struct gw_mcp_exchange *exchange, found_fn *fn)
{
    struct gw_mcp *mcp = exchange->mcp;
    struct bus *bus = mcp->calls->bus;

    gw_mcp_forget_lookup(exchange);
    exchange->lookup = (struct gw_mcp_lookup){.fn = fn, .number = ++mcp->n_lookups};
    exchange->lookup.late.fn = on_lookup_late;
    PEG_LIST_PUSH(mcp->lookups, &exchange->lookup, next, prev);
    bus_arm(bus, &exchange->lookup.late, bus_now_ns(bus) + LATE_MS * PEG_NS_PER_MS);
}

static struct peg__blob *make_use(const struct gw_mcp_exchange *exchange, int log_level,
                                  bool has_request)
{
    struct peg__buf body = PEG__BUF(PEG_LIMIT_MCP_SENTENCE_BYTES);
    struct peg__blob *blob;

    peg__buf_str(&body, peg__strn((const char[]){(char)log_level, (char)has_request}, HEAD_BYTES));
    peg__buf_puts(&body, exchange->principal);
    blob = body.status ? NULL : peg__blob_copy(peg__buf_view(&body));
    peg__buf_free(&body);
    return blob;
}

/* fn NULL: the answer is not wanted. */
static void ask_owner(struct gw_mcp_exchange *exchange, enum session_message what,
                      const struct gw_mcp_peeked *said, found_fn *fn)
{
    const bool has_request = what == USE && !said->is_answer && !said->is_cancellation;
    struct gw_mcp *mcp = exchange->mcp;
    const struct gw_mcp_session_id *id = &exchange->session_id;
    struct bus_message message = {.kind = BUS_SESSION,
                                  .attempt = what,
                                  .id = id_of(id->key),
                                  .from = mcp->sessions.self,
                                  .body = make_use(exchange, said->log_level, has_request)};
    struct gw_mcp_found found = {.standing = GW_MCP_UNREACHABLE};

    if (message.body && is_self(mcp, id->owner))
        use_session(mcp, what, id->key, peg__blob_str(message.body), mcp->sessions.self, &found);
    if (!message.body || is_self(mcp, id->owner)) {
        peg__blob_unref(message.body);
        if (fn)
            fn(exchange, &found);
        return;
    }
    if (fn) {
        begin_lookup(exchange, fn);
        message.epoch = exchange->lookup.number;
        exchange->lookup.wait.fn = on_asked;
    }
    bus_send(mcp->calls->bus, id->owner, &message, fn ? &exchange->lookup.wait : NULL);
    peg__blob_unref(message.body);
}

void gw_mcp_find_session(struct gw_mcp_exchange *exchange, const struct gw_mcp_peeked *message,
                         found_fn *fn)
{
    ask_owner(exchange, USE, message ? message : &nothing_said, fn);
}

void gw_mcp_delete_session(struct gw_mcp_exchange *exchange, found_fn *fn)
{
    ask_owner(exchange, END, &nothing_said, fn);
}

static void read_found(peg_str body, struct gw_mcp_found *ret_found)
{
    const size_t n = body.len < HEAD_BYTES ? 0 : (body.len - HEAD_BYTES) / ADDRESS_BYTES;

    *ret_found = (struct gw_mcp_found){.standing = GW_MCP_GONE};
    if (body.len < HEAD_BYTES || body.ptr[0] != GW_MCP_KNOWN ||
        n > PEG_LIMIT_GATEWAY_MCP_SESSION_LOOPS)
        return;
    ret_found->standing = GW_MCP_KNOWN;
    ret_found->log_level = (unsigned char)body.ptr[1];
    ret_found->n_loops = n;
    for (size_t i = 0; i < n; i++) {
        uint64_t node;
        uint32_t loop;

        memcpy(&node, body.ptr + HEAD_BYTES + i * ADDRESS_BYTES, 8);
        memcpy(&loop, body.ptr + HEAD_BYTES + i * ADDRESS_BYTES + 8, 4);
        ret_found->loops[i] = (struct bus_address){le64toh(node), le32toh(loop)};
    }
}

static void take_found(struct gw_mcp *mcp, const struct bus_message *message, peg_str body)
{
    struct gw_mcp_lookup *lookup = mcp->lookups;
    struct gw_mcp_found found;

    while (lookup && lookup->number != message->epoch)
        lookup = lookup->next;
    if (!lookup)
        return; /* it came too late */
    read_found(body, &found);
    end_lookup(peg__container_of(lookup, struct gw_mcp_exchange, lookup), &found);
}

/* ---- sessions with requests do not become idle ---- */

static bool is_waiting(const struct gw_mcp_exchange *exchange)
{
    return exchange->session_id.owner.node && exchange->peer &&
           exchange->stage != GW_MCP_ANSWERED && exchange->stage != GW_MCP_READING;
}

static void renew_sessions(struct net_timer *timer)
{
    struct gw_mcp *mcp = peg__container_of(timer, struct gw_mcp, renewal);
    struct bus *bus = mcp->calls->bus;
    bool has_any = false;

    for (struct gw_mcp_exchange *exchange = mcp->exchanges; exchange; exchange = exchange->next) {
        if (!is_waiting(exchange))
            continue;
        has_any = true;
        ask_owner(exchange, USE, &nothing_said, NULL);
    }
    if (has_any)
        bus_arm(bus, timer, bus_now_ns(bus) + RENEWAL_MS * PEG_NS_PER_MS);
    else
        timer->fn = NULL;
}

void gw_mcp_keep_session(struct gw_mcp_exchange *exchange)
{
    struct gw_mcp *mcp = exchange->mcp;
    struct bus *bus = mcp->calls->bus;

    if (mcp->renewal.fn)
        return; /* it is armed */
    mcp->renewal.fn = renew_sessions;
    bus_arm(bus, &mcp->renewal, bus_now_ns(bus) + RENEWAL_MS * PEG_NS_PER_MS);
}

/* ---- messages for those who have requests ---- */

void gw_mcp_peek(peg_str text, struct gw_mcp_peeked *ret_peeked)
{
    peg_json_doc *doc = NULL;
    const peg_json *message;
    peg_str method;
    peg_str id;
    const char *end;

    *ret_peeked = (struct gw_mcp_peeked){.log_level = MCP_N_LEVELS};
    if (peg_json_parse(text, NULL, &doc, NULL))
        return; /* the protocol says why */
    message = peg_json_root(doc);
    method = peg_json_str(peg_json_get(message, "method"));
    id = peg_json_str(peg_json_get(message, "id"));
    end = id.len ? memchr(id.ptr, '/', id.len) : NULL;
    ret_peeked->is_cancellation = peg__str_is(method, "notifications/cancelled");
    ret_peeked->is_answer = !peg_json_get(message, "method") && peg_json_get(message, "id");
    if (end && !bus_address_parse(peg__strn(id.ptr, (size_t)(end - id.ptr)), &ret_peeked->asker))
        ret_peeked->asker = (struct bus_address){0};
    if (peg__str_is(method, "logging/setLevel"))
        ret_peeked->log_level =
            mcp_level_of(peg_json_str(peg_json_get(peg_json_get(message, "params"), "level")));
    peg_json_doc_free(doc);
}

static void drop_sent(void *user, const struct mcp_sent *sent)
{
    (void)user;
    (void)sent;
}

static const struct mcp_peer_ops silent_ops = {.send = drop_sent};

/* Without memory the call is not canceled, or its question not answered: both end in time. */
static void receive_forwarded(struct gw_mcp *mcp, const char *session, const char *principal,
                              peg_str text)
{
    struct gw_mcp_scope scope = {.toolset = {"", 0}}; /* another node may forward anything */
    struct mcp_peer *peer = NULL;

    if (!mcp_peer_new(mcp->server, &silent_ops, NULL, principal, &peer) &&
        !mcp_peer_set_session(peer, peg__str(session))) {
        mcp_peer_set_scope(peer, &scope);
        (void)mcp_peer_receive(peer, text, NULL);
    }
    mcp_peer_free(peer);
    gw_mcp_end_canceled(mcp);
}

/* Session and principal with their NULs, and the rest. False: they are not there. */
static bool split_forwarded(peg_str body, peg_str *ret_session, peg_str *ret_principal,
                            peg_str *ret_text)
{
    const char *end = body.len ? memchr(body.ptr, '\0', body.len) : NULL;
    peg_str rest;

    if (!end)
        return false;
    *ret_session = peg__strn(body.ptr, (size_t)(end - body.ptr));
    rest = peg__str_from(body, ret_session->len + 1);
    end = rest.len ? memchr(rest.ptr, '\0', rest.len) : NULL;
    if (!end)
        return false;
    *ret_principal = peg__strn(rest.ptr, (size_t)(end - rest.ptr));
    *ret_text = peg__str_from(rest, ret_principal->len + 1);
    return true;
}

static void take_forwarded(struct gw_mcp *mcp, enum session_message what, peg_str body)
{
    peg_str session;
    peg_str principal;
    peg_str text;

    if (!split_forwarded(body, &session, &principal, &text))
        return;
    if (what == TAKE)
        receive_forwarded(mcp, session.ptr, principal.ptr, text);
    else
        gw_mcp_end_session(mcp, session, principal);
}

static struct peg__blob *make_forwarded(const struct gw_mcp_exchange *exchange, peg_str text)
{
    struct peg__buf body =
        PEG__BUF((size_t)PEG_LIMIT_MCP_MESSAGE_BYTES + PEG_LIMIT_MCP_SENTENCE_BYTES);
    struct peg__blob *blob;

    peg__buf_str(&body, peg__strn(exchange->session, strlen(exchange->session) + 1));
    peg__buf_str(&body, peg__strn(exchange->principal, strlen(exchange->principal) + 1));
    peg__buf_str(&body, text);
    blob = body.status ? NULL : peg__blob_copy(peg__buf_view(&body));
    peg__buf_free(&body);
    return blob;
}

static void forward(struct gw_mcp_exchange *exchange, struct bus_address loop,
                    enum session_message what, peg_str text, found_fn *fn)
{
    struct gw_mcp *mcp = exchange->mcp;
    struct bus_message message = {.kind = BUS_SESSION,
                                  .attempt = what,
                                  .id = id_of(exchange->session_id.key),
                                  .from = mcp->sessions.self,
                                  .body = make_forwarded(exchange, text)};
    struct gw_mcp_found found = {.standing = message.body ? GW_MCP_KNOWN : GW_MCP_UNREACHABLE};

    if (message.body && is_self(mcp, loop))
        take_forwarded(mcp, what, peg__blob_str(message.body));
    if (!message.body || is_self(mcp, loop)) {
        peg__blob_unref(message.body);
        if (fn)
            fn(exchange, &found);
        return;
    }
    if (fn) {
        begin_lookup(exchange, fn);
        exchange->lookup.wait.fn = on_forwarded;
    }
    bus_send(mcp->calls->bus, loop, &message, fn ? &exchange->lookup.wait : NULL);
    peg__blob_unref(message.body);
}

void gw_mcp_forward(struct gw_mcp_exchange *exchange, struct bus_address loop, peg_str text,
                    found_fn *fn)
{
    forward(exchange, loop, TAKE, text, fn);
}

void gw_mcp_forward_end(struct gw_mcp_exchange *exchange, struct bus_address loop)
{
    forward(exchange, loop, GONE, (peg_str){"", 0}, NULL);
}

/* ---- what comes ---- */

void gw_mcp_on_message(struct gw_mcp *mcp, const struct bus_message *message)
{
    const peg_str body = message->body ? peg__blob_str(message->body) : (peg_str){"", 0};

    if (!mcp || message->id.len != GW_MCP_SESSION_KEY)
        return;
    switch (message->attempt) {
    case USE:
    case END:
        answer_use(mcp, message, body);
        break;
    case FOUND:
        take_found(mcp, message, body);
        break;
    case TAKE:
    case GONE:
        take_forwarded(mcp, (enum session_message)message->attempt, body);
        break;
    default: /* of a later version */
        break;
    }
}
