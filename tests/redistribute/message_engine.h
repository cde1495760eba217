/** An engine that has messages and nothing else, made out of tree from include/ alone: it sends them through another communicator. */
#ifndef TESTS_REDISTRIBUTE_MESSAGE_ENGINE_H
#define TESTS_REDISTRIBUTE_MESSAGE_ENGINE_H

#include <tessera/comm.h>

/** A communicator over `carrier`, which is borrowed. */
tsr_status message_engine_create(tsr_comm *carrier, tsr_comm **out);

#endif
