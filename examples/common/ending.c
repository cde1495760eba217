#include "ending.h"

#include "place/held_log.h"

#include <tessera/status.h>

#include <stdio.h>

int llama_fail(int code)
{
    held_log_drop();
    fputs("tessera: ", stderr);
    for (const char *c = tsr_status_message(); *c != '\0'; c++)
        fputc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, stderr);
    fputc('\n', stderr);
    return code;
}
