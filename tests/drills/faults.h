/**
 * Makes calls fail: the n-th malloc, mmap, pthread_create or write of a program.
 *
 * faults.c replaces these functions. Linked into a program, it is armed by faults_arm(); preloaded
 * into another program, it is armed by the environment: FAULTS_KIND=malloc, FAULTS_AT=12,
 * FAULTS_STICKY=1 (all later calls fail too), FAULTS_REPORT=FILE (gets the number of calls of each
 * kind, in the order of fault_kind, at the end).
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdbool.h>

typedef enum fault_kind { FAULT_MALLOC, FAULT_MMAP, FAULT_THREAD, FAULT_WRITE, FAULT_KINDS } fault_kind;

/** Begins to count calls of all kinds, and makes call `at` (from 0) of `kind` fail; with `sticky`
 * all later ones too. */
void faults_arm(fault_kind kind, long at, bool sticky);
void faults_disarm(void);
/** The number of calls between faults_arm() and faults_disarm(). */
long faults_calls(fault_kind kind);
/** The number of blocks of memory that are not freed. */
long faults_live(void);

#endif
