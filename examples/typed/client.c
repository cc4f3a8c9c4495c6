/* SPDX-License-Identifier: Apache-2.0 */

/* Calls the tools of forecast.yaml through a gateway: typed_client [ADDRESS] */

#include <pegboard/client.h>
#include <stdio.h>

#include "client.h" /* generated */

static int show_weather(peg_ctx *client, peg_error *e)
{
    const weather_get_args args = {.city = {"Rome", 4},
                                   .has_days = true,
                                   .days = 2,
                                   .has_units = true,
                                   .units = WEATHER_GET_ARGS_UNITS_FAHRENHEIT};
    weather_get_result result;

    if (weather_get(client, &args, &result, e))
        return 1;
    printf(PEG_FMT ":\n", PEG_ARG(result.city));
    for (size_t i = 0; i < result.days.len; i++)
        printf("  " PEG_FMT " %.1f, %s\n", PEG_ARG(result.days.items[i].date),
               result.days.items[i].high,
               result.days.items[i].low.is_null ? "no low" : "with a low");
    printf("  %zu points of a chart, from " PEG_FMT "\n",
           result.server_data.has_forecast_chart ? result.server_data.forecast_chart.len : 0,
           PEG_ARG(result.server_data.forecast_evidence.station));
    weather_get_result_free(&result);
    return 0;
}

static int subscribe(peg_ctx *client, peg_error *e)
{
    static const peg_str names[] = {{"team", 4}};
    static const peg_str values[] = {{"ops", 3}};
    weather_alert_args args = {.to = {.tag = WEATHER_ALERT_ARGS_TO_HOOK},
                               .has_labels = true,
                               .labels = {names, values, 1}};
    weather_alert_result result;

    args.to.as.hook.url = peg_cstr("https://a.example");
    if (weather_alert(client, &args, &result, e))
        return 1;
    printf("alert %d\n", (int)result.id);
    weather_alert_result_free(&result);
    return 0;
}

static int list_stations(peg_ctx *client, peg_error *e)
{
    const weather_stations_args args = {0};
    weather_stations_result result;

    if (weather_stations(client, &args, &result, e))
        return 1;
    for (size_t i = 0; i < result.value.len; i++)
        printf("station " PEG_FMT " with %zu below\n", PEG_ARG(result.value.items[i].name),
               result.value.items[i].below.len);
    weather_stations_result_free(&result);
    return 0;
}

/* The tool refuses, and says why; and what does not fit the schema does not reach it. */
static int ask_too_much(peg_ctx *client, peg_error *e)
{
    const weather_get_args nowhere = {.city = {"Llanfairpwllgwyngyllgogerychwyrndrobwll", 39}};
    const weather_get_args too_long = {.city = {"Rome", 4}, .has_days = true, .days = 9};
    weather_get_result result;

    if (weather_get(client, &nowhere, &result, e) != PEG_EHOST)
        return 1;
    printf("refused: %s\n", e->message);
    if (weather_get(client, &too_long, &result, e) != PEG_EHOST)
        return 1;
    printf("does not fit: %s\n", e->message);
    return 0;
}

int main(int argc, char **argv)
{
    const peg_client_options options = {PEG_CLIENT_OPTIONS_INIT,
                                        .address = argc > 1 ? argv[1] : NULL};
    peg_client *gateway = NULL;
    peg_registry *registry = NULL;
    peg_ctx *client = NULL;
    peg_error e;
    int failed;

    failed = peg_client_new(&options, &gateway, &e) ||
             peg_client_import(gateway, NULL, "weather", NULL, &registry, &e) ||
             peg_ctx_with_registry(NULL, registry, &client, &e) || show_weather(client, &e) ||
             subscribe(client, &e) || list_stations(client, &e) || ask_too_much(client, &e);
    if (failed)
        fprintf(stderr, "%s: %s\n", e.code, e.message);
    peg_ctx_unref(client);
    peg_registry_unref(registry);
    peg_client_unref(gateway);
    return failed;
}
