/* SPDX-License-Identifier: Apache-2.0 */

/* A Redis over TCP, plain and with TLS. */

#include <arpa/inet.h>

#include "../net/certs.h"
#include "redis_world.h"

/* Nothing listens there now. */
static unsigned free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    close(fd);
    return ntohs(at.sin_port);
}

static const char *look(const char *url, const char *authorities)
{
    static char code[64];
    const struct bus_redis_options options = {
        .url = url, .name = "look", .node = 1, .ca_file = authorities, .timeout_ms = 2000};
    struct bus_redis_hub *hub = NULL;
    peg_error error = {0};
    peg_status status;

    CHECK_STATUS(bus_redis_hub_new(&options, &hub, &error), PEG_OK, error);
    status = bus_redis_hub_check(hub, &error);
    bus_redis_hub_free(hub);
    snprintf(code, sizeof(code), "%s", status ? error.code : "ok");
    return code;
}

/* A message and a large register go from node to node. */
static void use_buses(const char *url)
{
    enum { N = 3 << 20 };
    const struct bus_message message = {.kind = BUS_HAVE, .id = c_id(1)};
    struct c_asked asked = {.what = C_ONCE, .key = c_key(1, BUS_RESULT, 0)};

    open_buses(url);
    for (unsigned i = 0; i < C_N; i++)
        await_connected(i);
    CHECK(c_send(0, buses[2]->self, &message));
    c_await_messages(2, 1);
    asked.value = peg__blob_new(N);
    memset(asked.value->bytes, 'x', N);
    memcpy(asked.value->bytes, "large", 6);
    c_ask(0, &asked);
    CHECK_INT(asked.answer.status, PEG_OK);
    CHECK_STR(peg__str(c_read(2, c_key(1, BUS_RESULT, 0)).current), "large");
    peg__blob_unref(asked.value);
    c_close();
}

static void restart_with(const char *const *more)
{
    rs_open();
    rs_stop();
    rs_start(more);
}

TEST(a_redis_is_reached_by_tcp)
{
    char port[16];
    char url[64];
    const char *const more[] = {"--port", port, "--bind", "127.0.0.1", NULL};

    snprintf(port, sizeof(port), "%u", free_port());
    restart_with(more);
    snprintf(url, sizeof(url), "redis://localhost:%s/2", port);
    CHECK_STR(peg__str(look(url, NULL)), "ok");
    use_buses(url);
    snprintf(url, sizeof(url), "127.0.0.1:%s", port);
    CHECK_STR(peg__str(look(url, NULL)), "ok");
    snprintf(url, sizeof(url), "rediss://localhost:%s", port);
    CHECK_STR(peg__str(look(url, NULL)), "E_REDIS_CONNECT");
    rs_stop();
}

TEST(a_redis_is_reached_by_tls_if_its_certificate_is_right)
{
    struct certs certs;
    char port[16];
    char url[64];
    const char *const more[] = {"--tls-port",
                                port,
                                "--tls-cert-file",
                                certs.server_cert,
                                "--tls-key-file",
                                certs.server_key,
                                "--tls-ca-cert-file",
                                certs.ca,
                                "--tls-auth-clients",
                                "no",
                                "--bind",
                                "127.0.0.1",
                                NULL};

    if (!rs_is_installed())
        SKIP("redis-server is not installed (tools/setup --test installs it)");
    certs_make(&certs);
    snprintf(port, sizeof(port), "%u", free_port());
    restart_with(more);
    snprintf(url, sizeof(url), "rediss://localhost:%s", port);
    CHECK_STR(peg__str(look(url, certs.ca)), "ok");
    CHECK_STR(peg__str(look(url, certs.other_ca)), "E_REDIS_CONNECT");
    ca_file = certs.ca;
    use_buses(url);
    ca_file = NULL;
    snprintf(url, sizeof(url), "redis://localhost:%s", port);
    CHECK(strcmp(look(url, NULL), "ok") != 0);
    rs_stop();
    certs_remove(&certs);
}
