/* SPDX-License-Identifier: Apache-2.0 */

/* Input: up to three numbers, one a line. Order, equality and division are those of arithmetic. */

#include "json/number/number.h"
#include "base/limits.h"
#include "fuzz.h"

enum { MAX_NUMBERS = 3, MAX_EXPONENT = 400 };

static bool read_number(peg_str text, peg_json *ret_number)
{
    return peg__number_read(text, PEG_LIMIT_NUMBER_DIGITS, MAX_EXPONENT, ret_number) ==
           PEG__NUMBER_OK;
}

static int compare(const peg_json *a, const peg_json *b)
{
    return peg_json_compare_numbers(a, b);
}

/* Written in either form the number reads back; the plain form as the same number. */
static void check_writing(const peg_json *number)
{
    struct peg__buf plain = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf canonical = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct peg__buf again = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    peg_json read;

    peg__number_write(number, &plain);
    REQUIRE(plain.status == PEG_OK && read_number(peg__buf_view(&plain), &read), "%s", plain.ptr);
    REQUIRE(compare(number, &read) == 0, "written as %s", plain.ptr);
    REQUIRE(number->kind != PEG_JSON_INTEGER || read.kind == PEG_JSON_INTEGER, "%s", plain.ptr);

    peg__number_canonical(number, &canonical);
    REQUIRE(canonical.status == PEG_OK &&
                peg__number_read(peg__buf_view(&canonical), 2000, 20000, &read) == PEG__NUMBER_OK,
            "canonical form %s of %s", canonical.ptr, plain.ptr);
    peg__number_canonical(&read, &again);
    REQUIRE(peg__str_eq(peg__buf_view(&canonical), peg__buf_view(&again)), "%s, then %s",
            canonical.ptr, again.ptr);
    peg__buf_free(&plain);
    peg__buf_free(&canonical);
    peg__buf_free(&again);
}

static void check_one(const peg_json *number)
{
    static const peg_json zero = {.kind = PEG_JSON_INTEGER, .u.number = 0};
    static const peg_json one = {.kind = PEG_JSON_INTEGER, .u.number = 1};
    int64_t whole;

    REQUIRE(compare(number, number) == 0, "a number equals itself");
    REQUIRE(peg_json_is_whole(number) == peg__number_is_multiple(number, &one), "whole is /1");
    if (compare(number, &zero) != 0)
        REQUIRE(peg__number_is_multiple(number, number), "a number divides itself");
    if (peg_json_int64(number, &whole)) {
        const peg_json same = {.kind = PEG_JSON_INTEGER, .u.number = whole};

        REQUIRE(peg_json_is_whole(number), "an integer is whole");
        REQUIRE(compare(number, &same) == 0, "%lld", (long long)whole);
        REQUIRE(peg__number_hash(number, 3) == peg__number_hash(&same, 3), "hash of an integer");
    }
    check_writing(number);
}

static void check_pair(const peg_json *a, const peg_json *b)
{
    const int order = compare(a, b);

    REQUIRE(order == -compare(b, a), "order is antisymmetric");
    if (order == 0) {
        REQUIRE(peg__number_hash(a, 5) == peg__number_hash(b, 5), "equal numbers, equal hashes");
        REQUIRE(peg_json_double(a) == peg_json_double(b), "equal numbers, equal doubles");
    }
    REQUIRE(peg_json_equal(a, b) == (order == 0), "equality is order 0");
    if (order < 0)
        REQUIRE(peg_json_double(a) <= peg_json_double(b), "doubles keep the order");
}

static void check_division(const peg_json *value, const peg_json *divisor)
{
    int64_t v;
    int64_t d;

    if (peg_json_int64(divisor, &d) && d == 0)
        return;
    if (!peg_json_int64(value, &v) || !peg_json_int64(divisor, &d) || d == -1)
        (void)peg__number_is_multiple(value, divisor);
    else
        REQUIRE(peg__number_is_multiple(value, divisor) == (v % d == 0), "%lld / %lld",
                (long long)v, (long long)d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    peg_str rest = fuzz_input(data, size);
    peg_json numbers[MAX_NUMBERS];
    size_t n = 0;

    while (n < MAX_NUMBERS && rest.len && read_number(fuzz_line(&rest), &numbers[n]))
        check_one(&numbers[n++]);
    for (size_t i = 0; i < n; i++) {
        const peg_json *a = &numbers[i];
        const peg_json *b = &numbers[(i + 1) % n];

        check_pair(a, b);
        check_division(a, b);
    }
    if (n == MAX_NUMBERS && compare(&numbers[0], &numbers[1]) <= 0 &&
        compare(&numbers[1], &numbers[2]) <= 0)
        REQUIRE(compare(&numbers[0], &numbers[2]) <= 0, "order is transitive");
    return 0;
}
