#include "place/engines.h"

#include "cli/guess.h"
#include "command.h"

#include <stddef.h>
#include <string.h>

static const engine *const engines[] = {&threads_engine, &mpi_engine, &nccl_engine};

static const device_kind devices[] = {{"host", false, false}, {"cuda", true, false}};
static const device_kind plugged = {"a shared object", false, true};

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
    return strchr(name, '/') ? &plugged : NULL;
}

static int complain_about(const char *option, const guess *g)
{
    char text[GUESS_TEXT];
    return complain(EXIT_USAGE, "%s '%s' is not known%s; 'tessera info' lists what there is", option, g->word,
                    guess_say(g, "", text));
}

int complain_about_engine(const char *name)
{
    guess g = {.word = name};
    for (size_t i = 0; i < LENGTH(engines); i++)
        guess_try(&g, engines[i]->name);
    return complain_about("--engine", &g);
}

int complain_about_device(const char *name)
{
    guess g = {.word = name};
    if (strstr(name, ".so"))
        return complain(EXIT_USAGE, "--device '%s' is not known; a shared object is given by a path, such as ./%s", name,
                        name);
    for (size_t i = 0; i < LENGTH(devices); i++)
        guess_try(&g, devices[i].name);
    return complain_about("--device", &g);
}
