/** Every engine and device that this build knows, and why commands cannot use one. (`tessera info` says what programs can.) */
#ifndef TESSERA_TOOLS_ENGINES_H
#define TESSERA_TOOLS_ENGINES_H

typedef struct backend {
    const char *name;
    const char *reason; /**< NULL if commands can use it */
} backend;

/** Row `index`, or NULL past the last. Static. */
const backend *engine_get(int index);

/** The row with that name, or NULL. */
const backend *engine_find(const char *name);
const backend *device_find(const char *name);

#endif
