/** Which seat a thread has: Disco's collectives say nothing of their session, so that a worker is
 * known by its thread. */
#ifndef TSR_HOSTS_TVM_DISCO_SEATS_H
#define TSR_HOSTS_TVM_DISCO_SEATS_H

#include "hosts/tvm/disco/world.h"

/** Seats the calling thread. Its end, or another seat, gives the seat back; so does a failure. */
tsr_status tsr_disco_sit(tsr_disco_seat *seat);

/** The calling thread's seat; NULL: it has none. */
tsr_disco_seat *tsr_disco_sitting(void);

#endif
