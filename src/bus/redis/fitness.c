/* SPDX-License-Identifier: Apache-2.0 */

/* What a server says about itself, and what its errors mean. The server's own words are shown only
 * as far as they are short and harmless. */

#include <stdio.h>

#include "base/error.h"
#include "base/text/str.h"
#include "bus/redis/session.h"

enum { SHOWN_BYTES = 100 };

/* ---- errors -------------------------------------------------------------------------------- */

struct meaning {
    const char *word; /* the first of the error, or more of them */
    const char *code;
    const char *remedy;
    bool is_of_all; /* every command would get it */
};

#define ALLOW_MORE                                                                                 \
    "allow its user the keys, channels and commands that docs/cluster.md says, or docs/direct.md " \
    "for a direct provider (ACL SETUSER)"

static const struct meaning meanings[] = {
    {"NOAUTH", "E_REDIS_AUTH", "it wants a password: set REDIS_PASSWORD", true},
    {"WRONGPASS", "E_REDIS_AUTH", "correct the user or the password", true},
    {"NOPERM", "E_REDIS_AUTH", ALLOW_MORE, false},
    {"ERR The user executing the script", "E_REDIS_AUTH", ALLOW_MORE, false},
    {"LOADING", "E_REDIS_LOADING", "it reads its data from disk: wait", true},
    {"BUSY", "E_REDIS_LOADING", "it runs a script: wait, or SCRIPT KILL", false},
    {"READONLY", "E_REDIS_ROLE", "it is a replica: give the address of the primary", true},
    {"MASTERDOWN", "E_REDIS_ROLE", "it is a replica: give the address of the primary", true},
    {"MOVED", "E_REDIS_MODE", "it is a Redis Cluster: use one that is not", true},
    {"ASK", "E_REDIS_MODE", "it is a Redis Cluster: use one that is not", true},
    {"CROSSSLOT", "E_REDIS_MODE", "it is a Redis Cluster: use one that is not", true},
    {"CLUSTERDOWN", "E_REDIS_MODE", "it is a Redis Cluster: use one that is not", true},
    {"OOM", "E_REDIS_MEMORY", "its memory is full: raise maxmemory", false},
    {"MISCONF", "E_REDIS_MEMORY", "it cannot save its data: see its log", false},
    {"NOSCRIPT", "E_REDIS_REPLY", "its scripts were flushed: they are loaded again", true},
};

static const struct meaning *find_meaning(const struct resp_value *reply)
{
    static const struct meaning other = {"", "E_REDIS_REPLY", "see its log", false};

    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        if (resp_is_error(reply, meanings[i].word))
            return &meanings[i];
    }
    return &other;
}

void redis_fail_reply(peg_error *ret_error, const struct resp_value *reply)
{
    const struct meaning *meaning = find_meaning(reply);
    const peg_str text = reply->kind == RESP_ERROR ? reply->text : peg__str("another reply");
    char shown[SHOWN_BYTES + 1];
    size_t n = 0;

    for (; n < text.len && n < SHOWN_BYTES; n++)
        shown[n] = (char)(text.ptr[n] >= ' ' && text.ptr[n] < 0x7f ? text.ptr[n] : '?');
    shown[n] = '\0';
    peg__fail(ret_error, PEG_EIO, meaning->code, "Redis refuses a command (%s): %s", shown,
              meaning->remedy);
}

bool redis_reply_is_fatal(const struct resp_value *reply)
{
    return reply->kind == RESP_ERROR && find_meaning(reply)->is_of_all;
}

/* ---- INFO ---------------------------------------------------------------------------------- */

/* "name:value" in lines; "" if it is not there. */
static peg_str find_field(peg_str info, const char *name)
{
    const size_t len = strlen(name);

    while (info.len) {
        const char *end = (const char *)memchr(info.ptr, '\n', info.len);
        const peg_str line = {info.ptr, end ? (size_t)(end - info.ptr) : info.len};

        if (line.len > len && line.ptr[len] == ':' && memcmp(line.ptr, name, len) == 0)
            return peg__str_trim(peg__str_from(line, len + 1), "\r ");
        info = peg__str_from(info, end ? line.len + 1 : line.len);
    }
    return peg__str("");
}

static peg_status check_role(peg_str info, peg_error *reterr)
{
    if (!peg__str_is(find_field(info, "role"), "master"))
        return peg__fail(reterr, PEG_EIO, "E_REDIS_ROLE",
                         "this Redis is a replica: give the address of the primary");
    if (!peg__str_is(find_field(info, "loading"), "0"))
        return peg__fail(reterr, PEG_EIO, "E_REDIS_LOADING",
                         "Redis reads its data from disk: wait until it has");
    return PEG_OK;
}

/* Every register has an expiry, so volatile-* would evict them too. */
static peg_status check_memory(peg_str info, peg_error *reterr)
{
    const peg_str policy = find_field(info, "maxmemory_policy");

    if (peg__str_is(find_field(info, "maxmemory"), "0") || peg__str_is(policy, "noeviction"))
        return PEG_OK;
    return peg__fail(reterr, PEG_EIO, "E_REDIS_EVICTION",
                     "Redis may evict what calls rely on (maxmemory-policy is %.*s): set "
                     "maxmemory-policy to noeviction, or maxmemory to 0",
                     (int)(policy.len < 40 ? policy.len : 40), policy.ptr);
}

bool redis_info_lacks_aof(peg_str info)
{
    return peg__str_is(find_field(info, "aof_enabled"), "0");
}

#define REDIS_AT_RISK                                                                              \
    "when it restarts it forgets calls: one that is asked for again with its identity may run "    \
    "twice, and one that runs ends with outcome_unknown; toolsets are written again. "

const char *redis_persistence_risk(peg_str appendonly, peg_str appendfsync)
{
    if (!peg__str_is(appendonly, "yes"))
        return "Redis does not write what it keeps to disk at once (appendonly is no), "
               "so " REDIS_AT_RISK "Set appendonly to yes and appendfsync to everysec";
    if (peg__str_is(appendfsync, "no"))
        return "Redis leaves it to the system when what it keeps reaches the disk (appendfsync is "
               "no), so when its machine fails it forgets the calls of some 30 s: those that are "
               "asked for again with their identity may run twice. Set appendfsync to everysec, or "
               "to always";
    return NULL;
}

peg_status redis_check_info(peg_str info, char ret_run_id[REDIS_RUN_ID_TEXT], peg_error *reterr)
{
    const peg_str run_id = find_field(info, "run_id");
    peg_status status = check_role(info, reterr);

    if (!status)
        status = check_memory(info, reterr);
    if (!status && run_id.len != REDIS_RUN_ID_TEXT - 1)
        status = peg__fail(reterr, PEG_EIO, "E_REDIS_PROTOCOL",
                           "the server names no run_id in INFO: use a Redis of version 7.0 or "
                           "later");
    if (status)
        return status;
    memcpy(ret_run_id, run_id.ptr, run_id.len);
    ret_run_id[run_id.len] = '\0';
    return PEG_OK;
}
