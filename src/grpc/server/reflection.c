/* SPDX-License-Identifier: Apache-2.0 */

/* One stream of requests: answer() fills a response on the stack that points into the index, and is
 * packed in place. The next request is not read before the last answer has gone, nor while the
 * client's window is closed. v1alpha has the messages of v1 under other names, and is served with
 * its types. */

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "grpc/reflection/v1/reflection.grpc.h"
#include "grpc/reflection/v1alpha/reflection.grpc.h"
#include "grpc/server/internal.h"

typedef Grpc__Reflection__V1__ServerReflectionRequest request_t;
typedef Grpc__Reflection__V1__ServerReflectionResponse response_t;
typedef Grpc__Reflection__V1__ServiceResponse service_response_t;

/* Owned. Immutable once it is added: all loops read it. */
struct grpc_reflection {
    struct grpc_symbols *symbols;
    service_response_t *services;
    service_response_t **service_list;
    size_t n_services;
    struct grpc_method alpha_method;
    struct grpc_service alpha;
};

/* What a response points to while it is sent. */
struct answer {
    response_t response;
    Grpc__Reflection__V1__FileDescriptorResponse files;
    Grpc__Reflection__V1__ExtensionNumberResponse numbers;
    Grpc__Reflection__V1__ListServiceResponse services;
    Grpc__Reflection__V1__ErrorResponse error;
    char message[200];
    int32_t *owned_numbers;
};

/* ---- answers -------------------------------------------------------------------------------- */

/* The message is in place. */
static void answer_with_error(struct answer *answer, enum grpc_code code)
{
    answer->error.error_code = (int32_t)code;
    answer->error.error_message = answer->message;
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    answer->response.error_response = &answer->error;
}

static void answer_not_found(struct answer *answer, const char *what, peg_str name)
{
    /* The name is cut: it stands in original_request as a whole. */
    const size_t len = name.len < 100 ? name.len : peg__utf8_cut(name.ptr, 100);

    snprintf(answer->message, sizeof(answer->message), "there is no %s '%.*s'", what, (int)len,
             name.ptr);
    answer_with_error(answer, GRPC_NOT_FOUND);
}

static void answer_with_file(struct answer *answer, const struct grpc_symbol_file *file,
                             const char *what, peg_str name)
{
    if (!file) {
        answer_not_found(answer, what, name);
        return;
    }
    answer->files.n_file_descriptor_proto = file->n_with_imports;
    answer->files.file_descriptor_proto = file->with_imports;
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
    answer->response.file_descriptor_response = &answer->files;
}

static void answer_with_extension(struct answer *answer, const struct grpc_symbols *symbols,
                                  const Grpc__Reflection__V1__ExtensionRequest *request)
{
    const peg_str type = peg__str(request->containing_type);

    answer_with_file(answer, grpc_symbols_extension(symbols, type, request->extension_number),
                     "extension of that number for", type);
}

static peg_status answer_with_numbers(struct answer *answer, const struct grpc_symbols *symbols,
                                      char *type)
{
    const size_t n = grpc_symbols_extension_numbers(symbols, peg__str(type), NULL, 0);

    if (n == 0 && !grpc_symbols_find(symbols, peg__str(type))) {
        answer_not_found(answer, "type", peg__str(type));
        return PEG_OK;
    }
    if (n > 0) {
        answer->owned_numbers = peg__alloc_zero(n, sizeof(*answer->owned_numbers));
        if (!answer->owned_numbers)
            return PEG_ENOMEM;
        grpc_symbols_extension_numbers(symbols, peg__str(type), answer->owned_numbers, n);
    }
    answer->numbers.base_type_name = type;
    answer->numbers.n_extension_number = n;
    answer->numbers.extension_number = answer->owned_numbers;
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    answer->response.all_extension_numbers_response = &answer->numbers;
    return PEG_OK;
}

static void answer_with_services(struct answer *answer, const struct grpc_reflection *reflection)
{
    answer->services.n_service = reflection->n_services;
    answer->services.service = reflection->service_list;
    answer->response.message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    answer->response.list_services_response = &answer->services;
}

static peg_status answer_question(struct answer *answer, const struct grpc_reflection *reflection,
                                  const request_t *request)
{
    const struct grpc_symbols *symbols = reflection->symbols;

    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        answer_with_file(answer, grpc_symbols_file(symbols, peg__str(request->file_by_filename)),
                         "file", peg__str(request->file_by_filename));
        return PEG_OK;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        answer_with_file(answer,
                         grpc_symbols_find(symbols, peg__str(request->file_containing_symbol)),
                         "symbol", peg__str(request->file_containing_symbol));
        return PEG_OK;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        answer_with_extension(answer, symbols, request->file_containing_extension);
        return PEG_OK;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        return answer_with_numbers(answer, symbols, request->all_extension_numbers_of_type);
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        answer_with_services(answer, reflection);
        return PEG_OK;
    default:
        snprintf(answer->message, sizeof(answer->message),
                 "the request asks for nothing known here");
        answer_with_error(answer, GRPC_INVALID_ARGUMENT);
        return PEG_OK;
    }
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void wait_for_window(struct grpc_call *call)
{
    if (!grpc_call_await_window(call))
        grpc_call_pause(call);
}

static void on_reflection_request(struct grpc_call *call, const void *message, void *user)
{
    const request_t *request = message;
    struct answer answer = {
        .response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT,
        .files = GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT,
        .numbers = GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT,
        .services = GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT,
        .error = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT,
    };
    peg_error error;
    peg_status status;

    answer.response.valid_host = request->host;
    answer.response.original_request = peg__unconst(request);
    status = answer_question(&answer, user, request);
    if (status)
        peg__fail_nomem(&error);
    else
        status = grpc_call_send_message(call, &answer.response.base, &error);
    peg__free(answer.owned_numbers);

    if (status)
        grpc_call_fail(call, GRPC_RESOURCE_EXHAUSTED, "%s", error.message);
    else
        wait_for_window(call);
}

static void on_start(struct grpc_call *call, void *user)
{
    (void)user;
    wait_for_window(call);
}

static void on_writable(struct grpc_call *call, void *user)
{
    (void)user;
    if (grpc_call_await_window(call))
        grpc_call_resume(call);
}

static void on_half_close(struct grpc_call *call, void *user)
{
    const struct grpc_status ok = {.code = GRPC_OK};

    (void)user;
    grpc_call_finish(call, &ok);
}

static const struct grpc_handler handler = {
    .on_start = on_start,
    .on_message = on_reflection_request,
    .on_half_close = on_half_close,
    .on_writable = on_writable,
};

/* ---- its life ------------------------------------------------------------------------------- */

static size_t count_services(const struct grpc_server *server)
{
    size_t n = 0;

    while (grpc_server_service_at(server, n))
        n++;
    return n;
}

static void make_alpha(struct grpc_reflection *reflection)
{
    reflection->alpha_method = grpc_reflection_v1_server_reflection_methods[0];
    reflection->alpha_method.path = grpc_reflection_v1alpha_server_reflection_methods[0].path;
    reflection->alpha = grpc_reflection_v1alpha_server_reflection_service;
    reflection->alpha.methods = &reflection->alpha_method;
}

/* Names of services and their files: the server's, then our own two. */
static peg_status list_services(struct grpc_reflection *reflection,
                                const struct grpc_server *server, const struct grpc_file **files,
                                size_t *ret_n_files)
{
    const size_t n = count_services(server);
    size_t n_files = 0;

    reflection->services = peg__alloc_zero(n + 2, sizeof(*reflection->services));
    reflection->service_list = peg__alloc_zero(n + 2, sizeof(*reflection->service_list));
    if (!reflection->services || !reflection->service_list)
        return PEG_ENOMEM;
    for (size_t i = 0; i < n + 2; i++) {
        const struct grpc_service *service = grpc_server_service_at(server, i);

        if (i >= n)
            service = i == n ? &grpc_reflection_v1_server_reflection_service : &reflection->alpha;
        grpc__reflection__v1__service_response__init(&reflection->services[i]);
        reflection->services[i].name = peg__unconst(service->name);
        reflection->service_list[i] = &reflection->services[i];
        if (service->file)
            files[n_files++] = service->file;
    }
    reflection->n_services = n + 2;
    *ret_n_files = n_files;
    return PEG_OK;
}

static const struct grpc_method_bounds bounds = {
    .max_message_bytes = PEG_LIMIT_GRPC_REFLECTION_BYTES,
    .max_waiting_bytes = (size_t)8 * PEG_LIMIT_GRPC_REFLECTION_BYTES,
};

static peg_status init_reflection(struct grpc_reflection *reflection, struct grpc_server *server,
                                  const struct grpc_file *const *more, size_t n_more,
                                  peg_error *reterr)
{
    PEG_CLEANUP(peg__freep)
    const struct grpc_file **files =
        peg__alloc_zero(count_services(server) + 2 + n_more, sizeof(const struct grpc_file *));
    size_t n_files;
    peg_status status;

    make_alpha(reflection);
    if (!files || list_services(reflection, server, files, &n_files))
        return peg__fail_nomem(reterr);
    for (size_t i = 0; i < n_more; i++)
        files[n_files++] = more[i];
    status = grpc_symbols_new(files, n_files, &reflection->symbols, reterr);
    if (!status)
        status = grpc_server_add(server, &grpc_reflection_v1_server_reflection_service, &handler,
                                 reflection, reterr);
    if (!status)
        status = grpc_server_add(server, &reflection->alpha, &handler, reflection, reterr);
    grpc_server_bound(server, grpc_reflection_v1_server_reflection_service.methods->path, &bounds);
    grpc_server_bound(server, reflection->alpha_method.path, &bounds);
    return status;
}

peg_status grpc_reflection_new(struct grpc_server *server, struct grpc_reflection **ret_reflection,
                               peg_error *reterr)
{
    return grpc_reflection_new_with(server, NULL, 0, ret_reflection, reterr);
}

peg_status grpc_reflection_new_with(struct grpc_server *server,
                                    const struct grpc_file *const *files, size_t n_files,
                                    struct grpc_reflection **ret_reflection, peg_error *reterr)
{
    struct grpc_reflection *reflection = peg__alloc_zero(1, sizeof(*reflection));
    peg_status status;

    if (!reflection)
        return peg__fail_nomem(reterr);
    status = init_reflection(reflection, server, files, n_files, reterr);
    if (status) {
        grpc_reflection_free(reflection);
        return status;
    }
    *ret_reflection = reflection;
    return PEG_OK;
}

struct grpc_reflection *grpc_reflection_free(struct grpc_reflection *reflection)
{
    if (!reflection)
        return NULL;
    grpc_symbols_free(reflection->symbols);
    peg__free(reflection->services);
    peg__free(reflection->service_list);
    peg__free(reflection);
    return NULL;
}
