/**
 * @file
 * Tessera for C++17 and newer: owners of its objects, one exception, and spans.
 *
 * Everything is inline over the C headers, which say what each call does: shapes, errors, threads,
 * and whether it communicates. A comment here that begins with "Collective" is of a call that every
 * rank makes. get() and out() of an owner lead to all C calls that have no member here.
 *
 * @par Owners
 * An owner holds one reference, or nothing after a move or by default. Copies of contexts,
 * profiles, meshes, layouts, plans and dtensors share one object; communicators, plans of layers
 * and memory can only be moved. An owner's constructor from a pointer takes the reference over. Of
 * an owner of nothing only get(), out(), reset(), release(), conversion to bool, assignment and
 * destruction may be called; as an argument it is the NULL of the C call.
 *
 * @par Errors
 * A call that fails throws tessera::error, with the status and the sentence of the C call, and
 * changes nothing. Nothing else is thrown but std::bad_alloc.
 */
#ifndef TESSERA_TESSERA_HPP
#define TESSERA_TESSERA_HPP

#include <tessera/cpp/base.hpp>
#include <tessera/cpp/comm.hpp>
#include <tessera/cpp/dtensor.hpp>
#include <tessera/cpp/layout.hpp>
#include <tessera/cpp/plan.hpp>
#include <tessera/cpp/ranks.hpp>
#include <tessera/tessera.h>

#endif
