/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/modules.c - what each module of a network cost, forward and backward.
 *
 * Every range is one module's: that of its MODULE attribute, or of the range it lies in; a
 * backward one's is its forward operator's, which has the same sequence number. In compiled code the
 * forward operator is the whole of it: there COMPILED has the module within that operator's. Self times,
 * FLOPs and bytes are added up by module, and then from the leaves to the root, so that nothing
 * counts twice.
 */
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "model/network/module_parts.h"

/* ---------------------------------------------------------------------- ranges */

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_modules *m = user;

    if (parent) /* unless an attribute says otherwise */
        range->range.module = parent->range.module;
    if (m->assembly.name_flags[range->range.name] & SND_NAME_PASS) {
        m->passes++;
        m->visitors[lane->thread].taker = SND_NO_MODULE;
    }
}

static struct snd_key sequence_key(const struct snd_lane *lane, uint32_t thread, int64_t sequence)
{
    return (struct snd_key){ SND_PAIR(thread, lane->process), (uint64_t)sequence, 0 };
}

/* Of the forward operators with one sequence number the innermost one made the backward node. */
static void note_forward(struct sonde_modules *m, const struct snd_lane *lane,
                         const struct snd_range *r, uint32_t module)
{
    struct snd_key key = sequence_key(lane, snd_torch_thread(&m->assembly, lane), r->sequence);
    uint32_t       at;

    if (snd_map_get(&m->by_sequence, key, &at)) {
        if (r->start_ns > m->forwards[at].start_ns)
            m->forwards[at] = (struct snd_module_forward){ r->start_ns, module };
        return;
    }
    if (!snd_grow(&m->forwards, &m->forward_room, m->forward_count, sizeof *m->forwards) ||
        !snd_map_put(&m->by_sequence, key, m->forward_count)) {
        snd_assembly_stop(&m->assembly);
        return;
    }
    m->forwards[m->forward_count++] = (struct snd_module_forward){ r->start_ns, module };
}

/* A node without a sequence number accumulates what the node before it made. */
static uint32_t find_backward(struct sonde_modules *m, const struct snd_lane *lane, uint32_t thread,
                              int64_t sequence)
{
    uint32_t at;

    if (sequence < 0)
        return m->visitors[lane->thread].backward;
    if (!snd_map_get(&m->by_sequence, sequence_key(lane, thread, sequence), &at))
        return SND_NO_MODULE;
    return m->forwards[at].module;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_modules      *m = user;
    const struct snd_range    *r = &range->range;
    struct snd_module_visitor *v = &m->visitors[lane->thread];
    bool                       engine = m->assembly.name_flags[r->name] & SND_NAME_EVALUATE;
    uint32_t                   module;

    if (r->is_back || engine) {
        module = r->is_back ? find_backward(m, lane, r->back_thread, r->back_sequence)
                            : find_backward(m, lane, r->fwd_thread, r->sequence);
        module = snd_module_within(m, lane, module, r->compiled);
        if (r->scope == SONDE_SCOPE_BACKWARD && r->sequence >= 0)
            v->backward = module;
        v->module = v->taker = SND_NO_MODULE; /* the forward pass is over */
    } else {
        module = snd_module_of(m, lane, r->module);
        if (r->sequence >= 0)
            note_forward(m, lane, r, module);
        uint32_t around = parent ? snd_module_of(m, lane, parent->range.module) : SND_NO_MODULE;
        /* A scripted model is one operator, in which those of its modules are. */
        bool enters = around == SND_NO_MODULE || parent->range.scope == SONDE_SCOPE_USER ||
                      (around != module && snd_module_lies_in(m, module, around));
        /* What is compiled calls no modules: there is nothing to infer. */
        if (enters && r->compiled == 0 && r->scope != SONDE_SCOPE_USER && r->api == 0)
            snd_module_infer(m, v, module, r->name);
    }
    if (r->scope != SONDE_SCOPE_USER && r->scope != SONDE_SCOPE_PYTHON)
        snd_module_worked(v);
    if (m->assembly.out_of_memory)
        return;
    if (m->beside && !m->beside->row(m->beside->user, module, lane, r))
        m->assembly.visitor.stop = true;
    struct snd_module_own *own = &m->owns[module];
    int64_t                self_ns = snd_sub(r->total_ns, r->child_ns);
    bool                   back = r->is_back || engine;
    int64_t               *time = back ? &own->backward_ns : &own->forward_ns;
    *time = snd_add(*time, self_ns);
    if (r->api == 0 || !parent) { /* else its parent has it */
        int64_t *gpu = back ? &own->gpu_backward_ns : &own->gpu_forward_ns;
        *gpu = snd_add(*gpu, r->own_device_ns);
    }
    *(back ? &own->backward_flops : &own->flops) += r->flops;
    *(back ? &own->backward_macs : &own->macs) += r->macs;
    int64_t cpu = snd_sub(r->cpu_bytes, r->child_cpu_bytes);
    int64_t device = snd_sub(r->device_bytes, r->child_device_bytes);
    own->cpu_bytes = snd_add(own->cpu_bytes, cpu);
    own->device_bytes = snd_add(own->device_bytes, device);
    if (!back)
        own->activation_bytes = snd_add(own->activation_bytes, snd_add(cpu, device));
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_modules  *m = user;
    struct snd_live_change change = snd_live_event(&m->live, lane->process, words);

    (void)ns;
    if (!change.known)
        return;
    if (m->live.failed)
        snd_assembly_stop(&m->assembly);
    uint32_t module = innermost && !innermost->range.is_back
                          ? snd_module_of(m, lane, innermost->range.module)
                          : SND_NO_MODULE;
    snd_module_took(m, &m->visitors[lane->thread], module, change.counted);
    m->live_bytes = snd_add(m->live_bytes, change.counted);
    if (innermost)
        snd_range_memory(&innermost->range, words, change.counted);
}

static void on_module_call(void *user, struct snd_lane *lane, bool returns, uint32_t path)
{
    snd_module_called(user, lane, returns, path);
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_modules *m = user;

    (void)ns;
    if (SND_EVENT_KIND(words[0]) == SND_EV_GAP) /* returns may be among what was lost */
        m->visitors[lane->thread].open_count = 0;
}

/* ---------------------------------------------------------------------- sums */

static void show_own(struct sonde_module *node, const struct snd_module_own *own)
{
    node->forward_ns = node->self_forward_ns = own->forward_ns;
    node->backward_ns = node->self_backward_ns = own->backward_ns;
    node->self_flops = own->flops + own->backward_flops;
    node->flops = own->flops;
    node->backward_flops = own->backward_flops;
    node->macs = own->macs;
    node->backward_macs = own->backward_macs;
    node->peak_bytes = own->peak_bytes;
    node->cpu_bytes = own->cpu_bytes;
    node->device_bytes = own->device_bytes;
    node->activation_bytes = own->activation_bytes;
    node->gpu_forward_ns = node->self_gpu_forward_ns = own->gpu_forward_ns;
    node->gpu_backward_ns = node->self_gpu_backward_ns = own->gpu_backward_ns;
}

static void add_child(struct sonde_module *up, const struct sonde_module *node)
{
    up->forward_ns = snd_add(up->forward_ns, node->forward_ns);
    up->backward_ns = snd_add(up->backward_ns, node->backward_ns);
    up->flops += node->flops;
    up->backward_flops += node->backward_flops;
    up->macs += node->macs;
    up->backward_macs += node->backward_macs;
    up->cpu_bytes = snd_add(up->cpu_bytes, node->cpu_bytes);
    up->device_bytes = snd_add(up->device_bytes, node->device_bytes);
    up->activation_bytes = snd_add(up->activation_bytes, node->activation_bytes);
    up->gpu_forward_ns = snd_add(up->gpu_forward_ns, node->gpu_forward_ns);
    up->gpu_backward_ns = snd_add(up->gpu_backward_ns, node->gpu_backward_ns);
    if (node->parameters >= 0) {
        up->parameters = snd_add(up->parameters < 0 ? 0 : up->parameters, node->parameters);
        up->parameter_bytes = snd_add(up->parameter_bytes, node->parameter_bytes);
    }
}

/* A child is numbered after its parent, so from the last to the first. */
static void sum_up(struct sonde_modules *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        show_own(&m->nodes[i], &m->owns[i]);
    snd_module_calls_show(m);
    for (uint32_t i = m->count; i-- > 1;)
        add_child(&m->nodes[m->nodes[i].parent], &m->nodes[i]);
}

/* ---------------------------------------------------------------- the whole */

static enum sonde_status build(struct sonde_modules *m, enum sonde_flops_mode flops,
                               struct sonde_error *err)
{
    struct snd_consumer consumers[2] = { {
        .user = m,
        .flops = flops,
        .open = on_open,
        .close = on_close,
        .memory = on_memory,
        .other = on_other,
        .module_call = on_module_call,
    } };

    if (m->beside)
        consumers[1] = *m->beside;

    enum sonde_status status = snd_assemble(&m->assembly, m->trace, SONDE_BY_TIME, consumers,
                                            m->beside ? 2 : 1, err);

    snd_assembly_release(&m->assembly);
    if (status != SONDE_OK)
        return status;
    snd_modules_read_facts(m);
    if (m->assembly.out_of_memory)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the modules");
    sum_up(m);
    return SONDE_OK;
}

enum sonde_status sonde_modules_new(struct sonde_trace *trace, enum sonde_flops_mode flops,
                                    struct sonde_modules **out, struct sonde_error *err)
{
    return snd_modules_beside(trace, flops, NULL, out, err);
}

enum sonde_status snd_modules_beside(struct sonde_trace *trace, enum sonde_flops_mode flops,
                                     const struct snd_consumer *beside, struct sonde_modules **out,
                                     struct sonde_error *err)
{
    enum sonde_status status = SONDE_E_NOMEM;
    uint32_t          empty;

    *out = NULL;
    struct sonde_modules *m = calloc(1, sizeof *m);
    if (m) {
        m->trace = trace;
        m->beside = beside;
        m->visitors = calloc((size_t)trace->thread_count + 1, sizeof *m->visitors);
    }
    if (m && m->visitors && snd_texts_add(&m->texts, "", 0, &empty)) {
        snd_module_add(m, 0, empty, empty);
        if (m->count == 1)
            status = build(m, flops, err);
    }
    if (status == SONDE_OK) {
        *out = m;
        return SONDE_OK;
    }
    if (!m || m->count == 0)
        snd_fail(err, SONDE_E_NOMEM, "out of memory for the modules");
    sonde_modules_free(m);
    return status;
}

void sonde_modules_free(struct sonde_modules *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->visitors && i <= m->trace->thread_count; i++)
        free(m->visitors[i].open);
    free(m->nodes);
    free(m->owns);
    free(m->forwards);
    free(m->visitors);
    snd_map_release(&m->by_name);
    snd_map_release(&m->by_path);
    snd_map_release(&m->by_sequence);
    snd_texts_release(&m->texts);
    snd_live_release(&m->live);
    free(m);
}

uint64_t sonde_modules_passes(const struct sonde_modules *modules)
{
    return modules->passes;
}

size_t sonde_modules_count(const struct sonde_modules *modules)
{
    return modules->count;
}

const struct sonde_module *sonde_modules_node(const struct sonde_modules *modules, size_t index)
{
    return index < modules->count ? &modules->nodes[index] : NULL;
}
