/** What a program says where another number of ranks was launched than it needs. */
#ifndef TESSERA_TOOLS_PLACE_LAUNCH_ADVICE_H
#define TESSERA_TOOLS_PLACE_LAUNCH_ADVICE_H

/** Bytes of the text of launch_advice(). */
enum { LAUNCH_ADVICE_BYTES = 256 };

/** Writes what was launched and how to launch `wanted` ranks, where `joined` ranks were started. */
void launch_advice(int wanted, int joined, char advice[LAUNCH_ADVICE_BYTES]);

#endif
