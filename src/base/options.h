/** Option structs that begin with `size_t size`, as every call reads them: for back ends too. */
#ifndef TSR_BASE_OPTIONS_H
#define TSR_BASE_OPTIONS_H

#include <tessera/sys/options.h>

#endif
