#include "base/ways.h"

#include <string.h>

static const char *const names[TSR_WAY_END] = {
    [TSR_WAY_PLAIN] = "plain",   [TSR_WAY_PLAIN_AHEAD] = "plain-ahead",   [TSR_WAY_PLAIN_ROWS] = "plain-rows",
    [TSR_WAY_STREAM] = "stream", [TSR_WAY_STREAM_AHEAD] = "stream-ahead", [TSR_WAY_STREAM_ROWS] = "stream-rows",
    [TSR_WAY_FIXED] = "fixed",   [TSR_WAY_MEASURED] = "measured",
};

const char *tsr_way_name(tsr_way way)
{
    return names[way];
}

tsr_way tsr_way_find(const char *name, size_t length)
{
    int way = 0;
    while (way < TSR_WAY_END && (strlen(names[way]) != length || memcmp(names[way], name, length) != 0))
        way++;
    return (tsr_way)way;
}
