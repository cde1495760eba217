/* The communicators of Disco's workers, without Disco. */
#include "hosts/tvm/disco/world.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 3 };

/* A worker that has left answers no message: its peers hear of it, whether they have talked to it
 * before or not. */
static void peers_hear_of_a_worker_that_has_left(void **state)
{
    tsr_disco_world *world;
    tsr_disco_seat *seats[WORKERS];
    tsr_comm *pair = NULL, *never = NULL;
    char byte = 0;
    const tsr_message message = {0, &byte, 1};
    (void)state;
    assert_int_equal(tsr_disco_world_create(WORKERS, &world), TSR_OK);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(tsr_disco_seat_take(world, w, WORKERS, &seats[w]), TSR_OK);
    assert_int_equal(tsr_disco_seat_pair(seats[1], 0, &pair), TSR_OK);
    tsr_disco_seat_leave(seats[0]);
    assert_int_equal(tsr_comm_exchange(pair, &message, 1, NULL, 0, tsr_device_host(), NULL), TSR_ERROR_PEER);
    assert_int_equal(tsr_disco_seat_pair(seats[2], 0, &never), TSR_ERROR_PEER);
    assert_string_equal(tsr_status_message(), "Disco: worker 0 has left");
    assert_null(never);
    tsr_disco_seat_leave(seats[2]);
    tsr_disco_seat_leave(seats[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_hear_of_a_worker_that_has_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
