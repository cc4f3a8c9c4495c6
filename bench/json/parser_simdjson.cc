/* SPDX-License-Identifier: Apache-2.0 */

/*
 * simdjson, by its document tree and on demand, each with its parser used again and with texts
 * that are padded already, as its documentation asks for speed. It picks its instruction set at
 * run time for what the Debian library holds. On demand is mostly inline code, compiled here: once
 * as Debian builds for every machine, and once with -march=native (BENCH_NATIVE).
 */

#include <simdjson.h>

#include "bench.h"

namespace
{

namespace dom = simdjson::dom;
namespace ondemand = simdjson::ondemand;

#ifndef BENCH_NATIVE

void walk(const dom::element &value, bench_tally *tally) // NOLINT(misc-no-recursion)
{
    tally->values++;
    switch (value.type()) {
    case dom::element_type::STRING:
        tally->string_bytes += value.get_string_length().value_unsafe();
        break;
    case dom::element_type::INT64:
        tally->numbers += static_cast<double>(value.get_int64().value_unsafe());
        break;
    case dom::element_type::UINT64:
        tally->numbers += static_cast<double>(value.get_uint64().value_unsafe());
        break;
    case dom::element_type::DOUBLE:
        tally->numbers += value.get_double().value_unsafe();
        break;
    case dom::element_type::BOOL:
        tally->truths += value.get_bool().value_unsafe();
        break;
    case dom::element_type::ARRAY:
        for (dom::element item : dom::array(value.get_array()))
            walk(item, tally);
        break;
    case dom::element_type::OBJECT:
        for (dom::key_value_pair member : dom::object(value.get_object())) {
            tally->string_bytes += member.key.size();
            walk(member.value, tally);
        }
        break;
    case dom::element_type::NULL_VALUE:
        break;
    }
}

void *open_dom()
{
    return new dom::parser();
}

bool run_dom(void *state, const char *text, size_t len, bench_tally *tally)
{
    dom::element root;

    if (static_cast<dom::parser *>(state)->parse(text, len, false).get(root))
        return false;
    walk(root, tally);
    return true;
}

void close_dom(void *state)
{
    delete static_cast<dom::parser *>(state);
}

#endif

/* Errors are exceptions here; a document that is wrong is told by run_ondemand. */
template <typename Value> void visit(Value value, bench_tally *tally) // NOLINT(misc-no-recursion)
{
    tally->values++;
    switch (ondemand::json_type(value.type())) {
    case ondemand::json_type::string:
        tally->string_bytes += std::string_view(value.get_string()).size();
        break;
    case ondemand::json_type::number:
        tally->numbers += double(value.get_double());
        break;
    case ondemand::json_type::boolean:
        tally->truths += bool(value.get_bool());
        break;
    case ondemand::json_type::array:
        for (auto item : ondemand::array(value.get_array()))
            visit<ondemand::value>(item.value(), tally);
        break;
    case ondemand::json_type::object:
        for (auto field : ondemand::object(value.get_object())) {
            tally->string_bytes += std::string_view(field.unescaped_key()).size();
            visit<ondemand::value>(field.value(), tally);
        }
        break;
    case ondemand::json_type::null:
        if (!value.is_null())
            throw simdjson::simdjson_error(simdjson::N_ATOM_ERROR);
        break;
    }
}

void *open_ondemand()
{
    return new ondemand::parser();
}

bool run_ondemand(void *state, const char *text, size_t len, bench_tally *tally)
{
    try {
        ondemand::parser *parser = static_cast<ondemand::parser *>(state);
        ondemand::document document =
            parser->iterate(simdjson::padded_string_view(text, len, len + BENCH_PADDING));

        visit<ondemand::document &>(document, tally);
        return true;
    } catch (const simdjson::simdjson_error &) {
        return false;
    }
}

void close_ondemand(void *state)
{
    delete static_cast<ondemand::parser *>(state);
}

} // namespace

#ifdef BENCH_NATIVE
const bench_parser bench_simdjson_ondemand_native = {"simdjson on demand, native", open_ondemand,
                                                     run_ondemand, close_ondemand, nullptr,
                                                     nullptr};
#else
const bench_parser bench_simdjson_dom = {"simdjson DOM", open_dom, run_dom,
                                         close_dom, nullptr, nullptr};
const bench_parser bench_simdjson_ondemand = {"simdjson on demand", open_ondemand, run_ondemand,
                                              close_ondemand, nullptr, nullptr};
#endif
