/* PROGRAM ENGINE PART: runs one part of the conformance suite over an engine of suite_engines. */
#include "comm_suite.h"

#include <stdio.h>

int main(int count, char **arguments)
{
    const suite_part *const part = count == 3 ? suite_find_part(arguments[2]) : NULL;
    if (!part) {
        fprintf(stderr, "usage: %s ENGINE collectives|departure|disagreement|halves|split\n", arguments[0]);
        return 2;
    }
    suite_start(count, arguments);
    return suite_run_part(part);
}
