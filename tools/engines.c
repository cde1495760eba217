#include "engines.h"

#include <stddef.h>
#include <string.h>

#define MISSING(library) "this build has no " library ", the library that brings it"

#define OF_PROGRAMS(library) "the commands run on the host; programs get it from " library

static const backend engines[] = {
    {"threads", NULL}, {"mpi", MISSING("libtessera-mpi")}, {"nccl", OF_PROGRAMS("libtessera-cuda")}, {NULL, NULL}};

static const backend devices[] = {{"host", NULL}, {"cuda", OF_PROGRAMS("libtessera-cuda")}, {NULL, NULL}};

static const backend *find(const backend *rows, const char *name)
{
    for (; rows->name != NULL; rows++)
        if (strcmp(rows->name, name) == 0)
            return rows;
    return NULL;
}

const backend *engine_get(int index)
{
    return index >= 0 && (size_t)index + 1 < sizeof engines / sizeof *engines ? &engines[index] : NULL;
}

const backend *engine_find(const char *name)
{
    return find(engines, name);
}

const backend *device_find(const char *name)
{
    return find(devices, name);
}
