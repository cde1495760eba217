#include "bench/run/idle_threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Pauses of a millisecond, longer together than OpenBLAS's threads spin by default: 2^26 ticks,
 * which are 20 to 70 ms of x86's counter and up to 2.8 s of Arm's at 24 MHz, or later on a busy
 * machine. */
#define MOST_PAUSES 3000

/* True if a thread runs or waits for a core: its stat is "17 (name) R ..", where the name may hold
 * any character. False for a thread that has ended. */
static bool runs(const char *thread)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    FILE *const file = fopen(path, "r");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *const name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") R", 3) == 0;
}

/* True if a thread other than this one runs. `*told`: the system lists the threads. */
static bool others_run(bool *told)
{
    DIR *const threads = opendir("/proc/self/task");
    bool found = false;
    *told = threads != NULL;
    if (!threads)
        return false;
    for (const struct dirent *e = readdir(threads); e && !found; e = readdir(threads))
        found = e->d_name[0] != '.' && atol(e->d_name) != gettid() && runs(e->d_name);
    closedir(threads);
    return found;
}

bool idle_threads_await(void)
{
    static const struct timespec millisecond = {.tv_nsec = 1000000};
    bool told, busy = others_run(&told);
    for (int i = 0; busy && i < MOST_PAUSES; i++) {
        nanosleep(&millisecond, NULL);
        busy = others_run(&told);
    }
    return told && !busy;
}
