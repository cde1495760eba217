#include "ops/models/match.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* The length of the component at `at`, at most `rest`. */
static size_t component(const char *at, size_t rest)
{
    size_t length = 0;
    while (length < rest && at[length] && at[length] != '.')
        length++;
    return length;
}

static bool is_number(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)at[i]))
            return false;
    }
    return length > 0;
}

static bool is_word(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)at[i]) && at[i] != '_' && at[i] != '-')
            return false;
    }
    return length > 0;
}

static bool is_star(const char *at, size_t length)
{
    return length == 1 && *at == '*';
}

tsr_status tsr_pattern_check(const char *pattern)
{
    const char *at = pattern;
    for (;; at++) {
        const size_t length = component(at, strlen(at));
        if (!is_star(at, length) && !is_word(at, length))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "pattern \"%.128s\", character %zu: expected letters, digits, '_' and '-', or '*' "
                                  "alone, between dots",
                                  pattern, (size_t)(at - pattern) + 1);
        at += length;
        if (!*at)
            return TSR_OK;
    }
}

bool tsr_pattern_matches(const char *pattern, const char *name, size_t length)
{
    const char *const end = name + length;
    for (;;) {
        const size_t ours = component(pattern, strlen(pattern)), theirs = component(name, (size_t)(end - name));
        if (!(ours == theirs && memcmp(pattern, name, ours) == 0) &&
            !(is_star(pattern, ours) && is_number(name, theirs)))
            return false;
        pattern += ours;
        name += theirs;
        if (!*pattern || name == end)
            return !*pattern && name == end;
        pattern++;
        name++;
    }
}

bool tsr_pattern_reaches(const char *pattern, const char *name)
{
    for (size_t length = component(name, strlen(name));; length += 1 + component(name + length + 1, strlen(name))) {
        if (tsr_pattern_matches(pattern, name, length))
            return true;
        if (!name[length])
            return false;
    }
}

bool tsr_pattern_precedes(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *b == '*';
}

/* Writes the first `length` characters of a name with '*' for numbers. */
static void generalize(const char *name, size_t length, char *out)
{
    const char *const end = name + length;
    size_t used = 0;
    while (name < end) {
        const size_t one = component(name, (size_t)(end - name));
        const bool number = is_number(name, one);
        const size_t written = number ? 1 : one;
        if (used + written + 2 > TSR_NEAR_TEXT)
            break;
        memcpy(out + used, number ? "*" : name, written);
        used += written;
        name += one;
        if (name < end) {
            out[used++] = '.';
            name++;
        }
    }
    out[used] = '\0';
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance of two texts shorter than TSR_NEAR_TEXT. */
static size_t distance_of(const char *a, const char *b)
{
    size_t row[TSR_NEAR_TEXT];
    const size_t columns = strlen(b);
    for (size_t j = 0; j <= columns; j++)
        row[j] = j;
    for (size_t i = 1; *a; a++, i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            const size_t changed = corner + (*a != b[j - 1]);
            corner = row[j];
            row[j] = least(changed, least(row[j], row[j - 1]) + 1);
        }
    }
    return row[columns];
}

/* Keeps a name if it is nearer than those that are kept, and not far. */
static void keep_near(tsr_near *near, const char *name)
{
    for (size_t i = 0; i < near->count; i++) {
        if (strcmp(near->names[i], name) == 0)
            return;
    }
    const size_t distance = distance_of(near->pattern, name);
    if (distance > strlen(near->pattern) / 2)
        return;
    size_t at = near->count < TSR_NEAR ? near->count : TSR_NEAR;
    while (at > 0 && near->distances[at - 1] > distance)
        at--;
    if (at == TSR_NEAR)
        return;
    near->count += near->count < TSR_NEAR;
    for (size_t i = near->count - 1; i > at; i--) {
        near->distances[i] = near->distances[i - 1];
        memcpy(near->names[i], near->names[i - 1], TSR_NEAR_TEXT);
    }
    near->distances[at] = distance;
    snprintf(near->names[at], TSR_NEAR_TEXT, "%s", name);
}

void tsr_near_add(tsr_near *near, const char *name)
{
    char pattern[TSR_NEAR_TEXT];
    for (size_t length = component(name, strlen(name));; length += 1 + component(name + length + 1, strlen(name))) {
        generalize(name, length, pattern);
        keep_near(near, pattern);
        if (!name[length])
            return;
    }
}

void tsr_near_print(const tsr_near *near, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < near->count && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s\"%s\"", i ? ", " : "", near->names[i]);
}
