/* PROGRAM PART: runs one part of the suite over the tables that the program lists. */
#include "device_parts.h"

#include <stddef.h>
#include <stdio.h>

static const device_part parts[] = {
    {"convert", device_convert}, {"copy", device_copy}, {"fill", device_fill}, {"reduce", device_reduce}, {NULL, NULL}};

int main(int count, char **arguments)
{
    const device_part *const part = count == 2 ? device_find_part(parts, arguments[1]) : NULL;
    if (!part) {
        fprintf(stderr, "usage: %s convert|copy|fill|reduce\n", arguments[0]);
        return 2;
    }
    return part->run();
}
