#include "storm.h"

#include "drill.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_THREADS = 64, MICROSECONDS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t threads[MOST_THREADS];
static int count;
static atomic_int blowing;
static pthread_t blower;
static uint64_t seed_of_storm;

static void nothing(int signal)
{
    (void)signal;
}

void storm_enter(void)
{
    pthread_mutex_lock(&lock);
    if (count < MOST_THREADS)
        threads[count++] = pthread_self();
    pthread_mutex_unlock(&lock);
}

void storm_leave(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (pthread_equal(threads[i], pthread_self()))
            threads[i--] = threads[--count];
    pthread_mutex_unlock(&lock);
}

static void *blow(void *arg)
{
    (void)arg;
    drill_draws draws = drill_draws_of(seed_of_storm, 0);
    while (blowing) {
        pthread_mutex_lock(&lock);
        if (count > 0)
            pthread_kill(threads[drill_below(&draws, count)], SIGUSR1);
        pthread_mutex_unlock(&lock);
        usleep((useconds_t)drill_below(&draws, MICROSECONDS));
    }
    return NULL;
}

/* Sets a timer of processor time, whose signals interrupt any running thread, the library's helpers
 * too. */
static void set_timers(int microseconds)
{
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_PROF, &every, NULL);
    setitimer(ITIMER_VIRTUAL, &every, NULL);
}

void storm_begin(uint64_t seed)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = nothing;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGVTALRM, &action, NULL);
    seed_of_storm = seed;
    blowing = 1;
    if (pthread_create(&blower, NULL, blow, NULL) != 0)
        abort();
    set_timers(MICROSECONDS);
}

void storm_end(void)
{
    set_timers(0);
    blowing = 0;
    pthread_join(blower, NULL);
}
