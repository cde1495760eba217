#include "sharding/text/token.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static void skip_spaces(tsr_scan *scan)
{
    scan->at += strspn(scan->text + scan->at, " \t\n");
}

bool tsr_token_accept(tsr_scan *scan, const char *word)
{
    skip_spaces(scan);
    return tsr_scan_accept(scan, word);
}

tsr_status tsr_token_need(tsr_scan *scan, const char *word)
{
    char expected[64];
    if (tsr_token_accept(scan, word))
        return TSR_OK;
    snprintf(expected, sizeof expected, "\"%s\"", word);
    return tsr_scan_expected(scan, scan->at, expected);
}

tsr_status tsr_token_number(tsr_scan *scan, int64_t most, const char *expected, int64_t *out)
{
    skip_spaces(scan);
    return tsr_scan_number(scan, 0, most, expected, out);
}

tsr_status tsr_token_quoted(tsr_scan *scan, char quote, size_t *start, size_t *length)
{
    skip_spaces(scan);
    const char mark = scan->text[scan->at];
    const char *const expected = quote == '"' ? "a name in \"\"" : quote == '\'' ? "a name in ''" : "a name in quotes";
    if (mark == '\0' || (quote ? mark != quote : mark != '"' && mark != '\''))
        return tsr_scan_expected(scan, scan->at, expected);
    const char *const first = scan->text + scan->at + 1, *const last = strchr(first, mark);
    if (!last)
        return tsr_scan_refuse(scan, scan->at, "the quote that begins here does not end");
    *start = scan->at + 1;
    *length = (size_t)(last - first);
    scan->at += *length + 2;
    return TSR_OK;
}

tsr_status tsr_token_numbers(tsr_scan *scan, int64_t most, int64_t *out, int capacity, int *count)
{
    int found = 0;
    do {
        int64_t value;
        TSR_TRY(tsr_token_number(scan, most, "a number", &value));
        if (found == capacity)
            return tsr_scan_refuse(scan, scan->at - 1, "there are more numbers here than can be");
        out[found++] = value;
    } while (tsr_token_accept(scan, ","));
    *count = found;
    return TSR_OK;
}

tsr_status tsr_token_skip_braces(tsr_scan *scan)
{
    int64_t depth = 1;
    bool quoted = false;
    for (; depth > 0 && scan->text[scan->at]; scan->at++) {
        const char c = scan->text[scan->at];
        if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (c == '{') - (c == '}');
        else if (c == '\\' && scan->text[scan->at + 1])
            scan->at++;
    }
    return depth > 0 ? tsr_scan_expected(scan, scan->at, "\"}\"") : TSR_OK;
}

tsr_status tsr_token_end(tsr_scan *scan)
{
    skip_spaces(scan);
    return scan->text[scan->at] ? tsr_scan_expected(scan, scan->at, "the end") : TSR_OK;
}

tsr_status tsr_token_unsupported(tsr_scan *scan, size_t at, const char *reason)
{
    (void)tsr_scan_refuse(scan, at, reason);
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    return tsr_status_restore(&kept, TSR_ERROR_UNSUPPORTED);
}
