/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/modules.c - what each module of a network cost, forward and backward.
 *
 * Every range is one module's: that of its MODULE attribute, or of the range it lies in; a
 * backward one's is its forward operator's, which has the same sequence number. Self times,
 * FLOPs and bytes are added up by module, and then from the leaves to the root, so that nothing
 * counts twice.
 *
 * Modules are not marked by themselves, only named by their operators. A call of one is told by
 * the operator that its visit began with coming again, or by the operators between two visits
 * being others'.
 */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "format/fields.h"
#include "model/assembly.h"
#include "model/passes.h"
#include "read/facts.h"

#define MODULES_MAX (1u << 16)
#define PATH_MAX_BYTES 1024u /* a longer one is no module's */
#define DEPTH_MAX 64u        /* parts of a path; what is deeper is its ancestor's */
#define NO_MODULE 0u         /* the root: what belongs to none */

struct own { /* of one module, without its children's */
    int64_t  forward_ns, backward_ns, cpu_bytes, device_bytes, activation_bytes;
    int64_t  gpu_forward_ns, gpu_backward_ns;
    double   flops, backward_flops, macs, backward_macs;
    int64_t  base_bytes, peak_bytes; /* held when its latest call began; most above that */
    uint32_t last_child;
    uint32_t first_module, first_name; /* the operator that it began with */
};

struct forward {
    int64_t  start_ns;
    uint32_t module;
};

/* What a thread is doing. */
struct visitor {
    uint32_t module;   /* of the latest outermost forward operator */
    uint32_t backward; /* module of the latest backward function */
    uint32_t taker;    /* of the latest memory taken or given back by a forward operator */
};

struct sonde_modules {
    struct sonde_trace  *trace;
    struct sonde_module *nodes;
    struct own          *owns;
    uint32_t             count, node_room, own_room;
    struct snd_map       by_name; /* (parent, text of the last part) */
    struct snd_texts     texts;   /* parts of paths, paths, classes */
    struct snd_map       by_path; /* number of the whole path's text in trace->names */
    struct snd_map       by_sequence;
    struct forward      *forwards;
    uint32_t             forward_count, forward_room;
    struct visitor      *visitors; /* by thread */
    struct snd_live      live;
    int64_t              live_bytes; /* of all that was seen taken */
    uint64_t             passes;
    struct snd_assembly  assembly;
};

static void give_up(struct sonde_modules *m)
{
    snd_assembly_stop(&m->assembly);
}

/* --------------------------------------------------------------------- paths */

static uint32_t add_module(struct sonde_modules *m, uint32_t parent, uint32_t name, uint32_t path)
{
    if (!snd_grow(&m->nodes, &m->node_room, m->count, sizeof *m->nodes) ||
        !snd_grow(&m->owns, &m->own_room, m->count, sizeof *m->owns)) {
        give_up(m);
        return NO_MODULE;
    }
    uint32_t             at = m->count++;
    struct sonde_module *node = &m->nodes[at];
    *node = (struct sonde_module){ .parent = parent,
                                   .parameters = -1,
                                   .output_bytes = -1,
                                   .device_forward_ns = -1,
                                   .kind = { "", 0 },
                                   .input_shapes = { "", 0 },
                                   .output_shapes = { "", 0 } };
    node->name = (struct sonde_text){ m->texts.items[name].bytes, m->texts.items[name].length };
    node->path = (struct sonde_text){ m->texts.items[path].bytes, m->texts.items[path].length };
    m->owns[at] = (struct own){ 0 };
    if (at == 0)
        return at;
    node->depth = m->nodes[parent].depth + 1;
    if (m->owns[parent].last_child == 0)
        m->nodes[parent].first_child = at;
    else
        m->nodes[m->owns[parent].last_child].next_sibling = at;
    m->owns[parent].last_child = at;
    return at;
}

static uint32_t find_child(struct sonde_modules *m, uint32_t parent, const char *path, size_t start,
                           size_t end)
{
    uint32_t name, whole, at;

    if (!snd_texts_add(&m->texts, path + start, end - start, &name)) {
        give_up(m);
        return NO_MODULE;
    }
    struct snd_key key = { parent, name, 0 };
    if (snd_map_get(&m->by_name, key, &at))
        return at;
    if (m->count >= MODULES_MAX)
        return parent; /* what is beyond is its ancestor's, and its path is not kept */
    if (!snd_texts_add(&m->texts, path, end, &whole)) {
        give_up(m);
        return NO_MODULE;
    }
    at = add_module(m, parent, name, whole);
    if (at != NO_MODULE && !snd_map_put(&m->by_name, key, at))
        give_up(m);
    return at;
}

static void set_kind(struct sonde_modules *m, uint32_t at, const char *bytes, size_t length)
{
    uint32_t text;

    if (m->nodes[at].kind.length > 0 || length == 0)
        return;
    if (!snd_texts_add(&m->texts, bytes, length, &text)) {
        give_up(m);
        return;
    }
    m->nodes[at].kind = (struct sonde_text){ m->texts.items[text].bytes, length };
}

/* "Net.layer1.0.conv" or "Net.layer1.0.conv|Conv2d". */
static uint32_t find_path(struct sonde_modules *m, struct sonde_text path)
{
    const char *bar = memchr(path.bytes, '|', path.length);
    size_t      length = bar ? (size_t)(bar - path.bytes) : path.length, start = 0;
    uint32_t    at = NO_MODULE, parts = 0;

    if (length > PATH_MAX_BYTES)
        return NO_MODULE;
    while (start < length && parts++ < DEPTH_MAX) {
        const char *dot = memchr(path.bytes + start, '.', length - start);
        size_t      end = dot ? (size_t)(dot - path.bytes) : length;
        at = find_child(m, at, path.bytes, start, end);
        start = end + 1;
    }
    if (bar && at != NO_MODULE)
        set_kind(m, at, bar + 1, path.length - length - 1);
    return at;
}

/* The module of a string id; NO_MODULE for none. */
static uint32_t find_module(struct sonde_modules *m, const struct snd_lane *lane, uint32_t id)
{
    uint32_t name = id != 0 ? snd_name_of(lane->from, id) : UINT32_MAX, at;

    if (name == UINT32_MAX)
        return NO_MODULE;
    struct snd_key key = { name, 0, 0 };
    if (snd_map_get(&m->by_path, key, &at))
        return at;
    const struct snd_text *text = &m->trace->names.items[name];
    at = find_path(m, (struct sonde_text){ text->bytes, text->length });
    if (!snd_map_put(&m->by_path, key, at))
        give_up(m);
    return at;
}

/* --------------------------------------------------------------------- visits */

static bool lies_in(const struct sonde_modules *m, uint32_t at, uint32_t ancestor)
{
    while (at != NO_MODULE && m->nodes[at].depth > m->nodes[ancestor].depth)
        at = m->nodes[at].parent;
    return at == ancestor;
}

/* The first forward operator in a module: which modules' calls does it begin? */
static void visit(struct sonde_modules *m, struct visitor *v, uint32_t module, uint32_t name)
{
    for (uint32_t at = module; at != NO_MODULE; at = m->nodes[at].parent) {
        struct own *own = &m->owns[at];
        bool        again = own->first_module == module && own->first_name == name;
        if (lies_in(m, v->module, at) && v->module != NO_MODULE && !again)
            continue; /* the visit goes on, and so do its ancestors' */
        m->nodes[at].calls++;
        own->first_module = module;
        own->first_name = name;
    }
    v->module = module;
}

/* ---------------------------------------------------------------------- ranges */

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_modules *m = user;

    if (parent) /* unless an attribute says otherwise */
        range->range.module = parent->range.module;
    if (snd_is_pass(m->trace->names.items[range->range.name].bytes)) {
        m->passes++;
        m->visitors[lane->thread].taker = NO_MODULE;
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
            m->forwards[at] = (struct forward){ r->start_ns, module };
        return;
    }
    if (!snd_grow(&m->forwards, &m->forward_room, m->forward_count, sizeof *m->forwards) ||
        !snd_map_put(&m->by_sequence, key, m->forward_count)) {
        give_up(m);
        return;
    }
    m->forwards[m->forward_count++] = (struct forward){ r->start_ns, module };
}

/* A node without a sequence number accumulates what the node before it made. */
static uint32_t find_backward(struct sonde_modules *m, const struct snd_lane *lane, uint32_t thread,
                              int64_t sequence)
{
    uint32_t at;

    if (sequence < 0)
        return m->visitors[lane->thread].backward;
    if (!snd_map_get(&m->by_sequence, sequence_key(lane, thread, sequence), &at))
        return NO_MODULE;
    return m->forwards[at].module;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_modules   *m = user;
    const struct snd_range *r = &range->range;
    struct visitor         *v = &m->visitors[lane->thread];
    bool                    engine = m->assembly.name_flags[r->name] & SND_NAME_EVALUATE;
    uint32_t                module;

    if (r->is_back || engine) {
        module = r->is_back ? find_backward(m, lane, r->back_thread, r->back_sequence)
                            : find_backward(m, lane, r->fwd_thread, r->sequence);
        if (r->scope == SONDE_SCOPE_BACKWARD && r->sequence >= 0)
            v->backward = module;
        v->module = v->taker = NO_MODULE; /* the forward pass is over */
    } else {
        module = find_module(m, lane, r->module);
        if (r->sequence >= 0)
            note_forward(m, lane, r, module);
        uint32_t around = parent ? find_module(m, lane, parent->range.module) : NO_MODULE;
        /* A scripted model is one operator, in which those of its modules are. */
        bool enters = around == NO_MODULE || parent->range.scope == SONDE_SCOPE_USER ||
                      (around != module && lies_in(m, module, around));
        if (enters && r->scope != SONDE_SCOPE_USER && r->api == 0)
            visit(m, v, module, r->name);
    }
    if (m->assembly.out_of_memory)
        return;
    struct own *own = &m->owns[module];
    int64_t     self_ns = snd_sub(r->total_ns, r->child_ns);
    bool        back = r->is_back || engine;
    int64_t    *time = back ? &own->backward_ns : &own->forward_ns;
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

/* Memory in a forward operator of `module`: peaks of it and of what it lies in. */
static void note_peak(struct sonde_modules *m, struct visitor *v, uint32_t module, int64_t bytes)
{
    int64_t after = snd_add(m->live_bytes, bytes);

    for (uint32_t at = module; at != NO_MODULE; at = m->nodes[at].parent) {
        struct own *own = &m->owns[at];
        bool        goes_on = v->taker != NO_MODULE && lies_in(m, v->taker, at);
        if (!goes_on)
            own->base_bytes = m->live_bytes;
        int64_t above = snd_sub(after, own->base_bytes);
        if (above > own->peak_bytes)
            own->peak_bytes = above;
    }
    v->taker = module;
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
        give_up(m);
    if (innermost && !innermost->range.is_back) {
        uint32_t module = find_module(m, lane, innermost->range.module);
        if (module != NO_MODULE)
            note_peak(m, &m->visitors[lane->thread], module, change.counted);
    }
    m->live_bytes = snd_add(m->live_bytes, change.counted);
    if (innermost)
        snd_range_memory(&innermost->range, words, change.counted);
}

/* ----------------------------------------------------------------------- facts */

static void set_text(struct sonde_modules *m, const struct snd_fact *fact, unsigned field,
                     struct sonde_text *out)
{
    struct sonde_text text = snd_fact_text(fact, field);
    uint32_t          number;

    if (text.length == 0)
        return;
    if (snd_texts_add(&m->texts, text.bytes, text.length, &number))
        *out = (struct sonde_text){ m->texts.items[number].bytes, text.length };
    else
        m->assembly.out_of_memory = true;
}

/* Its own parameters, by the probe or by a benchmark. */
static void read_module(struct sonde_modules *m, uint32_t at, const struct snd_fact *fact)
{
    static_assert((int)SND_FIELD_MODULE_CLASS == (int)SND_FIELD_IO_CLASS &&
                      (int)SND_FIELD_MODULE_PARAMETERS == (int)SND_FIELD_IO_PARAMETERS &&
                      (int)SND_FIELD_MODULE_PARAMETER_BYTES == (int)SND_FIELD_IO_PARAMETER_BYTES,
                  "read alike");
    struct sonde_module *node = &m->nodes[at];
    int64_t              parameters = snd_fact_number(fact, SND_FIELD_MODULE_PARAMETERS, -1);
    int64_t              bytes = snd_fact_number(fact, SND_FIELD_MODULE_PARAMETER_BYTES, -1);

    if (node->kind.length == 0)
        set_text(m, fact, SND_FIELD_MODULE_CLASS, &node->kind);
    if (parameters >= 0)
        node->parameters = parameters; /* of a rank: the same in each process */
    if (bytes >= 0)
        node->parameter_bytes = bytes;
}

/* The mean of the times of a field; -1 of none. */
static int64_t mean_of(const struct snd_fact *fact, unsigned field)
{
    double   sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < fact->count; i++)
        if (fact->values[i].field == field) {
            sum += fact->values[i].real;
            count++;
        }
    return count > 0 && sum >= 0 && sum < 1e18 ? (int64_t)(sum / (double)count) : -1;
}

/* Of its first call; times on a GPU of each pass. */
static void read_shapes(struct sonde_modules *m, uint32_t at, const struct snd_fact *fact)
{
    struct sonde_module *node = &m->nodes[at];

    read_module(m, at, fact);
    set_text(m, fact, SND_FIELD_IO_IN, &node->input_shapes);
    set_text(m, fact, SND_FIELD_IO_OUT, &node->output_shapes);
    node->output_bytes = snd_fact_number(fact, SND_FIELD_IO_OUT_BYTES, -1);
    node->device_forward_ns = mean_of(fact, SND_FIELD_IO_DEVICE_NS);
}

/* All that the trace says of modules in facts of this kind, by their paths. */
static void read_notes(struct sonde_modules *m, uint32_t kind,
                       void (*read)(struct sonde_modules *m, uint32_t at,
                                    const struct snd_fact *fact))
{
    const struct snd_fact *fact;

    for (uint32_t p = 0; p < m->trace->process_count; p++)
        for (uint32_t n = 0; (fact = snd_fact_next(m->trace, p, kind, &n));) {
            uint32_t at = find_path(m, fact->subject);
            if (at != NO_MODULE)
                read(m, at, fact);
        }
}

static void note_device(struct sonde_modules *m, const struct snd_fact *model)
{
    struct sonde_text device = snd_fact_text(model, SND_FIELD_MODEL_DEVICE);
    bool              on_gpu = device.length >= 4 && memcmp(device.bytes, "cuda", 4) == 0;

    for (uint32_t i = 0; i < m->count && on_gpu; i++)
        m->nodes[i].on_device = true;
}

/* What a benchmark says of a module holds against what the probe found. */
static void read_facts(struct sonde_modules *m)
{
    const struct snd_fact *fact;

    read_notes(m, SND_FACT_OF_MODULE, read_module);
    read_notes(m, SND_FACT_OF_IO, read_shapes);
    for (uint32_t p = 0; p < m->trace->process_count; p++)
        for (uint32_t at = 0; (fact = snd_fact_next(m->trace, p, SND_FACT_OF_MODEL, &at));)
            note_device(m, fact);
}

/* ---------------------------------------------------------------------- sums */

static void show_own(struct sonde_module *node, const struct own *own)
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
    for (uint32_t i = m->count; i-- > 1;)
        add_child(&m->nodes[m->nodes[i].parent], &m->nodes[i]);
}

/* ---------------------------------------------------------------- the whole */

static enum sonde_status build(struct sonde_modules *m, enum sonde_flops_mode flops,
                               struct sonde_error *err)
{
    const struct snd_consumer consumer = {
        .user = m, .flops = flops, .open = on_open, .close = on_close, .memory = on_memory
    };
    enum sonde_status status = snd_assemble(&m->assembly, m->trace, SONDE_BY_TIME, &consumer, err);

    snd_assembly_release(&m->assembly);
    if (status != SONDE_OK)
        return status;
    read_facts(m);
    if (m->assembly.out_of_memory)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the modules");
    sum_up(m);
    return SONDE_OK;
}

enum sonde_status sonde_modules_new(struct sonde_trace *trace, enum sonde_flops_mode flops,
                                    struct sonde_modules **out, struct sonde_error *err)
{
    enum sonde_status status = SONDE_E_NOMEM;
    uint32_t          empty;

    *out = NULL;
    struct sonde_modules *m = calloc(1, sizeof *m);
    if (m) {
        m->trace = trace;
        m->visitors = calloc((size_t)trace->thread_count + 1, sizeof *m->visitors);
    }
    if (m && m->visitors && snd_texts_add(&m->texts, "", 0, &empty)) {
        add_module(m, 0, empty, empty);
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
