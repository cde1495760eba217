#include "tensor/sync/sync_names.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>

tsr_status tsr_sync_check_name(const char *what, size_t number, const char *name)
{
    if (!name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %zu has no name: it is NULL", what, number);
    const size_t length = strnlen(name, TSR_SYNC_TEXT);
    if (length > 0 && length <= TSR_SYNC_NAME)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %zu: its name \"%.64s%s\" must have 1 to %d characters", what, number,
                          name, length ? ".." : "", (int)TSR_SYNC_NAME);
}

static size_t count_stars(const char *text)
{
    size_t stars = 0;
    for (; *text; text++)
        stars += *text == '*';
    return stars;
}

tsr_status tsr_sync_check_rules(size_t count, const tsr_sync_rule *rules)
{
    if (count > 0 && !rules)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "options.rules is NULL, but rule_count is %zu", count);
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(tsr_sync_check_name("the source of rule", i, rules[i].from));
        TSR_TRY(tsr_sync_check_name("the destination of rule", i, rules[i].to));
        if (count_stars(rules[i].from) != count_stars(rules[i].to))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "rule %zu, \"%s\" to \"%s\": both need the same number of '*', of which each stands "
                                  "for the same text on both sides",
                                  i, rules[i].from, rules[i].to);
    }
    return TSR_OK;
}

/* A text that a star stands for. */
typedef struct part {
    const char *begin;
    size_t length;
} part;

/* Matches a name with a pattern, in which stars stand for as few characters as they can, from the
 * left: on a mismatch the last star takes one more. That is enough, for what stands before it
 * matches with as few characters as it can. */
static bool match(const char *pattern, const char *name, part *parts)
{
    const char *after = NULL; /* the pattern behind the last star */
    size_t stars = 0;
    for (;;) {
        if (*pattern == '*' && *name) {
            parts[stars++] = (part){name++, 1};
            after = ++pattern;
        } else if (*pattern && *pattern != '*' && *pattern == *name) {
            pattern++;
            name++;
        } else if (!*pattern && !*name) {
            return true;
        } else {
            if (!after || !parts[stars - 1].begin[parts[stars - 1].length])
                return false;
            parts[stars - 1].length++;
            name = parts[stars - 1].begin + parts[stars - 1].length;
            pattern = after;
        }
    }
}

/* Writes `pattern` with its stars replaced. False if it is too long. */
static bool fill_in(const char *pattern, const part *parts, char out[TSR_SYNC_TEXT])
{
    size_t used = 0, star = 0;
    for (; *pattern; pattern++) {
        const part text = *pattern == '*' ? parts[star++] : (part){pattern, 1};
        if (text.length > TSR_SYNC_NAME - used)
            return false;
        memcpy(out + used, text.begin, text.length);
        used += text.length;
    }
    out[used] = '\0';
    return true;
}

tsr_status tsr_sync_name_source(size_t count, const tsr_sync_rule *rules, const char *name, char out[TSR_SYNC_TEXT],
                                const tsr_sync_rule **rule)
{
    part parts[TSR_SYNC_NAME];
    for (size_t i = 0; i < count; i++) {
        if (!match(rules[i].to, name, parts))
            continue;
        *rule = &rules[i];
        if (fill_in(rules[i].from, parts, out))
            return TSR_OK;
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "destination \"%s\": rule \"%s\" to \"%s\" makes a name of more than %d characters", name,
                              rules[i].from, rules[i].to, (int)TSR_SYNC_NAME);
    }
    *rule = NULL;
    memcpy(out, name, strlen(name) + 1);
    return TSR_OK;
}
