/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/module_calls.c - how often each module was called, and the most memory that a call took.
 *
 * The torch probe records where a call of a module begins and returns. What runs in TorchScript's
 * interpreter has no such records, nor have traces of older versions: there a call is inferred, and
 * shown as inferred. One is told by the operator that its visit began with coming again, or by the
 * operators between two visits being others'.
 */
#include "format/fields.h"
#include "model/network/module_parts.h"

#define OPEN_MAX \
    1024u /* calls of one thread; a deeper one is counted, but has no memory of its own */

bool snd_module_lies_in(const struct sonde_modules *m, uint32_t module, uint32_t ancestor)
{
    while (module != SND_NO_MODULE && m->nodes[module].depth > m->nodes[ancestor].depth)
        module = m->nodes[module].parent;
    return module == ancestor;
}

/* -------------------------------------------------------------------- inferred */

void snd_module_infer(struct sonde_modules *m, struct snd_module_visitor *v, uint32_t module,
                      uint32_t name)
{
    m->owns[module].has_operators = true;
    for (uint32_t at = module; at != SND_NO_MODULE; at = m->nodes[at].parent) {
        struct snd_module_own *own = &m->owns[at];
        bool                   again = own->first_module == module && own->first_name == name;
        if (snd_module_lies_in(m, v->module, at) && v->module != SND_NO_MODULE && !again)
            continue; /* the visit continues, and so do its ancestors' */
        own->inferred_calls++;
        own->first_module = module;
        own->first_name = name;
    }
    v->module = module;
}

/* -------------------------------------------------------------------- recorded */

static void begin_call(struct sonde_modules *m, struct snd_module_visitor *v, uint32_t module)
{
    m->owns[module].calls++;
    if (v->open_count >= OPEN_MAX)
        return;
    if (!snd_grow(&v->open, &v->open_room, v->open_count, sizeof *v->open)) {
        snd_assembly_stop(&m->assembly);
        return;
    }
    v->open[v->open_count++] = (struct snd_module_call){ .module = module,
                                                         .base_bytes = m->live_bytes };
}

/* Calls inside it that are still open have lost their return. */
static void end_call(struct sonde_modules *m, struct snd_module_visitor *v, uint32_t module)
{
    uint32_t at = v->open_count;

    while (at > 0 && v->open[at - 1].module != module)
        at--;
    if (at == 0)
        return; /* it began before the recording */
    while (v->open_count >= at) {
        const struct snd_module_call *call = &v->open[--v->open_count];
        if (!call->has_operator)
            m->owns[call->module].idle_calls++;
        else if (v->open_count > 0)
            v->open[v->open_count - 1].has_operator = true;
    }
}

void snd_module_called(struct sonde_modules *m, const struct snd_lane *lane, bool returns,
                       uint32_t path)
{
    uint32_t                   module = snd_module_of(m, lane, path);
    struct snd_module_visitor *v = &m->visitors[lane->thread];

    if (module == SND_NO_MODULE || m->assembly.out_of_memory)
        return;
    if (returns)
        end_call(m, v, module);
    else
        begin_call(m, v, module);
}

void snd_module_worked(struct snd_module_visitor *v)
{
    if (v->open_count > 0)
        v->open[v->open_count - 1].has_operator = true;
}

/* ---------------------------------------------------------------------- memory */

static void raise_peak(struct snd_module_own *own, int64_t above)
{
    if (above > own->peak_bytes)
        own->peak_bytes = above;
}

void snd_module_took(struct sonde_modules *m, struct snd_module_visitor *v, uint32_t module,
                     int64_t bytes)
{
    int64_t after = snd_add(m->live_bytes, bytes);

    for (uint32_t i = 0; i < v->open_count; i++)
        raise_peak(&m->owns[v->open[i].module], snd_sub(after, v->open[i].base_bytes));
    if (module == SND_NO_MODULE)
        return;
    /* Of modules whose calls are not recorded: since it was their operators' turn. */
    for (uint32_t at = module; at != SND_NO_MODULE; at = m->nodes[at].parent) {
        struct snd_module_own *own = &m->owns[at];
        bool goes_on = v->taker != SND_NO_MODULE && snd_module_lies_in(m, v->taker, at);
        if (!goes_on)
            own->base_bytes = m->live_bytes;
        if (own->calls == 0)
            raise_peak(own, snd_sub(after, own->base_bytes));
    }
    v->taker = module;
}

/* ------------------------------------------------------------------------ sums */

/* A child is numbered after its parent, so from the last to the first. */
void snd_module_calls_show(struct sonde_modules *m)
{
    for (uint32_t i = m->count; i-- > 1;) {
        struct sonde_module         *node = &m->nodes[i];
        const struct snd_module_own *own = &m->owns[i];
        node->calls_inferred = own->calls == 0 && (own->has_operators || own->holds_inferred);
        node->calls = node->calls_inferred ? own->inferred_calls : own->calls;
        node->idle_calls = own->idle_calls;
        m->owns[node->parent].holds_inferred |= node->calls_inferred;
    }
}
