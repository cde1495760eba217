#include "hosts/tvm/disco/seats.h"

#include <tessera/sys/status.h>

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int failed; /* the key cannot be had */

static void leave(void *seat)
{
    tsr_disco_seat_leave(seat);
}

static void make_key(void)
{
    failed = pthread_key_create(&key, leave);
}

tsr_status tsr_disco_sit(tsr_disco_seat *seat)
{
    (void)pthread_once(&once, make_key);
    if (!failed)
        tsr_disco_seat_leave(pthread_getspecific(key));
    if (!failed && pthread_setspecific(key, seat) == 0)
        return TSR_OK;
    tsr_disco_seat_leave(seat);
    return tsr_status_set(TSR_ERROR_MEMORY, "Disco: no memory by which a thread is known");
}

tsr_disco_seat *tsr_disco_sitting(void)
{
    (void)pthread_once(&once, make_key);
    return failed ? NULL : pthread_getspecific(key);
}
