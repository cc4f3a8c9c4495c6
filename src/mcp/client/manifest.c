/* SPDX-License-Identifier: Apache-2.0 */

/* The server that a manifest names. Its headers are looked up now: in the manifest stands where. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sized.h"
#include "base/text/str.h"
#include "mcp/client/internal.h"
#include "tools/tools.h"

enum { VALUE_BYTES = 8192 };

struct looking {
    struct peg__arena arena;
    const char **lines;
    peg_error *reterr;
};

static peg_status reject_named_header(const struct looking *l, const char *name, const char *why)
{
    return peg__fail(l->reterr, PEG_EINVAL, "E_MCP", "the header %.100s: %s", name, why);
}

/* Without white space around it. */
static peg_status read_header_file(const struct looking *l,
                                   const struct peg__manifest_header *header, char *bytes,
                                   peg_str *ret_value)
{
    const int fd = open(header->file, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = 1;

    if (fd < 0)
        return reject_named_header(l, header->name, "its file cannot be opened");
    while (n && len <= VALUE_BYTES) {
        n = read(fd, bytes + len, VALUE_BYTES + 1 - len);
        if (n < 0 && errno != EINTR)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (n < 0)
        return reject_named_header(l, header->name, "its file cannot be read");
    if (len > VALUE_BYTES)
        return reject_named_header(l, header->name, "its file has more than 8 KiB");
    *ret_value = peg__str_trim(peg__strn(bytes, len), " \t\r\n");
    return PEG_OK;
}

static peg_status look_up(const struct looking *l, const struct peg__manifest_header *header,
                          char *bytes, peg_str *ret_value)
{
    const char *value = header->value;

    if (header->file)
        return read_header_file(l, header, bytes, ret_value);
    if (header->env) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): hosts do not change it while they import */
        value = getenv(header->env);
        if (!value)
            return reject_named_header(l, header->name, "its variable is not set");
    }
    *ret_value = peg__str(value);
    return PEG_OK;
}

static peg_status make_line(struct looking *l, const struct peg__manifest_header *header,
                            const char **ret_line)
{
    char bytes[VALUE_BYTES + 1];
    struct peg__buf line = PEG__BUF(PEG_LIMIT_MCP_IMPORT_HEADER_BYTES);
    peg_str value = {"", 0};
    peg_status status = look_up(l, header, bytes, &value);

    if (status)
        return status;
    peg__buf_printf(&line, "%s: %s", header->name, header->prefix);
    peg__buf_str(&line, value);
    if (line.status == PEG_ELIMIT)
        status = reject_named_header(l, header->name, "it has more than 64 KiB");
    else if (line.status)
        status = peg__fail_nomem(l->reterr);
    else if (strlen(line.ptr) != line.len || !mcp__is_header(line.ptr))
        status = reject_named_header(l, header->name, "its value is not one line of text");
    if (!status) {
        *ret_line = peg__arena_copy(&l->arena, peg__buf_view(&line));
        status = *ret_line ? PEG_OK : peg__fail_nomem(l->reterr);
    }
    peg__buf_free(&line);
    return status;
}

static peg_status look_up_headers(struct looking *l, const struct peg__manifest_mcp *mcp)
{
    peg_status status = PEG_OK;

    l->lines = peg__arena_alloc_zero(&l->arena, (mcp->n_headers + 1) * sizeof(*l->lines));
    if (!l->lines)
        return peg__fail_nomem(l->reterr);
    for (size_t i = 0; i < mcp->n_headers && !status; i++)
        status = make_line(l, &mcp->headers[i], &l->lines[i]);
    return status;
}

static peg_mcp_import_options merge_options(const peg_mcp_import_options *options,
                                            const struct peg__manifest_mcp *mcp)
{
    peg_mcp_import_options named = *options;

    named.command = (const char *const *)mcp->command;
    named.env = (const char *const *)mcp->env;
    named.directory = mcp->directory;
    named.include = (const char *const *)mcp->include;
    named.exclude = (const char *const *)mcp->exclude;
    named.timeout_ms = mcp->timeout_ms;
    named.url = mcp->url;
    named.private_addresses = mcp->private_addresses;
    return named;
}

peg_status peg_mcp_import_manifest(peg_registry *registry, const peg_manifest *manifest,
                                   const peg_mcp_import_options *options,
                                   peg_mcp_client **ret_client, peg_error *reterr)
{
    const struct peg__manifest_mcp *mcp = peg__manifest_mcp(manifest);
    struct looking l = {.reterr = reterr};
    peg_mcp_import_options named;
    peg_status status;

    PEG__READ_OR_RETURN(options, PEG_MCP_IMPORT_OPTIONS_INIT, reterr);
    if (!mcp) {
        *ret_client = NULL;
        return PEG_OK;
    }
    named = merge_options(options, mcp);
    status = look_up_headers(&l, mcp);
    named.headers = l.lines;
    if (!status)
        status = peg_mcp_import(registry, &named, ret_client, reterr);
    peg__arena_free(&l.arena);
    return status;
}
