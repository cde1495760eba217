/* The log of programs that report their own failures: lines are printed after a while, unless the
 * program reported a failure. */
#include "place/held_log.h"

#include <tessera/sys/log.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Far longer than a line is held. */
#define PATIENCE_MS 60000

/* The reading end of the pipe that is this program's standard error during the tests. */
static int heard;
/* The original standard error, where the test runner reads the results. */
static int saved;

static void read_line(char *line, size_t room)
{
    size_t used = 0;
    struct pollfd ready = {.fd = heard, .events = POLLIN};
    do {
        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        assert_int_equal(read(heard, line + used, 1), 1);
    } while (line[used] != '\n' && ++used + 1 < room);
    line[used] = '\0';
}

static void a_line_is_told_in_the_end(void **state)
{
    char line[256];
    tsr_log(*state, TSR_LOG_ERROR, "rank 0 of 2: waits\nfor rank 1");
    read_line(line, sizeof line);
    assert_string_equal(line, "tessera: rank 0 of 2: waits?for rank 1");
}

static void what_the_program_tells_is_not_told_twice_and_warnings_never(void **state)
{
    char line[256];
    tsr_log(*state, TSR_LOG_ERROR, "rank 0 of 2: rank 1 has returned");
    held_log_drop();
    tsr_log(*state, TSR_LOG_WARN, "a warning");
    tsr_log(*state, TSR_LOG_ERROR, "another");
    read_line(line, sizeof line);
    assert_string_equal(line, "tessera: another");
}

static void a_level_that_is_asked_for_is_the_librarys(void **state)
{
    char line[256];
    tsr_context *context;
    (void)state;
    setenv("TSR_LOG", "warn", 1);
    assert_int_equal(held_log_context(&context), TSR_OK);
    unsetenv("TSR_LOG");
    tsr_log(context, TSR_LOG_WARN, "at once");
    read_line(line, sizeof line);
    assert_string_equal(line, "tessera warn: at once");
    tsr_context_destroy(context);
}

static int begin(void **state)
{
    int ends[2];
    unsetenv("TSR_LOG");
    saved = dup(STDERR_FILENO);
    if (saved < 0 || pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        return -1;
    heard = ends[0];
    held_log_begin();
    return held_log_context((tsr_context **)state) == TSR_OK ? 0 : -1;
}

static int end(void **state)
{
    tsr_context_destroy(*state);
    return dup2(saved, STDERR_FILENO) < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_told_in_the_end),
        cmocka_unit_test(what_the_program_tells_is_not_told_twice_and_warnings_never),
        cmocka_unit_test(a_level_that_is_asked_for_is_the_librarys),
    };
    return cmocka_run_group_tests_name("held log", tests, begin, end);
}
