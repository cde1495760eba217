/**
 * Calls that fail: the n-th malloc, mmap, pthread_create or write of a program.
 *
 * faults.c takes their places, either linked into a program, which arms it itself, or preloaded into one that knows nothing of it, where
 * the environment does: FAULTS_KIND=malloc FAULTS_AT=12, FAULTS_STICKY=1 (all from there on), FAULTS_REPORT=FILE (how many calls of each
 * there were, in the order of fault_kind, written at the end).
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdbool.h>

typedef enum fault_kind { FAULT_MALLOC, FAULT_MMAP, FAULT_THREAD, FAULT_WRITE, FAULT_KINDS } fault_kind;

/** From now on calls of all kinds are counted, and call `at` of `kind` (from 0) fails; also those after it if `sticky`. */
void faults_arm(fault_kind kind, long at, bool sticky);
void faults_disarm(void);
/** Calls since faults_arm(), until faults_disarm(). */
long faults_calls(fault_kind kind);
/** Pieces of memory that were given out and not freed. */
long faults_live(void);

#endif
