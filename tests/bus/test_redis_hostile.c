/* SPDX-License-Identifier: Apache-2.0 */

/* A server that is no Redis, or one that is not fit, and connections that are cut anywhere. */

#include "redis_fake.h"
#include "redis_world.h"

/* ---- what a first look says ----------------------------------------------------------------- */

/* The code of the error, or "ok". */
static const char *look(const char *url)
{
    static char code[64];
    struct bus_redis_options options = {.url = url, .name = "look", .node = 1, .timeout_ms = 200};
    struct bus_redis_hub *hub = NULL;
    peg_error error = {0};
    peg_status status;

    CHECK_STATUS(bus_redis_hub_new(&options, &hub, &error), PEG_OK, error);
    status = bus_redis_hub_check(hub, &error);
    bus_redis_hub_free(hub);
    if (!status)
        return "ok";
    CHECK(!strstr(error.message, "hunter2"));
    CHECK(error.message[0] && !strchr(error.message, '\n') && !strchr(error.message, '\033'));
    snprintf(code, sizeof(code), "%s", error.code);
    return code;
}

static void check_said(const char *command, const char *reply, const char *code)
{
    char url[160];
    char copy[FK_REPLY];

    snprintf(copy, sizeof(copy), "%s", peg__or_empty(reply)); /* fk_info() has one buffer */
    fk_forget_rules();
    if (command)
        fk_say(command, copy);
    snprintf(url, sizeof(url), "unix://me:hunter2@%s?db=1", fk.path);
    CHECK_STR(peg__str(look(url)), code);
}

TEST(a_server_that_is_fit_is_taken)
{
    fk_start(false);
    check_said(NULL, NULL, "ok");
    fk_stop();
}

TEST(each_reply_to_hello_that_is_wrong_has_its_name)
{
    fk_start(false);
    check_said("HELLO", "HTTP/1.1 400 Bad Request\r\n\r\n", "E_REDIS_PROTOCOL");
    check_said("HELLO", "\033[31mSSH-2.0-OpenSSH\r\n", "E_REDIS_PROTOCOL");
    check_said("HELLO", "+OK\r\n", "E_REDIS_PROTOCOL");
    check_said("HELLO", "", "E_REDIS_CONNECT");
    check_said("HELLO", "(silence)", "E_REDIS_TIMEOUT");
    check_said("HELLO", "-NOAUTH HELLO must be called\r\n", "E_REDIS_AUTH");
    check_said("HELLO", "-WRONGPASS invalid username-password pair\r\n", "E_REDIS_AUTH");
    check_said("HELLO", "-ERR unknown command `HELLO`, with args: `3`, `AUTH`, `hunter2`\r\n",
               "E_REDIS_VERSION");
    check_said("HELLO", "-NOPROTO unsupported protocol version\r\n", "E_REDIS_VERSION");
    check_said("HELLO", "%2\r\n+version\r\n+6.2.14\r\n+mode\r\n+standalone\r\n", "E_REDIS_VERSION");
    check_said("HELLO", "%1\r\n+mode\r\n+standalone\r\n", "E_REDIS_VERSION");
    check_said("HELLO", "%2\r\n+version\r\n+7.2.0\r\n+mode\r\n+cluster\r\n", "E_REDIS_MODE");
    check_said("HELLO", "%2\r\n+version\r\n+7.2.0\r\n+mode\r\n+sentinel\r\n", "E_REDIS_MODE");
    check_said("HELLO", "-LOADING Redis is loading\r\n", "E_REDIS_LOADING");
    fk_stop();
}

TEST(each_state_of_a_server_that_is_not_fit_has_its_name)
{
    fk_start(false);
    check_said("INFO",
               fk_info("run_id:" FK_RUN_ID "\r\nrole:slave\r\nloading:0\r\nmaxmemory:0\r\n"),
               "E_REDIS_ROLE");
    check_said("INFO",
               fk_info("run_id:" FK_RUN_ID "\r\nrole:master\r\nloading:1\r\nmaxmemory:0\r\n"),
               "E_REDIS_LOADING");
    check_said("INFO",
               fk_info("run_id:" FK_RUN_ID "\r\nrole:master\r\nloading:0\r\nmaxmemory:1000\r\n"
                       "maxmemory_policy:volatile-lru\r\n"),
               "E_REDIS_EVICTION");
    check_said("INFO",
               fk_info("run_id:" FK_RUN_ID "\r\nrole:master\r\nloading:0\r\nmaxmemory:1000\r\n"
                       "maxmemory_policy:noeviction\r\n"),
               "ok");
    check_said("INFO", fk_info("run_id:short\r\nrole:master\r\nloading:0\r\nmaxmemory:0\r\n"),
               "E_REDIS_PROTOCOL");
    check_said("INFO", fk_info(""), "E_REDIS_ROLE");
    check_said("INFO", ":5\r\n", "E_REDIS_REPLY");
    check_said("INFO", "-NOPERM this user has no permissions\r\n", "E_REDIS_AUTH");
    check_said("INFO", "-LOADING Redis is loading\r\n", "E_REDIS_LOADING");
    check_said("SELECT", "-ERR DB index is out of range\r\n", "E_REDIS_REPLY");
    check_said("EVAL", "-READONLY You can't write against a read only replica.\r\n",
               "E_REDIS_ROLE");
    check_said("EVAL", "-MOVED 3999 127.0.0.1:6381\r\n", "E_REDIS_MODE");
    check_said("EVAL", "-OOM command not allowed\r\n", "E_REDIS_MEMORY");
    check_said("EVAL", "-MISCONF cannot persist\r\n", "E_REDIS_MEMORY");
    check_said("EVAL", "(silence)", "E_REDIS_TIMEOUT");
    fk_stop();
}

TEST(an_address_where_nothing_listens_is_named)
{
    CHECK_STR(peg__str(look("unix:///tmp/pegboard-there-is-no-such-socket")), "E_REDIS_CONNECT");
    CHECK_STR(peg__str(look("127.0.0.1:1")), "E_REDIS_CONNECT");
}

TEST(a_name_that_is_none_is_refused)
{
    static const char *const names[] = {"", "a b", "a{b", "a*", NULL};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct bus_redis_options options = {.url = "h:1", .name = names[i], .node = 1};
        struct bus_redis_hub *hub = NULL;
        peg_error error;

        CHECK_INT(bus_redis_hub_new(&options, &hub, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.code), "E_BUS_NAME");
    }
}

TEST(a_real_redis_refuses_a_wrong_password_and_takes_the_right_one)
{
    char url[160];

    rs_open();
    rs_do("ACL SETUSER me on >right ~* &* +@all");
    snprintf(url, sizeof(url), "unix://me:right@%s?db=3", rs.path);
    CHECK_STR(peg__str(look(url)), "ok");
    snprintf(url, sizeof(url), "unix://me:wrong@%s", rs.path);
    CHECK_STR(peg__str(look(url)), "E_REDIS_AUTH");
    rs_do("ACL SETUSER me -set");
    snprintf(url, sizeof(url), "unix://me:right@%s", rs.path);
    CHECK_STR(peg__str(look(url)), "E_REDIS_AUTH");
    rs_do("CONFIG SET requirepass secret");
    CHECK_STR(peg__str(look(rs.url)), "E_REDIS_AUTH");
    rs_stop();
}

/* ---- while it runs -------------------------------------------------------------------------- */

static struct c_asked ask_once(unsigned i, unsigned number)
{
    struct c_asked asked = {.what = C_ONCE, .key = c_key(number, BUS_CLAIM, 1)};

    asked.value = peg__blob_copy(peg__str("value"));
    c_ask(i, &asked);
    peg__blob_unref(asked.value);
    return asked;
}

static const char *epoch_reply(void)
{
    return "$57\r\n00000000000000ab:" FK_RUN_ID "\r\n";
}

static void open_on_fake(void)
{
    fk_start(false);
    fk_say("EVAL", epoch_reply()); /* also to that of the secret, which is then malformed */
    fk_say("GET", epoch_reply());
    open_buses(fk.url);
    await_connected(0);
}

TEST(an_error_to_one_command_is_its_answer)
{
    open_on_fake();
    fk_say("SET", "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    CHECK_INT(ask_once(0, 1).answer.status, PEG_ELIMIT);
    fk_say("SET", "-ERR something else\r\n");
    CHECK_INT(ask_once(0, 1).answer.status, PEG_EIO);
    CHECK(state_of(0).is_connected);
    fk_say("SET", "_\r\n");
    CHECK(ask_once(0, 1).answer.written);
    c_close();
    fk_stop();
}

TEST(an_error_to_all_commands_ends_the_connection)
{
    static const char *const replies[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "-MOVED 3999 127.0.0.1:6381\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-NOAUTH Authentication required.\r\n",
        "-CLUSTERDOWN The cluster is down\r\n",
        "garbage\r\n",
        "$5\r\nabc\r\n\r\n\r\n",
        ":1\r\n:2\r\n:3\r\n", /* replies to no command */
    };

    open_on_fake();
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
        const unsigned n = atomic_load(&fk.n_accepted);

        await_connected(0);
        fk_say("SMEMBERS", replies[i]);
        while (atomic_load(&fk.n_accepted) == n) {
            struct c_asked asked = {.what = C_WAITERS, .key = c_key(1, BUS_RESULT, 0)};

            c_ask(0, &asked);
        }
        fk_say("SMEMBERS", "*0\r\n");
    }
    await_connected(0);
    CHECK_INT(c_waiters(0, c_key(1, BUS_RESULT, 0)).answer.n_addresses, 0);
    c_close();
    fk_stop();
}

static struct c_asked any_request(unsigned what, unsigned number)
{
    return (struct c_asked){
        .what = what,
        .key = c_key(number, BUS_RESULT, 0),
        .to = {0xabc + 1, 0},
        .names = {peg__str("name"), peg__str("other")},
        .n_names = 2,
        .lease_ms = 60000,
        .map = BUS_MAP_PROVIDERS,
        .expected = BUS_ANY_REVISION,
        .value = peg__blob_copy(peg__str("value")),
    };
}

/* Replies of any kind to any command: each request is answered, and nothing worse. */
TEST(replies_of_chance_are_survived)
{
    enum { HANDSHAKE = 14 };
    struct c_watch watch;

    for (unsigned seed = 1; seed <= 5; seed++) {
        open_on_fake();
        c_watch(0, &watch);
        fk.n_honest = HANDSHAKE;
        fk.random = seed;
        for (unsigned k = 0; k < 100; k++) {
            struct c_asked asked = any_request(k % 8, k);

            c_ask(0, &asked);
            peg__blob_unref(asked.value);
        }
        c_close();
        fk_stop();
    }
}

TEST(handshakes_of_chance_are_survived)
{
    for (unsigned seed = 1; seed <= 30; seed++) {
        unsigned n;

        fk_start(false);
        fk.n_honest = seed % 14;
        fk.random = seed;
        n = atomic_load(&fk.n_accepted);
        open_buses(fk.url);
        while (atomic_load(&fk.n_accepted) < n + 2 * C_N && !state_of(0).is_connected)
            c_pass();
        c_close();
        fk_stop();
    }
}

/* What a stranger publishes on our channels. */
TEST(malformed_messages_are_dropped)
{
    static const char *const channels[] = {"loop:0000000000000abc.0", "lost",
                                           "map:providers:hints"};
    static const char *const texts[] = {
        "x",
        "1",
        "5",
        "5_6_s_1_k",
        "\\x01",
        "9_8_s_99999_k",
        "9_8_z_1_k",
        "0000000000000zzz.9",
        "18446744073709551615_5_s_1_k",
    };
    struct c_watch watch;
    char words[256];

    rs_open();
    c_open();
    c_watch(0, &watch);
    c_await_told(&watch, "ready;");
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
            char *space;

            snprintf(words, sizeof(words), "PUBLISH peg:%s:%s \"%s\"", registry, channels[i],
                     texts[k]);
            while ((space = strchr(words, '_')))
                *space = ' ';
            CHECK(rs_do(words) > 0);
        }
    }
    c_settle();

    CHECK_INT(c_n_messages(0), 0);
    CHECK_INT(c_n_lost(0), 0);
    c_set(0, "a", "1", BUS_ANY_REVISION);
    while (!strstr(c_told(&watch).ptr, "a=1"))
        c_pass();
    c_close();
}

/* R6: the clock of the server is set. */
TEST(a_step_of_time_asks_for_another_epoch)
{
    char name[BUS_ADDRESS_TEXT];
    unsigned n_before;

    open_on_fake();
    for (unsigned i = 1; i < C_N; i++)
        await_connected(i);
    n_before = atomic_load(&fk.n_evals);
    own_name(0, name);
    fk_say("EVALSHA", "*1\r\n$18\r\n0000000000000abc.0\r\n");
    c_lease(0, name, 60000);
    c_lease(0, name, 60000);
    CHECK_INT(c_read(0, c_key(1, BUS_RESULT, 0)).answer.status, PEG_OK); /* what came before */
    CHECK_INT(atomic_load(&fk.n_evals), n_before);
    fk_say("TIME", "*2\r\n+1700000100\r\n+5\r\n");
    c_lease(0, name, 60000);
    while (atomic_load(&fk.n_evals) == n_before)
        c_pass();
    c_close();
    fk_stop();
}

/* Registers expire by that clock: what is absent now may have been there. */
TEST(what_is_read_behind_a_step_of_time_counts_under_another_epoch)
{
    uint64_t epoch;

    open_on_fake();
    epoch = state_of(0).epoch;
    fk_say("GET", epoch_reply());
    CHECK(c_read(0, c_key(1, BUS_CLAIM, 1)).answer.epoch == epoch);
    fk_say("TIME", "*2\r\n+1700000100\r\n+5\r\n");
    CHECK(c_read(0, c_key(1, BUS_CLAIM, 1)).answer.epoch != epoch);
    c_close();
    fk_stop();
}

/* ---- cuts ----------------------------------------------------------------------------------- */

/* The connection is cut behind the n-th command, whichever that is: each request is answered once,
 * what is asked again succeeds, and no key stays for ever. */
static void cut_behind(long n)
{
    struct c_watch watch;
    struct c_asked asked;

    open_buses(fk.url);
    await_connected(2);
    atomic_store(&fk.cut_behind, n);
    c_watch(2, &watch);
    /* Not asked again: what the cut leaves of it stays. */
    asked = any_request(C_WAIT, 1000);
    c_ask(2, &asked);
    peg__blob_unref(asked.value);
    for (unsigned k = 0; k <= 8; k++) {
        asked = any_request(k % 8, 1);
        if (k == 8)
            asked.what = C_READ;
        asked.to = (struct bus_address){0xabc, 0};
        do {
            asked.n_answers = 0;
            c_ask(2, &asked);
        } while (asked.answer.status != PEG_OK);
        peg__blob_unref(asked.value);
    }
    CHECK_STR(peg__str(asked.current), "value");
    while (!strstr(c_told(&watch).ptr, "name=value"))
        c_pass();
    c_close();
}

static void check_that_keys_end(void)
{
    static const char script[] =
        "EVAL \"local n = {} for _, k in ipairs(redis.call('KEYS', 'peg:*')) do if "
        "redis.call('PTTL', k) == -1 and not string.find(k, ':map:') and not string.find(k, "
        "':epoch$') and not string.find(k, ':secret$') then n[#n+1] = k end end return "
        "table.concat(n, ' ')\" 0";

    CHECK_STR(peg__str(rs_text(script)), "");
}

TEST(a_cut_between_any_two_commands_loses_nothing)
{
    rs_open();
    fk_start(true);
    for (long n = 1; n <= 45; n++)
        cut_behind(n);
    check_that_keys_end();
    fk_stop();
}

TEST(a_cut_in_any_handshake_is_made_good)
{
    rs_open();
    fk_start(true);
    for (long n = 1; n <= 40; n++) {
        atomic_store(&fk.cut_behind, n);
        open_buses(fk.url);
        for (unsigned i = 0; i < C_N; i++)
            await_connected(i);
        c_close();
    }
    check_that_keys_end();
    fk_stop();
}
