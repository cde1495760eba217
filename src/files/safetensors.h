/** What files beside safetensors.c know of open files. */
#ifndef TSR_FILES_SAFETENSORS_H
#define TSR_FILES_SAFETENSORS_H

#include <tessera/safetensors.h>

/** The path that was opened, for error sentences; borrowed. */
const char *tsr_safetensors_path(const tsr_safetensors *file);

#endif
