/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/source/native_names.h - names of C++ functions as short as they can be told apart by.
 *
 * Layer: view. Threads: any.
 */
#ifndef SND_VIEW_SOURCE_NATIVE_NAMES_H
#define SND_VIEW_SOURCE_NATIVE_NAMES_H

#include "sonde/trace.h"

/*
 * The part of a demangled name that a reader needs: without the types that a function takes and gives.
 * "void a::f<int>(int) const" is "a::f<int>". Names of other languages stay as they are.
 */
struct sonde_text snd_native_name(struct sonde_text name);

#endif
