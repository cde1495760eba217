#include "device_parts.h"

#include <stddef.h>
#include <string.h>

const device_part *device_find_part(const device_part *parts, const char *name)
{
    for (; parts->name; parts++)
        if (strcmp(parts->name, name) == 0)
            return parts;
    return NULL;
}
