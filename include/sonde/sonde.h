/* SPDX-License-Identifier: Apache-2.0 */
/* sonde/sonde.h - everything that reads: traces, models, views, exports. */
#ifndef SONDE_SONDE_H
#define SONDE_SONDE_H

#include "sonde/bench.h"
#include "sonde/error.h"
#include "sonde/export.h"
#include "sonde/graph.h"
#include "sonde/layers.h"
#include "sonde/model.h"
#include "sonde/tables.h"
#include "sonde/tensorlines.h"
#include "sonde/trace.h"

#endif
