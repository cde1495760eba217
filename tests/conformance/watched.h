/** A device whose calls are watched: one that never returns ends the program, by name. */
#ifndef TESTS_CONFORMANCE_WATCHED_H
#define TESTS_CONFORMANCE_WATCHED_H

#include <tessera/sys/device.h>

/**
 * A driver that passes every call on to `under`, which must outlive it; the caller owns `*out`.
 * When no call has begun or ended for `seconds`, the program ends with status 1 and a sentence that
 * names the calls in flight. There is one such driver in a program.
 */
tsr_status watched_create(const tsr_device_driver *under, unsigned seconds, tsr_device_driver **out);

#endif
