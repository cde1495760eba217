/** What a C++ program does in a rank's main: see ended_frames.cc. */
#ifndef TESTS_COMM_ENDED_FRAMES_H
#define TESTS_COMM_ENDED_FRAMES_H

#include <tessera/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Splits `comm`, throws and catches over that, then ends the thread of rank 1, by pthread_exit() or, with `*arg` not 0, cancelled while it
 * waits, from a frame whose object destroys the group. The others wait for it. */
tsr_status ended_frames_main(tsr_comm *comm, void *arg);

/** How many such objects have gone. */
int ended_frames_gone(void);

#ifdef __cplusplus
}
#endif

#endif
