/* SPDX-License-Identifier: Apache-2.0 */
/* model/schema.c - sonde/trace.h and model.h say the same as format/: compared here. */
#include "format/layout.h"
#include "sonde/model.h"
#include "sonde/trace.h"

#define SND_SAME(public_name, name) \
    static_assert((int)(public_name) == (int)(name), "a public header has another number")

#define SND_STATE(name, bit, summary) SND_SAME(SONDE_SAMPLE_##name, SND_SAMPLE_##name);
#define SND_SCOPE(name, number, summary) SND_SAME(SONDE_SCOPE_##name, SND_SCOPE_##name);
#define SND_WORK(name, number, summary)
#include "format/states.def"
#undef SND_WORK
#undef SND_SCOPE
#undef SND_STATE
