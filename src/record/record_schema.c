/* SPDX-License-Identifier: Apache-2.0 */
/* record/record_schema.c - sonde/record.h says the same as format/: its numbers are compared here. */
#include "format/layout.h"
#include "sonde/record.h"

#define SND_SAME(public_name, name) \
    static_assert((int)(public_name) == (int)(name), "sonde/record.h has another number")

#define SND_ATTR(name, key, value, summary) SND_SAME(SONDE_ATTR_##name, SND_ATTR_##name);
#include "format/attrs.def"
#undef SND_ATTR

#define SND_TALLY(name, kind, words, summary) SND_SAME(SONDE_TALLY_##name, SND_TALLY_##name);
#define SND_TALLY_WORD(tally, name, place, unit, summary)
#include "format/tallies.def"
#undef SND_TALLY_WORD
#undef SND_TALLY

#define SND_STATE(name, bit, summary) SND_SAME(SONDE_SAMPLED_##name, SND_SAMPLE_##name);
#define SND_SCOPE(name, number, summary)
#define SND_WORK(name, number, summary) SND_SAME(SONDE_WORK_##name, SND_WORK_##name);
#include "format/states.def"
#undef SND_WORK
#undef SND_SCOPE
#undef SND_STATE

SND_SAME(SONDE_KIND_BEGIN_, SND_EV_BEGIN);
SND_SAME(SONDE_KIND_SPAN_, SND_EV_SPAN);
SND_SAME(SONDE_KIND_CALL_, SND_EV_CALL);
SND_SAME(SONDE_KIND_API_, SND_EV_API);
SND_SAME(SONDE_KIND_END_, SND_EV_END);
SND_SAME(SONDE_KIND_ATTR, SND_EV_ATTR);
SND_SAME(SONDE_KIND_FUNCTION_, SND_EV_FUNCTION);

SND_SAME(SONDE_ARG_NONE, SND_SHAPE_NONE);
SND_SAME(SONDE_ARG_TENSOR, SND_SHAPE_TENSOR);
SND_SAME(SONDE_ARG_LIST, SND_SHAPE_LIST);
SND_SAME(SONDE_ARG_SCALAR, SND_SHAPE_SCALAR);

SND_SAME(SONDE_FACT_NUMBER, SND_FACT_NUMBER);
SND_SAME(SONDE_FACT_REAL, SND_FACT_REAL);
SND_SAME(SONDE_FACT_TEXT, SND_FACT_TEXT);
SND_SAME(SONDE_FACT_TENSOR, SND_FACT_TENSOR);
