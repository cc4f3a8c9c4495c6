/* SPDX-License-Identifier: Apache-2.0 */

/* The tools of forecast.yaml, offered through a gateway until SIGTERM, attached or as a direct
 * toolset: typed_provider [ADDRESS [REDIS]] */

#include <pegboard/provider.h>
#include <stdio.h>

#include "provider.h" /* generated */

int weather_get_run(const weather_get_args *args, weather_get_result *result, peg_call *call,
                    void *user)
{
    weather_get_result_day *days;
    double *chart;

    (void)user;
    if (args->city.len > 20)
        return peg_call_fail(call, "there is no city with so long a name"), 1;
    /* The schema has a default for days, so that has_days is always true. */
    days = peg_arena_alloc(result->arena, (size_t)args->days, sizeof(*days));
    chart = peg_arena_alloc(result->arena, (size_t)args->days, sizeof(*chart));
    if (!days || !chart)
        return 1;
    for (int64_t i = 0; i < args->days; i++) {
        const double celsius = 20 + (double)i;

        days[i].date = peg_arena_printf(result->arena, "2026-11-%02d", 18 + (int)i);
        days[i].high =
            args->units == WEATHER_GET_ARGS_UNITS_FAHRENHEIT ? celsius * 1.8 + 32 : celsius;
        days[i].has_low = true;
        days[i].low.is_null = true; /* no station has told */
        chart[i] = days[i].high;
    }
    result->city = args->city;
    result->days.items = days;
    result->days.len = (size_t)args->days;
    result->server_data.has_forecast_chart = args->days > 1;
    result->server_data.forecast_chart.items = chart;
    result->server_data.forecast_chart.len = (size_t)args->days;
    result->server_data.forecast_evidence.station = peg_cstr("LIRF");
    result->server_data.forecast_evidence.readings = 24;
    return 0;
}

int weather_alert_run(const weather_alert_args *args, weather_alert_result *result, peg_call *call,
                      void *user)
{
    (void)call;
    (void)user;
    result->id = args->to.tag == WEATHER_ALERT_ARGS_TO_MAIL
                     ? (int64_t)args->to.as.mail.address.len
                     : 1000 + (int64_t)args->to.as.hook.url.len;
    result->id += (int64_t)args->labels.len * 100;
    return 0;
}

int weather_stations_run(const weather_stations_args *args, weather_stations_result *result,
                         peg_call *call, void *user)
{
    static const weather_stations_result_station italy = {.name = {"Italy", 5}};
    static const weather_stations_result_station rome[] = {
        {.name = {"Ciampino", 8}, .has_parent = true, .parent = &italy},
        {.name = {"Fiumicino", 9}, .has_default_ = true, .default_ = true},
    };
    static const weather_stations_result_station all[] = {
        {.name = {"Rome", 4}, .has_below = true, .below = {rome, 2}}};

    (void)args;
    (void)call;
    (void)user;
    result->value.items = all;
    result->value.len = 1;
    return 0;
}

static void tell(const peg_provider_event *event, void *user)
{
    (void)user;
    if (event->kind == PEG_PROVIDER_ATTACHED)
        printf("%s is offered at %s\n", event->toolset, event->address), fflush(stdout);
}

int main(int argc, char **argv)
{
    const peg_provider_options options = {PEG_PROVIDER_OPTIONS_INIT,
                                          .toolset = WEATHER_TOOLSET,
                                          .description = WEATHER_DESCRIPTION,
                                          .version = WEATHER_VERSION,
                                          .address = argc > 1 ? argv[1] : NULL,
                                          .on_event = tell,
                                          .handles_signals = true};
    const peg_provider_streams streams = {PEG_PROVIDER_STREAMS_INIT,
                                          .redis_url = argc > 2 ? argv[2] : NULL};
    peg_registry *registry = NULL;
    peg_error e;

    if (weather_registry_new(NULL, &registry, &e) ||
        (argc > 2 ? peg_provider_serve_streams(registry, &options, &streams, &e)
                  : peg_provider_serve(registry, &options, &e)))
        return fprintf(stderr, "%s: %s\n", e.code, e.message), 1;
    return peg_registry_unref(registry), 0;
}
