#include "base/text/scan.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* An error quotes at most this many characters of the text, so that a long text does not push the
 * reason out. */
#define QUOTED 200

bool tsr_scan_accept(tsr_scan *scan, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(scan->text + scan->at, word, length) != 0)
        return false;
    scan->at += length;
    return true;
}

static size_t after_spaces(const char *text, size_t at)
{
    return at + strspn(text + at, " ");
}

bool tsr_scan_comma(tsr_scan *scan)
{
    const size_t comma = after_spaces(scan->text, scan->at);
    if (scan->text[comma] != ',')
        return false;
    scan->at = after_spaces(scan->text, comma + 1);
    return true;
}

static tsr_status refuse_large(tsr_scan *scan, size_t at, int64_t most, const char *expected)
{
    char reason[256];
    snprintf(reason, sizeof reason, "expected %s, found a number beyond %lld", expected, (long long)most);
    return tsr_scan_refuse(scan, at, reason);
}

tsr_status tsr_scan_number(tsr_scan *scan, int64_t least, int64_t most, const char *expected, int64_t *out)
{
    const size_t start = scan->at;
    int64_t value = 0;
    size_t at = start;
    for (; scan->text[at] >= '0' && scan->text[at] <= '9'; at++) {
        const int64_t digit = scan->text[at] - '0';
        if (digit > most || value > (most - digit) / 10)
            return refuse_large(scan, start, most, expected);
        value = value * 10 + digit;
    }
    if (at == start || value < least)
        return tsr_scan_expected(scan, start, expected);
    scan->at = at;
    *out = value;
    return TSR_OK;
}

tsr_status tsr_scan_refuse(tsr_scan *scan, size_t at, const char *reason)
{
    scan->at = at;
    const size_t line = strcspn(scan->text, "\n");
    const bool cut = line > QUOTED;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s \"%.*s%s\", character %zu: %s", scan->what, cut ? QUOTED : (int)line,
                          scan->text, cut ? ".." : "", at + 1, reason);
}

tsr_status tsr_scan_expected(tsr_scan *scan, size_t at, const char *expected)
{
    const unsigned char found = (unsigned char)scan->text[at];
    char shown[16];
    if (!found)
        snprintf(shown, sizeof shown, "the end");
    else if (found == '\n')
        snprintf(shown, sizeof shown, "a line's end");
    else if (found < ' ' || found > '~')
        snprintf(shown, sizeof shown, "byte 0x%02x", found);
    else
        snprintf(shown, sizeof shown, "\"%c\"", found);
    char reason[256];
    snprintf(reason, sizeof reason, "expected %s, found %s", expected, shown);
    return tsr_scan_refuse(scan, at, reason);
}
