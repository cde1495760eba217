#include "comm_suite.h"

const suite_part suite_parts[] = {
    {"along", suite_along},
    {"collectives", suite_collectives},
    {"departure", suite_departure},
    {"disagreement", suite_disagreement},
    {"halves", suite_halves},
    {"meshes", suite_meshes},
    {"rows", suite_rows},
    {"split", suite_split},
    {NULL, NULL},
};

const suite_part *suite_find_part(const char *name)
{
    for (const suite_part *part = suite_parts; part->name; part++)
        if (strcmp(part->name, name) == 0)
            return part;
    return NULL;
}
