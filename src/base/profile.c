#include "base/profile.h"

#include "base/text/decimal.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tessera/sys/status.h>

#define NUMBER_BYTES 32

tsr_cost_profile tsr_cost_default(void)
{
    return (tsr_cost_profile){.inside = {0.5e-6, 16e9}, .between = {5e-6, 12.5e9}};
}

static const char *number(double value, char text[NUMBER_BYTES])
{
    tsr_text out = {text, NUMBER_BYTES, 0};
    tsr_decimal_append(&out, value);
    return text;
}

static tsr_status check_link(const char *source, const char *name, const tsr_link *link)
{
    char text[NUMBER_BYTES];
    if (!isfinite(link->latency) || link->latency < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s.latency is %s; it is a number of seconds, 0 or more", source, name,
                              number(link->latency, text));
    if (!isfinite(link->bandwidth) || link->bandwidth <= 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s.bandwidth is %s; it is a number of bytes a second, more than 0", source, name,
                              number(link->bandwidth, text));
    return TSR_OK;
}

tsr_status tsr_profile_check(const char *source, const tsr_cost_profile *profile)
{
    char inside[NUMBER_BYTES], between[NUMBER_BYTES];
    TSR_TRY(check_link(source, "inside", &profile->inside));
    TSR_TRY(check_link(source, "between", &profile->between));
    if (profile->inside.latency > profile->between.latency)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: inside.latency is %s, more than between.latency, %s; the model needs a step inside a node to begin no "
                              "later than one between nodes",
                              source, number(profile->inside.latency, inside), number(profile->between.latency, between));
    return TSR_OK;
}

/* A profile's text, line by line, so that errors in a file quote the line. */
typedef struct reader {
    tsr_scan scan;
    int64_t line;
    char what[48];
} reader;

static void begin_line(reader *r, const char *text)
{
    r->line++;
    snprintf(r->what, sizeof r->what, r->line > 1 ? "cost profile, line %lld" : "cost profile", (long long)r->line);
    r->scan = (tsr_scan){r->what, text, 0};
}

/* To the next word, over comments and line ends; false at the end of the text. */
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

static tsr_status read_link(tsr_scan *scan, tsr_link *link)
{
    TSR_TRY(tsr_scan_decimal(scan, "a number of seconds, as 5e-7", &link->latency));
    if (!tsr_scan_comma(scan))
        return tsr_scan_expected(scan, scan->at, "\",\" and a bandwidth");
    const size_t bandwidth = scan->at;
    TSR_TRY(tsr_scan_decimal(scan, "a number of bytes a second, as 1.6e10", &link->bandwidth));
    if (link->bandwidth == 0)
        return tsr_scan_refuse(scan, bandwidth, "a bandwidth is more than 0");
    if (scan->text[scan->at] != '\0' && !strchr(" \t\r\n#", scan->text[scan->at]))
        return tsr_scan_expected(scan, scan->at, "a space or the end");
    return TSR_OK;
}

static tsr_status read_entry(reader *r, tsr_cost_profile *profile, bool seen[2])
{
    static const char *const names[2] = {"inside=", "between="};
    const size_t begin = r->scan.at;
    const int which = tsr_scan_accept(&r->scan, names[0]) ? 0 : 1;
    if (which == 1 && !tsr_scan_accept(&r->scan, names[1]))
        return tsr_scan_expected(&r->scan, begin, "inside=LATENCY,BANDWIDTH or between=LATENCY,BANDWIDTH");
    if (seen[which])
        return tsr_scan_refuse(&r->scan, begin, "this kind of link stands here twice");
    seen[which] = true;
    return read_link(&r->scan, which == 0 ? &profile->inside : &profile->between);
}

tsr_status tsr_cost_parse(const char *text, tsr_cost_profile *out)
{
    if (!text || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_cost_parse: %s is NULL", text ? "out" : "text");
    tsr_cost_profile profile = tsr_cost_default();
    bool seen[2] = {false, false};
    reader r = {.line = 0};
    begin_line(&r, text);
    while (next_word(&r))
        TSR_TRY(read_entry(&r, &profile, seen));
    TSR_TRY(tsr_profile_check("cost profile", &profile));
    *out = profile;
    return TSR_OK;
}

static void print_link(tsr_text *text, const char *name, const tsr_link *link)
{
    tsr_text_append(text, "%s=", name);
    tsr_decimal_append(text, link->latency);
    tsr_text_append(text, ",");
    tsr_decimal_append(text, link->bandwidth);
}

size_t tsr_cost_print(const tsr_cost_profile *profile, char *text, size_t capacity)
{
    tsr_text out = {text, capacity, 0};
    print_link(&out, "inside", &profile->inside);
    print_link(&out, " between", &profile->between);
    return out.length;
}
