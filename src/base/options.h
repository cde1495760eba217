/** How every call reads an option struct that begins with `size_t size`; declared in sys/options.h,
 * because back ends use it too. */
#ifndef TSR_BASE_OPTIONS_H
#define TSR_BASE_OPTIONS_H

#include <tessera/sys/options.h>

#endif
