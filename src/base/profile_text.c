#include "base/profile_text.h"

#include "base/links.h"
#include "base/text/decimal.h"
#include "base/text/scan.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static const char *const link_names[] = {"inside=", "between="};
static const char *const span_names[TSR_PROFILE_SPANS] = {"step=", "piece="};
static const char *const work_names[TSR_TABLE_KINDS] = {
    [TSR_WORK_COPY] = "copy@", [TSR_WORK_KEEP] = "keep@", [TSR_WORK_SUM] = "sum@"};
static const char *const product_names[TSR_PRODUCT_KINDS] = {
    [TSR_PRODUCT_MULTIPLY] = "multiply@", [TSR_PRODUCT_ATTEND] = "attend@"};

/* Reads a profile's text line by line, so that an error in a file quotes its line. */
typedef struct reader {
    tsr_scan scan;
    int64_t line;
    char what[48];
    tsr_profile_content *out;
    bool has_link[2];
} reader;

static void begin_line(reader *r, const char *text)
{
    r->line++;
    snprintf(r->what, sizeof r->what, r->line > 1 ? "cost profile, line %lld" : "cost profile", (long long)r->line);
    r->scan = (tsr_scan){r->what, text, 0};
}

/* Moves to the next word, past comments and line ends; false at the end of the text. */
static bool next_word(reader *r)
{
    for (;;) {
        const char *const at = r->scan.text + r->scan.at;
        if (*at == '\n')
            begin_line(r, at + 1);
        else if (*at == '#')
            r->scan.at += strcspn(at, "\n");
        else if (*at != '\0' && strchr(" \t\r", *at))
            r->scan.at++;
        else
            return *at != '\0';
    }
}

static tsr_status read_end(tsr_scan *scan)
{
    if (scan->text[scan->at] != '\0' && !strchr(" \t\r\n#", scan->text[scan->at]))
        return tsr_scan_expected(scan, scan->at, "a space or the end");
    return TSR_OK;
}

static tsr_status read_rate(tsr_scan *scan, const char *expected, double *out)
{
    const size_t begin = scan->at;
    TSR_TRY(tsr_scan_decimal(scan, expected, out));
    return *out > 0 ? TSR_OK : tsr_scan_refuse(scan, begin, "a bandwidth is more than 0");
}

static tsr_status read_link(tsr_scan *scan, tsr_link *link)
{
    TSR_TRY(tsr_scan_decimal(scan, "a number of seconds, as 5e-7", &link->latency));
    if (!tsr_scan_comma(scan))
        return tsr_scan_expected(scan, scan->at, "\",\" and a bandwidth");
    TSR_TRY(read_rate(scan, "a number of bytes a second, as 1.6e10", &link->bandwidth));
    return read_end(scan);
}

/* Values stay so far from the limits of a double that their reciprocals and differences are
 * finite. */
static tsr_status read_value(tsr_scan *scan, bool is_rate, double *out)
{
    const size_t begin = scan->at;
    TSR_TRY(is_rate ? read_rate(scan, "a number of bytes a second, as 1.6e10", out)
                    : tsr_scan_decimal(scan, "a number of seconds, as 5e-7", out));
    if (*out > 1e30 || (is_rate && *out < 1e-30))
        return tsr_scan_refuse(scan, begin,
                               is_rate ? "a rate of a row is from 1e-30 to 1e30" : "seconds are 1e30 at most");
    return TSR_OK;
}

/* Reads KEY:VALUE,KEY:VALUE,..; keys ascend. */
static tsr_status read_row(tsr_scan *scan, bool rates, tsr_row *row)
{
    do {
        const size_t begin = scan->at;
        int64_t key = 0;
        if (row->count == TSR_ROW_POINTS)
            return tsr_scan_refuse(scan, begin, "a row has at most 32 numbers");
        TSR_TRY(tsr_scan_number(scan, 1, INT64_C(1) << 53,
                                rates ? "a number of bytes, as 8192" : "a number of ranks, as 4", &key));
        if (row->count > 0 && (double)key <= row->at[row->count - 1].key)
            return tsr_scan_refuse(scan, begin, "each key of a row is greater than the one before it");
        if (!tsr_scan_accept(scan, ":"))
            return tsr_scan_expected(scan, scan->at, rates ? "\":\" and a bandwidth" : "\":\" and seconds");
        row->at[row->count].key = (double)key;
        TSR_TRY(read_value(scan, rates, &row->at[row->count].value));
        row->count++;
    } while (tsr_scan_comma(scan));
    return read_end(scan);
}

/* Index of the first row whose run is at least `run`: that row, or the place where it is to be
 * inserted. */
static size_t place_of_run(const tsr_table *table, int64_t run)
{
    size_t row = 0;
    while (row < table->count && table->rows[row].run < run)
        row++;
    return row;
}

/* Reads "=" and the row of a table that `run` is the key of. `begin` is where the word begins. */
static tsr_status read_row_of(tsr_scan *scan, size_t begin, int64_t run, tsr_table *table)
{
    if (!tsr_scan_accept(scan, "="))
        return tsr_scan_expected(scan, scan->at, "\"=\"");
    const size_t place = place_of_run(table, run);
    if (place < table->count && table->rows[place].run == run)
        return tsr_scan_refuse(scan, begin, "this row stands here twice");
    if (table->count == TSR_TABLE_ROWS)
        return tsr_scan_refuse(scan, begin, "a kind of work has at most 8 rows");
    memmove(&table->rows[place + 1], &table->rows[place], (table->count - place) * sizeof *table->rows);
    table->rows[place] = (tsr_row){.run = run};
    table->count++;
    return read_row(scan, true, &table->rows[place]);
}

/* Reads what follows "copy@": a run, "=" and a row. */
static tsr_status read_work(tsr_scan *scan, size_t begin, tsr_table *table)
{
    int64_t run = TSR_RUN_WHOLE;
    if (!tsr_scan_accept(scan, "whole"))
        TSR_TRY(tsr_scan_number(scan, 1, INT64_C(1) << 53, "a run of bytes, as 64, or \"whole\"", &run));
    return read_row_of(scan, begin, run, table);
}

/* Reads what follows "multiply@": a least size, "=" and a row. */
static tsr_status read_product(tsr_scan *scan, size_t begin, tsr_table *table)
{
    int64_t least;
    TSR_TRY(tsr_scan_number(scan, 1, INT64_C(1) << 53, "a number of rows, as 512", &least));
    return read_row_of(scan, begin, least, table);
}

/* Index of the name that comes next, which is stepped over; `count`: none of them. */
static size_t accept_one(tsr_scan *scan, const char *const *names, size_t count)
{
    size_t which = 0;
    while (which < count && !tsr_scan_accept(scan, names[which]))
        which++;
    return which;
}

static tsr_status refuse_second(tsr_scan *scan, size_t begin, const char *what)
{
    char reason[64];
    snprintf(reason, sizeof reason, "this %s stands here twice", what);
    return tsr_scan_refuse(scan, begin, reason);
}

static tsr_status read_call(reader *r, size_t begin)
{
    if (r->out->has_call)
        return refuse_second(&r->scan, begin, "number");
    r->out->has_call = true;
    TSR_TRY(read_value(&r->scan, false, &r->out->call));
    return read_end(&r->scan);
}

/* Reads an entry for kernels of ops; refuses any other word. */
static tsr_status read_kernel(reader *r, size_t begin)
{
    if (tsr_scan_accept(&r->scan, "call="))
        return read_call(r, begin);
    if (tsr_scan_accept(&r->scan, "pass="))
        return r->out->pass.count > 0 ? refuse_second(&r->scan, begin, "row") : read_row(&r->scan, true, &r->out->pass);
    const size_t product = accept_one(&r->scan, product_names, TSR_PRODUCT_KINDS);
    if (product < TSR_PRODUCT_KINDS)
        return read_product(&r->scan, begin, &r->out->products[product]);
    return tsr_scan_expected(&r->scan, begin,
                             "inside=LATENCY,BANDWIDTH or between=LATENCY,BANDWIDTH, or step=, piece=, meeting=, "
                             "copy@, keep@, sum@, call=, pass=, multiply@ or attend@");
}

static tsr_status read_table(reader *r)
{
    const size_t begin = r->scan.at, span = accept_one(&r->scan, span_names, TSR_PROFILE_SPANS);
    if (span < TSR_PROFILE_SPANS) {
        if (r->out->has_spans[span])
            return refuse_second(&r->scan, begin, "number");
        r->out->has_spans[span] = true;
        TSR_TRY(read_value(&r->scan, false, &r->out->spans[span]));
        return read_end(&r->scan);
    }
    if (tsr_scan_accept(&r->scan, "meeting="))
        return r->out->meeting.count > 0 ? refuse_second(&r->scan, begin, "row")
                                         : read_row(&r->scan, false, &r->out->meeting);
    const size_t work = accept_one(&r->scan, work_names, TSR_TABLE_KINDS);
    if (work < TSR_TABLE_KINDS)
        return read_work(&r->scan, begin, &r->out->work[work]);
    return read_kernel(r, begin);
}

static tsr_status read_entry(reader *r)
{
    const size_t begin = r->scan.at, link = accept_one(&r->scan, link_names, 2);
    if (link == 2)
        return read_table(r);
    if (r->has_link[link])
        return refuse_second(&r->scan, begin, "kind of link");
    r->has_link[link] = true;
    return read_link(&r->scan, link == 0 ? &r->out->links.inside : &r->out->links.between);
}

tsr_status tsr_profile_read(const char *text, tsr_profile_content *out)
{
    reader r = {.line = 0, .out = out};
    *out = (tsr_profile_content){.links = tsr_cost_default()};
    begin_line(&r, text);
    while (next_word(&r))
        TSR_TRY(read_entry(&r));
    return tsr_profile_check("cost profile", &out->links);
}

tsr_status tsr_cost_parse(const char *text, tsr_cost_profile *out)
{
    tsr_profile_content content;
    if (!text || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_cost_parse: %s is NULL", text ? "out" : "text");
    TSR_TRY(tsr_profile_read(text, &content));
    *out = content.links;
    return TSR_OK;
}

static void append_link(tsr_text *text, const char *name, const tsr_link *link)
{
    tsr_text_append(text, "%s", name);
    tsr_decimal_append(text, link->latency);
    tsr_text_append(text, ",");
    tsr_decimal_append(text, link->bandwidth);
}

static void append_links(tsr_text *text, const tsr_cost_profile *links)
{
    append_link(text, link_names[0], &links->inside);
    tsr_text_append(text, " ");
    append_link(text, link_names[1], &links->between);
}

static void append_row(tsr_text *text, const tsr_row *row)
{
    for (size_t i = 0; i < row->count; i++) {
        tsr_text_append(text, "%s%lld:", i > 0 ? "," : "", (long long)row->at[i].key);
        tsr_decimal_append(text, row->at[i].value);
    }
}

static void append_work(tsr_text *text, const char *name, const tsr_row *row)
{
    if (row->run == TSR_RUN_WHOLE)
        tsr_text_append(text, "\n%swhole=", name);
    else
        tsr_text_append(text, "\n%s%lld=", name, (long long)row->run);
    append_row(text, row);
}

static void append_kernels(tsr_text *text, const tsr_profile_content *content)
{
    if (content->has_call) {
        tsr_text_append(text, "\ncall=");
        tsr_decimal_append(text, content->call);
    }
    if (content->pass.count > 0) {
        tsr_text_append(text, "\npass=");
        append_row(text, &content->pass);
    }
    for (size_t kind = 0; kind < TSR_PRODUCT_KINDS; kind++)
        for (size_t i = 0; i < content->products[kind].count; i++)
            append_work(text, product_names[kind], &content->products[kind].rows[i]);
}

void tsr_profile_append(tsr_text *text, const tsr_profile_content *content)
{
    const char *separator = "\n";
    append_links(text, &content->links);
    for (size_t i = 0; i < TSR_PROFILE_SPANS; i++) {
        if (!content->has_spans[i])
            continue;
        tsr_text_append(text, "%s%s", separator, span_names[i]);
        tsr_decimal_append(text, content->spans[i]);
        separator = " ";
    }
    if (content->meeting.count > 0) {
        tsr_text_append(text, "\nmeeting=");
        append_row(text, &content->meeting);
    }
    for (size_t kind = 0; kind < TSR_TABLE_KINDS; kind++)
        for (size_t i = 0; i < content->work[kind].count; i++)
            append_work(text, work_names[kind], &content->work[kind].rows[i]);
    append_kernels(text, content);
}

size_t tsr_cost_print(const tsr_cost_profile *profile, char *text, size_t capacity)
{
    tsr_text out = {text, capacity, 0};
    append_links(&out, profile);
    return out.length;
}
