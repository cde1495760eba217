#include "place/held_log.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/** More lines at a time than this are left out: they come from ranks that all wait for the same. */
enum { MOST_LINES = 8, LINE_BYTES = 1100 };

/** From what breaks a communicator to the sentence of the program, also on a machine that is busy. */
#define HELD_SECONDS 3

/** Of this process. */
static struct {
    pthread_mutex_t mutex;
    int to; /**< a descriptor */
    char lines[MOST_LINES][LINE_BYTES];
    int count;
    bool watched; /**< a thread will print them */
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER, .to = STDERR_FILENO};

void held_log_begin(void)
{
    /* Not one of the standard ones that was closed. */
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
    /* Where no thread can be had either the program is about to fail. */
    held.watched = held.watched || watch();
    pthread_mutex_unlock(&held.mutex);
}

tsr_status held_log_context(tsr_context **out)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    if (getenv("TSR_LOG") == NULL) {
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
