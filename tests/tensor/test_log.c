/* The log: silent unless asked, and each level says what docs/environment.md promises. */
#include "ranks.h"

#include <tessera/tessera.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Lines of each level, and the last one. */
typedef struct record {
    pthread_mutex_t lock;
    int lines[TSR_LOG_DEBUG + 1];
    char last[TSR_LOG_DEBUG + 1][512];
} record;

static void note(void *user, tsr_log_level level, const char *line)
{
    record *const r = user;
    pthread_mutex_lock(&r->lock);
    r->lines[level]++;
    snprintf(r->last[level], sizeof r->last[level], "%s", line);
    pthread_mutex_unlock(&r->lock);
}

static tsr_status run_logged(tsr_log_level level, tsr_rank_main *body, record *r)
{
    tsr_context_options choices = TSR_CONTEXT_OPTIONS_INIT;
    choices.log = note;
    choices.log_user = r;
    choices.log_level = level;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    TSR_TRY(tsr_context_create(&choices, &options.context));
    const tsr_status status = tsr_threads_run(2, body, NULL, &options);
    tsr_context_destroy(options.context);
    return status;
}

static tsr_status redistribute_once(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    const tsr_placement replicate = tsr_replicate();
    TSR_TRY(layout_over(comm, "2", "5x3", "P", TSR_F32, &layout));
    tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &x);
    if (status == TSR_OK) {
        memset(tsr_dtensor_to_local(x).data, 0, 15 * sizeof(float));
        status = tsr_redistribute(x, &replicate, &y);
    }
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status disagree(tsr_comm *comm, void *arg)
{
    (void)arg;
    int32_t value = 1;
    const tsr_reduce_op op = tsr_comm_rank(comm) == 0 ? TSR_SUM : TSR_MAX;
    CHECK_ERROR(tsr_comm_all_reduce(comm, &value, &value, 1, TSR_I32, op, tsr_device_host(), NULL), TSR_ERROR_ARGUMENT,
                "rank 1");
    return TSR_OK;
}

static tsr_status leave_early(tsr_comm *comm, void *arg)
{
    (void)arg;
    if (tsr_comm_rank(comm) == 1)
        return TSR_OK;
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, "rank 1");
    return TSR_OK;
}

static void nothing_is_logged_unless_asked_for(void **state)
{
    (void)state;
    record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(run_logged(TSR_LOG_SILENT, redistribute_once, &r), TSR_OK);
    assert_int_equal(run_logged(TSR_LOG_SILENT, disagree, &r), TSR_OK);
    assert_int_equal(run_logged(TSR_LOG_WARN, redistribute_once, &r), TSR_OK);
    for (int level = 0; level <= TSR_LOG_DEBUG; level++)
        assert_int_equal(r.lines[level], 0);
}

static void info_tells_of_every_plan_that_is_prepared(void **state)
{
    (void)state;
    record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(run_logged(TSR_LOG_INFO, redistribute_once, &r), TSR_OK);
    assert_int_equal(r.lines[TSR_LOG_INFO], 2);
    assert_non_null(strstr(r.last[TSR_LOG_INFO], "prepared: redistribute f32 5x3 P on mesh 2 -> f32 5x3 R on mesh 2"));
    assert_non_null(strstr(r.last[TSR_LOG_INFO], "receives 60 bytes"));
}

static void warn_tells_of_disagreement_and_error_of_ranks_that_are_gone(void **state)
{
    (void)state;
    record r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    assert_int_equal(run_logged(TSR_LOG_WARN, disagree, &r), TSR_OK);
    assert_int_equal(r.lines[TSR_LOG_WARN], 2);
    assert_non_null(strstr(r.last[TSR_LOG_WARN], "ranks disagree"));
    assert_int_equal(run_logged(TSR_LOG_ERROR, leave_early, &r), TSR_OK);
    assert_int_equal(r.lines[TSR_LOG_WARN], 2);
    assert_int_equal(r.lines[TSR_LOG_ERROR], 1);
    assert_non_null(strstr(r.last[TSR_LOG_ERROR], "rank 1 has returned"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_logged_unless_asked_for),
        cmocka_unit_test(info_tells_of_every_plan_that_is_prepared),
        cmocka_unit_test(warn_tells_of_disagreement_and_error_of_ranks_that_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
