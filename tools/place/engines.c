#include "place/engines.h"

#include <stddef.h>
#include <string.h>

static const engine *const engines[] = {&threads_engine, &mpi_engine, &nccl_engine};

static const device_kind devices[] = {{"host", false}, {"cuda", true}};

#define LENGTH(list) (sizeof list / sizeof *(list))

const engine *engine_get(int index)
{
    return index >= 0 && (size_t)index < LENGTH(engines) ? engines[index] : NULL;
}

const engine *engine_find(const char *name)
{
    for (size_t i = 0; i < LENGTH(engines); i++)
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i];
    return NULL;
}

void engines_leave(void)
{
    for (size_t i = 0; i < LENGTH(engines); i++)
        if (engines[i]->leave)
            engines[i]->leave();
}

const device_kind *device_find(const char *name)
{
    for (size_t i = 0; i < LENGTH(devices); i++)
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i];
    return NULL;
}
