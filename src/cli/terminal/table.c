/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/terminal/terminal.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "json/json.h"

enum {
    GAP = 2,
    LEAST = 8, /* columns of a cell that is cut */
};

struct cli_cell {
    char *text; /* owned, harmless */
    size_t len;
    unsigned width;
    const char *on;
};

/* ---- cells ----------------------------------------------------------------------------------- */

static peg_status add_cell(struct cli_table *table, peg_str text, const char *on)
{
    struct peg__buf safe = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct cli_cell cell = {.on = on};
    peg_status status;

    if (!PEG__RESERVE(table->cells, table->n_cells + 1, table->capacity))
        return PEG_ENOMEM;
    cli_put_safe(&safe, text);
    status = peg__buf_take(&safe, &cell.text, &cell.len, NULL);
    if (status)
        return status;
    cell.width = cli_text_width(peg__strn(cell.text, cell.len));
    table->cells[table->n_cells++] = cell;
    return PEG_OK;
}

void cli_table_cell(struct cli_table *table, peg_str text, const char *on)
{
    if (!table->status)
        table->status = add_cell(table, text, on);
}

void cli_table_number(struct cli_table *table, uint64_t number)
{
    struct peg__buf text = PEG__BUF(64);

    cli_put_count(&text, number);
    cli_table_cell(table, peg__buf_view(&text), "");
    peg__buf_free(&text);
}

void cli_table_free(struct cli_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        peg__free(table->cells[i].text);
    peg__free(table->cells);
    table->cells = NULL;
    table->n_cells = 0;
    table->capacity = 0;
}

/* ---- widths ---------------------------------------------------------------------------------- */

static unsigned measure_columns(const struct cli_table *table,
                                unsigned widths[CLI_TABLE_MAX_COLUMNS])
{
    unsigned total = 0;

    for (size_t c = 0; c < table->n_columns; c++) {
        widths[c] = (unsigned)strlen(table->columns[c].title);
        for (size_t i = c; i < table->n_cells; i += table->n_columns) {
            if (table->cells[i].width > widths[c])
                widths[c] = table->cells[i].width;
        }
        total += widths[c] + (c ? GAP : 0);
    }
    return total;
}

/* The widest column that may be cut further, or NULL. */
static unsigned *widest(const struct cli_table *table, unsigned widths[CLI_TABLE_MAX_COLUMNS])
{
    unsigned *found = NULL;

    for (size_t c = 0; c < table->n_columns; c++) {
        if (table->columns[c].is_cut && widths[c] > LEAST && (!found || widths[c] > *found))
            found = &widths[c];
    }
    return found;
}

static void fit_columns(const struct cli_table *table, unsigned total, unsigned width,
                        unsigned widths[CLI_TABLE_MAX_COLUMNS])
{
    unsigned *column;

    while (total > width && (column = widest(table, widths)) != NULL) {
        (*column)--;
        total--;
    }
}

/* ---- printing -------------------------------------------------------------------------------- */

/* As many bytes as fit into the width; *ret_width is what these take. */
static size_t cut_to_width(peg_str text, unsigned width, unsigned *ret_width)
{
    size_t len = 0;

    *ret_width = 0;
    while (len < text.len) {
        const size_t n = peg__utf8_char_len(peg__str_from(text, len));
        const unsigned more = cli_text_width(peg__strn(text.ptr + len, n ? n : 1));

        if (*ret_width + more > width)
            break;
        *ret_width += more;
        len += n ? n : 1;
    }
    return len;
}

static void put_cell(struct peg__buf *out, peg_str text, unsigned text_width, unsigned width)
{
    if (text_width <= width) {
        peg__buf_str(out, text);
        return;
    }
    text.len = cut_to_width(text, width - 3, &text_width);
    peg__buf_str(out, text);
    peg__buf_puts(out, "...");
    peg__buf_repeat(out, ' ', width - 3 - text_width);
}

struct placed {
    const struct cli_column *column;
    unsigned width;
    bool is_last;
    const char *off;
};

static void put_placed_cell(struct peg__buf *out, const struct placed *at,
                            const struct cli_cell *cell)
{
    const unsigned blank = cell->width < at->width ? at->width - cell->width : 0;

    if (at->column->is_right)
        peg__buf_repeat(out, ' ', blank);
    peg__buf_puts(out, cell->on);
    put_cell(out, peg__strn(cell->text, cell->len), cell->width, at->width);
    if (*cell->on)
        peg__buf_puts(out, at->off);
    if (at->is_last) {
        peg__buf_putc(out, '\n');
        return;
    }
    if (!at->column->is_right)
        peg__buf_repeat(out, ' ', blank);
    peg__buf_repeat(out, ' ', GAP);
}

void cli_table_print(const struct cli_table *table, unsigned width, const struct cli_style *style,
                     struct peg__buf *out)
{
    unsigned widths[CLI_TABLE_MAX_COLUMNS];
    const unsigned total = measure_columns(table, widths);

    if (table->status) {
        out->status = table->status;
        return;
    }
    if (width)
        fit_columns(table, total, width, widths);
    for (size_t i = 0; i < table->n_columns + table->n_cells; i++) {
        const size_t c = i % table->n_columns;
        const char *title = table->columns[c].title;
        const struct placed at = {.column = &table->columns[c],
                                  .width = widths[c],
                                  .is_last = c + 1 == table->n_columns,
                                  .off = style->off};
        const struct cli_cell head = {.text = peg__unconst(title),
                                      .len = strlen(title),
                                      .width = (unsigned)strlen(title),
                                      .on = style->bold};

        put_placed_cell(out, &at,
                        i < table->n_columns ? &head : &table->cells[i - table->n_columns]);
    }
}
