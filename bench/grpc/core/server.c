/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The echo service on gRPC core's C API, the way its own wrappers use it: methods registered, the
 * request read with the call, one completion queue, one thread. A unary call is two events, the
 * least that the API can do: it has arrived with its payload; one batch has sent headers, message
 * and status. The message goes back as the byte buffer that came: core hands on its slices, and
 * nothing is copied here.
 *
 *   grpc-core-server --addr 127.0.0.1:0 [--tls-cert PEM --tls-key PEM]
 *
 * Prints "ready PORT".
 */

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_WAITING = 256,  /* calls that may arrive before one of them is looked at */
    N_ANSWERS = 1000, /* messages of a server stream */
    MAX_PEM = 1 << 16,
};

enum kind { ECHO, CHAT, STREAM, N_KINDS };

struct service {
    grpc_server *server;
    grpc_completion_queue *queue;
    void *methods[N_KINDS];
};

/* A call, and what waits for one. The tag of every event but that of the close. */
struct call {
    struct service *service;
    enum kind kind;
    grpc_call *call;
    grpc_metadata_array metadata;
    gpr_timespec deadline;
    grpc_byte_buffer *received; /* the request, or the next message of a chat */
    grpc_byte_buffer *sent;
    int was_canceled;
    unsigned n_sent;
    unsigned n_pending; /* batches whose events have not come */
    bool has_arrived;
    bool has_ended; /* the status is sent */
};

static void fail(const char *what)
{
    fprintf(stderr, "grpc-core-server: %s\n", what);
    exit(1);
}

static void wait_for_call(struct service *service, enum kind kind)
{
    struct call *call = calloc(1, sizeof *call);
    if (!call)
        fail("out of memory");
    call->service = service;
    call->kind = kind;
    grpc_metadata_array_init(&call->metadata);
    if (grpc_server_request_registered_call(service->server, service->methods[kind], &call->call,
                                            &call->deadline, &call->metadata,
                                            kind == CHAT ? NULL : &call->received, service->queue,
                                            service->queue, call) != GRPC_CALL_OK)
        fail("a call could not be asked for");
}

static void free_call(struct call *call)
{
    grpc_byte_buffer_destroy(call->received);
    grpc_byte_buffer_destroy(call->sent);
    grpc_metadata_array_destroy(&call->metadata);
    if (call->call)
        grpc_call_unref(call->call);
    free(call);
}

static void start_batch(struct call *call, const grpc_op *ops, size_t n_ops)
{
    if (grpc_call_start_batch(call->call, ops, n_ops, call, NULL) != GRPC_CALL_OK)
        fail("a batch was refused");
    call->n_pending++;
}

static grpc_op send_of(grpc_byte_buffer *message)
{
    return (grpc_op){.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message};
}

static grpc_op end_of(void)
{
    return (grpc_op){.op = GRPC_OP_SEND_STATUS_FROM_SERVER,
                     .data.send_status_from_server.status = GRPC_STATUS_OK};
}

static grpc_op close_of(struct call *call)
{
    return (grpc_op){.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                     .data.recv_close_on_server.cancelled = &call->was_canceled};
}

/* The whole answer in one batch. */
static void answer(struct call *call)
{
    const grpc_op ops[] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        send_of(call->received),
        end_of(),
        close_of(call),
    };
    start_batch(call, ops, sizeof ops / sizeof *ops);
    call->has_ended = true;
}

/* Sends what came and waits for what follows: one event for each message. */
static void chat(struct call *call)
{
    grpc_op ops[3];
    size_t n_ops = 0;
    grpc_byte_buffer_destroy(call->sent);
    call->sent = call->received;
    call->received = NULL;
    if (call->n_sent == 0 && !call->sent) { /* it has just arrived */
        ops[n_ops++] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    } else if (call->sent) {
        ops[n_ops++] = send_of(call->sent);
        call->n_sent++;
    }
    ops[n_ops++] =
        (grpc_op){.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call->received};
    start_batch(call, ops, n_ops);
}

static void finish(struct call *call)
{
    const grpc_op ops[] = {end_of()};
    start_batch(call, ops, 1);
    call->has_ended = true;
}

static void stream(struct call *call)
{
    grpc_op ops[3];
    size_t n_ops = 0;
    if (call->n_sent == 0)
        ops[n_ops++] = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
    grpc_byte_buffer_destroy(call->sent);
    call->sent = grpc_byte_buffer_copy(call->received); /* another reference to the same bytes */
    ops[n_ops++] = send_of(call->sent);
    call->n_sent++;
    if (call->n_sent == N_ANSWERS) {
        ops[n_ops++] = end_of();
        call->has_ended = true;
    }
    start_batch(call, ops, n_ops);
}

static void start(struct call *call)
{
    call->has_arrived = true;
    wait_for_call(call->service, call->kind);
    if (call->kind == ECHO) {
        answer(call);
        return;
    }
    const grpc_op ops[] = {close_of(call)};
    start_batch(call, ops, 1); /* its event comes after the status, or when the client leaves */
    if (call->kind == CHAT)
        chat(call);
    else
        stream(call);
}

static void step(struct call *call, bool is_ok)
{
    if (!call->has_arrived) {
        if (is_ok)
            start(call);
        else
            free_call(call);
        return;
    }
    call->n_pending--;
    if (!call->has_ended && !call->was_canceled) {
        if (call->kind == STREAM)
            is_ok ? stream(call) : finish(call);
        else if (call->received)
            chat(call);
        else
            finish(call); /* the client has said everything */
    }
    if (call->n_pending == 0)
        free_call(call);
}

static char *read_file(const char *path)
{
    char *text = calloc(1, MAX_PEM);
    FILE *file = fopen(path, "re");
    if (!text || !file || fread(text, 1, MAX_PEM - 1, file) == 0)
        fail("the certificate or its key cannot be read");
    fclose(file);
    return text;
}

static grpc_server_credentials *make_credentials(const char *cert, const char *key)
{
    if (!cert || !key)
        return grpc_insecure_server_credentials_create();
    char *cert_text = read_file(cert);
    char *key_text = read_file(key);
    grpc_ssl_pem_key_cert_pair pair = {.private_key = key_text, .cert_chain = cert_text};
    grpc_server_credentials *credentials = grpc_ssl_server_credentials_create_ex(
        NULL, &pair, 1, GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE, NULL);
    free(cert_text);
    free(key_text);
    return credentials;
}

static void open_service(struct service *service, const char *address,
                         grpc_server_credentials *credentials)
{
    static const char *const paths[N_KINDS] = {
        "/pegboard.test.Echo/Echo", "/pegboard.test.Echo/Chat", "/pegboard.test.Echo/Stream"};
    service->queue = grpc_completion_queue_create_for_next(NULL);
    service->server = grpc_server_create(NULL, NULL);
    grpc_server_register_completion_queue(service->server, service->queue, NULL);
    for (int kind = 0; kind < N_KINDS; kind++)
        service->methods[kind] = grpc_server_register_method(
            service->server, paths[kind], NULL,
            kind == CHAT ? GRPC_SRM_PAYLOAD_NONE : GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    int port = grpc_server_add_http2_port(service->server, address, credentials);
    grpc_server_credentials_release(credentials);
    if (!port)
        fail("the address cannot be listened on");
    grpc_server_start(service->server);
    for (int kind = 0; kind < N_KINDS; kind++)
        for (int i = 0; i < N_WAITING; i++)
            wait_for_call(service, (enum kind)kind);
    printf("ready %d\n", port);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *address = "127.0.0.1:0";
    const char *cert = NULL;
    const char *key = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--addr") == 0)
            address = argv[i + 1];
        else if (strcmp(argv[i], "--tls-cert") == 0)
            cert = argv[i + 1];
        else if (strcmp(argv[i], "--tls-key") == 0)
            key = argv[i + 1];
        else
            fail("--addr, --tls-cert and --tls-key are known");
    }
    struct service service = {0};
    grpc_init();
    open_service(&service, address, make_credentials(cert, key));
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(service.queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        if (event.type == GRPC_OP_COMPLETE)
            step(event.tag, event.success);
    }
}
