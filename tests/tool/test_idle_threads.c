/* The wait for threads that spin before they sleep. */
#include "bench/run/idle_threads.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define IDLERS 3

/* A thread like those of OpenBLAS: it yields its core again and again until its time is over, and
 * then sleeps. */
typedef struct idler {
    pthread_t thread;
    int milliseconds;
    atomic_bool begun, rests, stopped;
    sem_t work;
} idler;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return INT64_C(1000) * t.tv_sec + t.tv_nsec / 1000000;
}

static void *idle(void *arg)
{
    idler *const own = arg;
    const int64_t end = now() + own->milliseconds;
    atomic_store(&own->begun, true);
    while (now() < end && !atomic_load(&own->stopped))
        sched_yield();
    atomic_store(&own->rests, true);
    while (sem_wait(&own->work) != 0)
        ;
    return NULL;
}

static void begin(idler *one, int milliseconds)
{
    *one = (idler){.milliseconds = milliseconds};
    assert_int_equal(sem_init(&one->work, 0, 0), 0);
    assert_int_equal(pthread_create(&one->thread, NULL, idle, one), 0);
    while (!atomic_load(&one->begun))
        sched_yield();
}

/* Stops the thread; returns true if it slept before. */
static bool finish(idler *one)
{
    const bool rested = atomic_load(&one->rests);
    atomic_store(&one->stopped, true);
    sem_post(&one->work);
    pthread_join(one->thread, NULL);
    sem_destroy(&one->work);
    return rested;
}

static void threads_that_spin_are_waited_for(void **state)
{
    (void)state;
    idler all[IDLERS];
    int rested = 0;
    for (int i = 0; i < IDLERS; i++)
        begin(&all[i], 40 * (IDLERS - i));
    const bool told = idle_threads_await();
    for (int i = 0; i < IDLERS; i++)
        rested += finish(&all[i]);
    assert_true(told);
    assert_int_equal(rested, IDLERS);
}

static void a_thread_that_does_not_stop_is_told_of(void **state)
{
    (void)state;
    idler one;
    begin(&one, 600000);
    const bool told = idle_threads_await();
    assert_false(finish(&one));
    assert_false(told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_that_spin_are_waited_for),
                                       cmocka_unit_test(a_thread_that_does_not_stop_is_told_of)};
    if (access("/proc/self/task", R_OK) != 0) {
        print_message("skipped: without /proc nobody tells what threads do\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
