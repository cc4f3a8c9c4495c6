/* SPDX-License-Identifier: Apache-2.0 */

#include "t.h"

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/telemetry/metrics.h"

/* ---- a strict reader of the text format, version 0.0.4 ---- */

static bool is_name(const char *text, size_t len)
{
    if (!len || (text[0] >= '0' && text[0] <= '9'))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:", text[i]))
            return false;
    }
    return true;
}

static const char *read_labels(const char *at)
{
    while (*at != '}') {
        const size_t len = strcspn(at, "=");

        if (!is_name(at, len))
            T_FAIL("no label: %.40s", at);
        at += len + 1;
        if (*at++ != '"')
            T_FAIL("no quote: %.40s", at);
        for (; *at != '"'; at++) {
            if (*at == '\0' || *at == '\n')
                T_FAIL("a label without end");
            if (*at == '\\' && !strchr("\\\"n", *++at))
                T_FAIL("no escape: %.10s", at);
        }
        at++;
        if (*at == ',')
            at++;
        else if (*at != '}')
            T_FAIL("no end of labels: %.40s", at);
    }
    return at + 1;
}

/* Each family: HELP, TYPE, its samples, and never again. */
struct reader {
    char family[128];
    char type[16];
    char seen[64][128];
    size_t n_seen;
    size_t n_samples;
};

static void read_comment(struct reader *r, const char *line)
{
    char name[128];
    char rest[16];

    if (sscanf(line, "# HELP %127s", name) == 1) {
        for (size_t i = 0; i < r->n_seen; i++) {
            if (strcmp(r->seen[i], name) == 0)
                T_FAIL("%s comes twice", name);
        }
        snprintf(r->family, sizeof(r->family), "%s", name);
        snprintf(r->seen[r->n_seen++], sizeof(r->seen[0]), "%s", name);
        r->type[0] = '\0';
    } else if (sscanf(line, "# TYPE %127s %15s", name, rest) == 2) {
        CHECK_STR(peg__str(name), r->family);
        CHECK(strcmp(rest, "gauge") == 0 || strcmp(rest, "counter") == 0 ||
              strcmp(rest, "histogram") == 0);
        snprintf(r->type, sizeof(r->type), "%s", rest);
    } else {
        T_FAIL("no comment of ours: %s", line);
    }
}

static void read_sample(struct reader *r, const char *line)
{
    const size_t len = strcspn(line, "{ ");
    const size_t family = strlen(r->family);
    const char *at = line + len;
    char *end;

    if (!is_name(line, len) || strncmp(line, r->family, family) != 0 || !r->type[0])
        T_FAIL("a sample out of its family %s: %.80s", r->family, line);
    if (len != family && strcmp(r->type, "histogram") != 0)
        T_FAIL("a sample of another name: %.80s", line);
    if (strcmp(r->type, "counter") == 0 && strncmp(line + len - 6, "_total", 6) != 0)
        T_FAIL("a counter without _total: %.80s", line);
    if (*at == '{')
        at = read_labels(at + 1);
    if (*at++ != ' ')
        T_FAIL("no blank before the value: %.80s", line);
    strtod(at, &end);
    if (end == at || *end)
        T_FAIL("no value: %.80s", line);
    r->n_samples++;
}

static size_t read_text(peg_str text)
{
    struct reader *r = calloc(1, sizeof(*r));
    size_t n_samples;
    char *copy = strndup(text.ptr, text.len);

    CHECK(text.len > 0 && text.ptr[text.len - 1] == '\n');
    for (char *line = copy; *line;) {
        /* strchr() would look at all that follows, under a sanitizer that is strict. */
        char *end = memchr(line, '\n', (size_t)(copy + text.len - line));

        *end = '\0';
        if (line[0] == '#')
            read_comment(r, line);
        else
            read_sample(r, line);
        line = end + 1;
    }
    n_samples = r->n_samples;
    free(copy);
    free(r);
    return n_samples;
}

/* ---- tests ---- */

static const struct gw_metrics_toolset two[] = {
    {.name = {"a", 1},
     .is_healthy = true,
     .last_pong_ms = 98500,
     .n_providers = 3,
     .n_draining = 1},
    {.name = {"b/c", 3}},
};

static struct gw_metrics_node node_with(const struct gw_metrics_toolset *toolsets, size_t n)
{
    return (struct gw_metrics_node){
        .version = "1.2.3",
        .bus = "local",
        .store = "sqlite",
        .registry = {"regi\"s\\try\n", 11},
        .now_ms = 100000,
        .started_ms = 40500,
        .n_connections = 7,
        .rss_bytes = 4096,
        .heap_bytes = 4000,
        .n_loops = 2,
        .is_draining = true,
        .n_toolsets = n,
        .n_tools = 12,
        .toolsets = toolsets,
    };
}

static bool has(const struct peg__buf *out, const char *line)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(out->ptr, whole))
        return true;
    printf("# no line %s\n", line);
    return false;
}

TEST(metrics_of_redis_are_there_if_there_is_one)
{
    struct gw_metrics *metrics = NULL;
    struct gw_metrics_node node = node_with(NULL, 0);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);

    CHECK_INT(gw_metrics_new(1, &metrics, NULL), PEG_OK);
    gw_metrics_write(metrics, &node, &out);
    CHECK(!strstr(out.ptr, "pegboard_redis"));
    peg__buf_clear(&out);
    node.has_redis = true;
    node.redis = (struct bus_redis_stats){.n_pipelines = 3,
                                          .n_commands = 12,
                                          .n_connects = 2,
                                          .n_epochs = 1,
                                          .n_sent_bytes = 100,
                                          .n_received_bytes = 200,
                                          .fenced_ns = 1500000000,
                                          .round_trips_ns = 2500000,
                                          .round_trips = {[1] = 4, [BUS_REDIS_BUCKETS - 1] = 1}};
    node.direct.n_pings = 5;
    node.direct.n_trims = 6;
    node.direct.n_expiries = 7;
    node.direct.n_removed_fields = 8;
    gw_metrics_write(metrics, &node, &out);

    CHECK_INT(out.status, PEG_OK);
    CHECK(read_text(peg__buf_view(&out)) > 40);
    CHECK(has(&out, "pegboard_direct_pings_total 5"));
    CHECK(has(&out, "pegboard_direct_trims_total 6"));
    CHECK(has(&out, "pegboard_direct_expiries_total 7"));
    CHECK(has(&out, "pegboard_direct_removed_fields_total 8"));
    CHECK(has(&out, "pegboard_redis_pipelines_total 3"));
    CHECK(has(&out, "pegboard_redis_commands_total 12"));
    CHECK(has(&out, "pegboard_redis_connects_total 2"));
    CHECK(has(&out, "pegboard_redis_epochs_total 1"));
    CHECK(has(&out, "pegboard_redis_sent_bytes_total 100"));
    CHECK(has(&out, "pegboard_redis_received_bytes_total 200"));
    CHECK(has(&out, "pegboard_redis_fenced_seconds_total 1.500000"));
    CHECK(has(&out, "pegboard_redis_round_trip_seconds_bucket{le=\"0.000032\"} 0"));
    CHECK(has(&out, "pegboard_redis_round_trip_seconds_bucket{le=\"0.000064\"} 4"));
    CHECK(has(&out, "pegboard_redis_round_trip_seconds_bucket{le=\"0.524288\"} 4"));
    CHECK(has(&out, "pegboard_redis_round_trip_seconds_bucket{le=\"+Inf\"} 5"));
    CHECK(has(&out, "pegboard_redis_round_trip_seconds_sum 0.002500"));
    CHECK(has(&out, "pegboard_redis_round_trip_seconds_count 5"));
    peg__buf_free(&out);
    gw_metrics_free(metrics);
}

TEST(metrics_are_told_as_prometheus_reads_them)
{
    struct gw_metrics *metrics = NULL;
    struct gw_metrics_node node = node_with(two, 2);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);
    struct gw_toolset_meter *meter;

    CHECK_INT(gw_metrics_new(1, &metrics, NULL), PEG_OK);
    meter = gw_metrics_meter(metrics, 0, peg__str("a"));
    gw_meter_admitted(meter);
    gw_meter_admitted(meter);
    gw_meter_admitted(meter);
    gw_meter_ended(meter, CALLS_KIND_RESULT, 20000);
    gw_meter_ended(meter, CALLS_KIND_ERROR, INT64_C(2500000000));
    gw_meter_queued(meter, 4);

    gw_metrics_write(metrics, &node, &out);

    CHECK_INT(out.status, PEG_OK);
    CHECK(read_text(peg__buf_view(&out)) > 40);
    CHECK(has(&out, "pegboard_build_info{version=\"1.2.3\",bus=\"local\",store=\"sqlite\","
                    "registry=\"regi\\\"s\\\\try\\n\"} 1"));
    CHECK(has(&out, "pegboard_uptime_seconds 59.500"));
    CHECK(has(&out, "process_resident_memory_bytes 4096"));
    CHECK(has(&out, "pegboard_heap_used_bytes 4000"));
    CHECK(has(&out, "pegboard_connections 7"));
    CHECK(has(&out, "pegboard_draining 1"));
    CHECK(has(&out, "pegboard_toolsets 2"));
    CHECK(has(&out, "pegboard_toolset_healthy{toolset=\"a\"} 1"));
    CHECK(has(&out, "pegboard_toolset_healthy{toolset=\"b/c\"} 0"));
    CHECK(has(&out, "pegboard_toolset_last_pong_age_seconds{toolset=\"a\"} 1.500"));
    CHECK(!strstr(out.ptr, "age_seconds{toolset=\"b/c\"}"));
    CHECK(has(&out, "pegboard_toolset_providers{toolset=\"a\",state=\"serving\"} 2"));
    CHECK(has(&out, "pegboard_toolset_providers{toolset=\"a\",state=\"draining\"} 1"));
    CHECK(has(&out, "pegboard_calls_total{toolset=\"a\",outcome=\"result\"} 1"));
    CHECK(has(&out, "pegboard_calls_total{toolset=\"a\",outcome=\"outcome_unknown\"} 0"));
    /* From the start: what is 1 when it is first seen has not increased. */
    for (int i = 0; i < CALLS_N_KINDS; i++) {
        char line[128];

        snprintf(line, sizeof(line), "pegboard_calls_total{toolset=\"b/c\",outcome=\"%s\"} 0",
                 gw_outcome_kind_name((enum calls_outcome_kind)i));
        CHECK(has(&out, line));
    }
    CHECK(has(&out, "pegboard_late_results_total{toolset=\"b/c\"} 0"));
    CHECK(has(&out, "pegboard_calls_in_flight{toolset=\"a\"} 1"));
    CHECK(has(&out, "pegboard_queue_depth{toolset=\"a\"} 4"));
    CHECK(has(&out, "pegboard_call_duration_seconds_bucket{toolset=\"a\",le=\"0.000016\"} 0"));
    CHECK(has(&out, "pegboard_call_duration_seconds_bucket{toolset=\"a\",le=\"0.000032\"} 1"));
    CHECK(has(&out, "pegboard_call_duration_seconds_bucket{toolset=\"a\",le=\"67.108864\"} 2"));
    CHECK(has(&out, "pegboard_call_duration_seconds_bucket{toolset=\"a\",le=\"+Inf\"} 2"));
    CHECK(has(&out, "pegboard_call_duration_seconds_sum{toolset=\"a\"} 2.500020"));
    CHECK(has(&out, "pegboard_call_duration_seconds_count{toolset=\"a\"} 2"));
    CHECK(has(&out, "pegboard_histograms_left_out 0"));
    peg__buf_free(&out);
    gw_metrics_free(metrics);
}

TEST(a_node_without_toolsets_has_metrics_too)
{
    struct gw_metrics *metrics = NULL;
    struct gw_metrics_node node = node_with(NULL, 0);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);

    node.rss_bytes = node.heap_bytes = 0;
    CHECK_INT(gw_metrics_new(1, &metrics, NULL), PEG_OK);
    gw_metrics_write(metrics, &node, &out);
    CHECK(read_text(peg__buf_view(&out)) > 10);
    CHECK(!strstr(out.ptr, "resident"));
    CHECK(!strstr(out.ptr, "heap"));
    peg__buf_free(&out);
    gw_metrics_free(metrics);
}

/* Ten thousand toolsets that were all called, with names of this length, in turns of so many
 * principals. */
static void tell_ten_thousand(size_t name_len, size_t n_owners, struct peg__buf *out)
{
    enum { N = 10000 };
    static const char *const owners[] = {"token:0", "token:1", "token:2", "token:3", "token:4",
                                         "token:5", "token:6", "token:7", "token:8", "token:9"};
    struct gw_metrics *metrics = NULL;
    struct gw_metrics_toolset *toolsets = calloc(N, sizeof(*toolsets));
    char *names = malloc(N * (name_len + 1));
    struct gw_metrics_node node = node_with(toolsets, N);

    CHECK_INT(gw_metrics_new(1, &metrics, NULL), PEG_OK);
    for (size_t i = 0; i < N; i++) {
        char *name = names + i * (name_len + 1);
        struct gw_toolset_meter *meter;

        memset(name, 'x', name_len);
        snprintf(name + name_len - 5, 6, "%05zu", i);
        toolsets[i] = (struct gw_metrics_toolset){.name = {name, name_len},
                                                  .owner = peg__str(owners[i % n_owners]),
                                                  .last_pong_ms = 1,
                                                  .n_providers = 2,
                                                  .n_draining = 1};
        meter = gw_metrics_meter(metrics, 0, toolsets[i].name);
        gw_meter_admitted(meter);
        gw_meter_ended(meter, CALLS_KIND_RESULT, 1000);
    }
    gw_metrics_write(metrics, &node, out);
    gw_metrics_free(metrics);
    free(toolsets);
    free(names);
}

/* The sum of the samples of a family that have this at the end of their labels. */
static double sum_of(const struct peg__buf *out, const char *family, const char *labels)
{
    const char *const end = out->ptr + out->len;
    const char *at = out->ptr;
    double sum = 0;

    /* With lengths: a sanitizer measures a whole string at each call that takes one. */
    while ((at = memmem(at, (size_t)(end - at), family, strlen(family)))) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *label = memmem(at, (size_t)(line_end - at), labels, strlen(labels));

        if (at > out->ptr && at[-1] == '\n' && label) {
            char number[32] = "";

            label += strlen(labels);
            memcpy(number, label, (size_t)(line_end - label) % sizeof(number));
            sum += strtod(number, NULL);
        }
        at = line_end;
    }
    return sum;
}

VOLUME_TEST(toolsets_beyond_the_share_of_their_principal_are_summed)
{
    for (size_t n_owners = 1; n_owners <= 2; n_owners++) {
        struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);

        tell_ten_thousand(20, n_owners, &out);
        CHECK_INT(out.status, PEG_OK);
        read_text(peg__buf_view(&out));
        CHECK(has(&out, "pegboard_toolsets 10000"));
        CHECK(has(&out, n_owners == 1 ? "pegboard_toolsets_left_out 9000"
                                      : "pegboard_toolsets_left_out 8000"));
        CHECK(has(&out, n_owners == 1
                            ? "pegboard_calls_total{toolset=\"(other)\",outcome=\"result\"} 9000"
                            : "pegboard_calls_total{toolset=\"(other)\",outcome=\"result\"} 8000"));
        CHECK(!strstr(out.ptr, "pegboard_toolset_healthy{toolset=\"(other)\"}"));
        CHECK_INT(sum_of(&out, "pegboard_calls_total{", ",outcome=\"result\"} "), 10000);
        CHECK_INT(sum_of(&out, "pegboard_toolset_providers{", ",state=\"serving\"} "), 10000);
        CHECK_INT(sum_of(&out, "pegboard_toolset_providers{", ",state=\"draining\"} "), 10000);
        CHECK_INT(sum_of(&out, "pegboard_call_duration_seconds_count{", "\"} "), 10000);
        CHECK_INT(sum_of(&out, "pegboard_toolset_healthy{", "\"} "), 0);
        peg__buf_free(&out);
    }
}

VOLUME_TEST(ten_thousand_toolsets_of_ten_fit_without_most_of_their_latencies)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);

    tell_ten_thousand(20, 10, &out);
    CHECK_INT(out.status, PEG_OK);
    CHECK(has(&out, "pegboard_toolsets_left_out 0"));
    CHECK(has(&out, "pegboard_histograms_left_out 9000"));
    read_text(peg__buf_view(&out));
    peg__buf_free(&out);
}

VOLUME_TEST(ten_thousand_toolsets_with_the_longest_names_are_told_in_part)
{
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);

    tell_ten_thousand(256, 10, &out);
    CHECK_INT(out.status, PEG_OK);
    CHECK(strstr(out.ptr, "\npegboard_toolsets_left_out 0\n") == NULL);
    CHECK(strstr(out.ptr, "\npegboard_toolsets_left_out ") != NULL);
    CHECK_INT(sum_of(&out, "pegboard_calls_total{", ",outcome=\"result\"} "), 10000);
    read_text(peg__buf_view(&out));
    peg__buf_free(&out);
}

TEST(resident_memory_is_told)
{
    const uint64_t rss = gw_rss_bytes();

    CHECK(rss == 0 || (rss > 100000 && rss < (UINT64_C(1) << 40)));
}

/* Small blocks, and one that gets pages of its own. */
TEST(memory_in_use_is_told)
{
    enum { N_SMALL = 1000, SMALL = 1000, LARGE = 64 << 20 };
    const uint64_t before = gw_measure_heap();
    void *small[N_SMALL];
    void *large;
    uint64_t with_small;
    uint64_t with_both;

    if (!before)
        SKIP("the allocator does not tell");
    for (size_t i = 0; i < N_SMALL; i++)
        small[i] = peg__alloc(SMALL);
    with_small = gw_measure_heap();
    large = peg__alloc(LARGE);
    with_both = gw_measure_heap();
    peg__free(large);
    for (size_t i = 0; i < N_SMALL; i++)
        peg__free(small[i]);
    CHECK(with_small >= before + (uint64_t)N_SMALL * SMALL && with_small < before + LARGE);
    CHECK(with_both >= with_small + LARGE && with_both < with_small + 2 * (uint64_t)LARGE);
    CHECK(gw_measure_heap() < before + (uint64_t)N_SMALL * SMALL);
}

TORTURE(metrics_without_memory_are_an_error)
{
    struct gw_metrics *metrics = NULL;
    struct gw_metrics_node node = node_with(two, 2);
    struct peg__buf out = PEG__BUF(PEG_LIMIT_GATEWAY_METRICS_BYTES);
    peg_status status = gw_metrics_new(1, &metrics, NULL);

    if (!status) {
        gw_metrics_write(metrics, &node, &out);
        status = out.status;
    }
    peg__buf_free(&out);
    gw_metrics_free(metrics);
    return status;
}
