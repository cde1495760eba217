#include "place/held_log.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Upper bounds of the lines held at a time and the bytes of one. Further lines are dropped: they
 * come from ranks that wait for the same event. */
enum { MOST_LINES = 8, LINE_BYTES = 1100 };

/* Longer than a program takes from a broken communicator to its own sentence, also on a busy
 * machine. */
#define HELD_SECONDS 3

/* The lines held by this process. */
static struct {
    pthread_mutex_t mutex;
    int to; /* descriptor that lines are printed to */
    char lines[MOST_LINES][LINE_BYTES];
    int count;
    bool watched; /* a thread waits to print them */
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER, .to = STDERR_FILENO};

void held_log_begin(void)
{
    /* Above the standard descriptors, so as not to take the place of a closed one. */
    const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0)
        held.to = kept;
}

static void *print_later(void *unused)
{
    static const struct timespec while_held = {.tv_sec = HELD_SECONDS};
    (void)unused;
    nanosleep(&while_held, NULL);
    pthread_mutex_lock(&held.mutex);
    for (int i = 0; i < held.count; i++)
        dprintf(held.to, "tessera: %s\n", held.lines[i]);
    held.count = 0;
    held.watched = false;
    pthread_mutex_unlock(&held.mutex);
    return NULL;
}

static bool watch(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, print_later, NULL) == 0 && pthread_detach(thread) == 0;
}

static void hold(void *user, tsr_log_level level, const char *line)
{
    (void)user;
    (void)level;
    pthread_mutex_lock(&held.mutex);
    if (held.count < MOST_LINES) {
        char *const own = held.lines[held.count++];
        snprintf(own, LINE_BYTES, "%s", line);
        for (char *c = own; *c != '\0'; c++)
            if (iscntrl((unsigned char)*c))
                *c = '?';
    }
    /* If no thread can be started the line stays held: the program is about to fail anyway. */
    held.watched = held.watched || watch();
    pthread_mutex_unlock(&held.mutex);
}

tsr_status held_log_context(tsr_context **out)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    if (!getenv("TSR_LOG")) {
        options.log = hold;
        options.log_level = TSR_LOG_ERROR;
    }
    return tsr_context_create(&options, out);
}

void held_log_drop(void)
{
    pthread_mutex_lock(&held.mutex);
    held.count = 0;
    pthread_mutex_unlock(&held.mutex);
}
