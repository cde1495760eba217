/** An engine that has messages and nothing else, made out of tree from include/ alone: it sends them through another communicator. */
#ifndef TESTS_REDISTRIBUTE_MESSAGE_ENGINE_H
#define TESTS_REDISTRIBUTE_MESSAGE_ENGINE_H

#include <tessera/comm.h>

/**
 * A communicator over `carrier`, which is borrowed. `calls` counts its splits, exchanges and barriers, and those of what is split off it,
 * down to 0, the one that fails with TSR_ERROR_DEVICE; NULL: none does. A split that fails has taken part; the others have not.
 */
tsr_status message_engine_create(tsr_comm *carrier, int *calls, tsr_comm **out);

#endif
