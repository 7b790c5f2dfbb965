/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/plan/plan_files.c - models.yml, device_types.yml and devices.yml to a pipeline, and the plan
 * to text.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/data/map.h"
#include "pipe/yaml/value_types.h"
#include "pipe/plan/plan.h"
#include "pipe/yaml/scalar.h"
#include "pipe/yaml/yaml.h"

#define LAYERS_MAX 2048
#define HOSTS_MAX 65536u

struct loader {
    const struct snd_plan_options *options;
    struct snd_arena              *arena;
    struct snd_pipeline           *pipeline;
    struct sonde_buffer           *notes;
    struct sonde_error            *err;
    struct snd_document            models, types, devices;
    struct snd_texts               hosts; /* so far */
};

static enum sonde_status no_memory(struct loader *l)
{
    return snd_fail(l->err, SONDE_E_NOMEM, "out of memory for the plan");
}

/* What of a file is wrong: "models.yml: mem_MB of toy is ..". */
struct field {
    const char *path, *owner, *key;
};

static enum sonde_status refuse(struct loader *l, const struct field *field,
                                const struct snd_node *value, const char *expected)
{
    char        said[SND_NODE_SAID_MAX], line[24] = "";
    const char *hint = "";

    if (!value)
        return snd_fail(l->err, SONDE_E_FORMAT, "%s: %s has no %s", field->path, field->owner,
                        field->key);
    if (value->line)
        snprintf(line, sizeof line, ", line %u", value->line);
    if (value->kind == SND_NODE_TEXT && snd_scalar_is_near_number(value->text, value->length))
        hint = "; YAML 1.1 takes it for text: write 1.0e-05, not 1e-05";
    return snd_fail(l->err, SONDE_E_FORMAT, "%s%s: %s of %s is %s, not %s%s", field->path, line,
                    field->key, field->owner, snd_node_said(value, said), expected, hint);
}

static bool is_amount(const struct snd_node *node)
{
    return snd_node_is_number(node) && isfinite(node->real) && node->real >= 0;
}

static enum sonde_status read_amount(struct loader *l, const struct field *field,
                                     const struct snd_node *map, double *amount)
{
    const struct snd_node *value = snd_node_get(map, field->key);

    if (!is_amount(value))
        return refuse(l, field, value, "a number >= 0");
    *amount = value->real;
    return SONDE_OK;
}

/* A list of `count` numbers; a shorter one is taken again from its start where `repeats`. */
static enum sonde_status read_amounts(struct loader *l, const struct field *field,
                                      const struct snd_node *map, bool repeats,
                                      const double **amounts)
{
    const struct snd_node *list = snd_node_get(map, field->key);
    uint32_t               count = l->pipeline->layers;

    if (!snd_node_is(list, SND_NODE_LIST))
        return refuse(l, field, list, "a list of numbers");
    if (list->count == 0 || list->count > count || (!repeats && list->count < count))
        return snd_fail(l->err, SONDE_E_STATE, "%s: %s of %s has %u numbers for %u layers",
                        field->path, field->key, field->owner, list->count, count);
    if (list->count < count)
        snd_buf_format(l->notes, "%s of %s has %u numbers for %u layers: they are repeated\n",
                       field->key, field->owner, list->count, count);
    double *values = snd_arena_take(l->arena, count * sizeof *values);
    if (!values)
        return no_memory(l);
    for (uint32_t i = 0; i < count; i++) {
        const struct snd_node *value = list->items[i % list->count];
        if (!is_amount(value))
            return refuse(l, field, value, "a number >= 0");
        values[i] = value->real;
    }
    *amounts = values;
    return SONDE_OK;
}

/* ------------------------------------------------------------------- model */

static enum sonde_status read_model(struct loader *l)
{
    const struct snd_plan_options *o = l->options;
    struct snd_pipeline           *p = l->pipeline;
    struct field                   field = { o->models_path, o->model_name, "layers" };
    const struct snd_node         *model = snd_node_get(l->models.root, o->model_name);

    if (!model)
        return snd_fail(l->err, SONDE_E_STATE, "%s has no model %s", o->models_path, o->model_name);
    const struct snd_node *layers = snd_node_get(model, "layers");
    if (!snd_node_is(layers, SND_NODE_INT) || !layers->in_range || layers->integer < 1 ||
        layers->integer > LAYERS_MAX)
        return refuse(l, &field, layers, "an integer in 1..2048");
    p->layers = (uint32_t)layers->integer;
    field.key = "mem_MB";
    enum sonde_status status = read_amounts(l, &field, model, false, &p->memory_mb);
    field.key = "parameters_in";
    if (status == SONDE_OK)
        status = read_amount(l, &field, model, &p->parameters_in);
    field.key = "parameters_out";
    if (status == SONDE_OK)
        status = read_amounts(l, &field, model, true, &p->parameters_out);
    return status;
}

/* ----------------------------------------------------------------- devices */

static const struct snd_node *find_profile(const struct loader *l, const struct snd_node *type)
{
    const struct snd_node *models = snd_node_get(type, "model_profiles");
    const struct snd_node *profiles = snd_node_get(models, l->options->model_name);
    const struct snd_node *found = NULL;

    for (uint32_t i = 0; snd_node_is(profiles, SND_NODE_LIST) && i < profiles->count; i++) {
        const struct snd_node *batch = snd_node_get(profiles->items[i], "batch_size");
        if (snd_node_is_number(batch) && batch->real == (double)l->options->batch_size &&
            snd_node_is_text(snd_node_get(profiles->items[i], "dtype"), l->options->dtype))
            found = profiles->items[i];
    }
    return found;
}

/* Each host once, in whatever type, and no more than a plan can be made for. */
static enum sonde_status count_host(struct loader *l, const struct snd_node *host)
{
    const char *path = l->options->devices_path;
    uint32_t    before = l->hosts.count, number;

    if (before >= HOSTS_MAX)
        return snd_fail(l->err, SONDE_E_LIMIT, "%s, line %u: more than %u hosts", path, host->line,
                        HOSTS_MAX);
    if (!snd_texts_add(&l->hosts, host->text, host->length, &number))
        return no_memory(l);
    if (number < before)
        return snd_fail(l->err, SONDE_E_FORMAT,
                        "%s, line %u: duplicate host %s; a host has one stage", path, host->line,
                        host->text);
    return SONDE_OK;
}

static enum sonde_status read_hosts(struct loader *l, const struct snd_node *hosts,
                                    struct snd_device_type *type)
{
    struct field field = { l->options->devices_path, type->name, "the list of hosts" };

    type->hosts = snd_arena_take(l->arena, (hosts->count + 1) * sizeof *type->hosts);
    if (!type->hosts)
        return no_memory(l);
    for (uint32_t i = 0; i < hosts->count; i++) {
        const struct snd_node *host = hosts->items[i];
        if (!snd_node_is_scalar(host) || host->length == 0 || strlen(host->text) != host->length)
            return refuse(l, &field, host, "a name of a host");
        enum sonde_status status = count_host(l, host);
        if (status != SONDE_OK)
            return status;
        type->hosts[type->count] = snd_arena_copy(l->arena, host->text, host->length);
        if (!type->hosts[type->count++])
            return no_memory(l);
    }
    return SONDE_OK;
}

/* The value under a key of another file; both may be what YAML takes for numbers. */
static const struct snd_node *find_equal(const struct snd_node *map, const struct snd_node *key)
{
    for (uint32_t i = 0; i < map->count; i += 2)
        if (snd_node_equal(map->items[i], key))
            return map->items[i + 1];
    return NULL;
}

/* One type of devices.yml; without a profile to go by, its hosts are left out. */
static enum sonde_status read_type(struct loader *l, const struct snd_node *key, const char *name,
                                   const struct snd_node *hosts)
{
    const struct snd_plan_options *o = l->options;
    struct field                   field = { o->types_path, name, "mem_MB" };
    struct snd_device_type         type = { .name = name };
    const struct snd_node         *entry = find_equal(l->types.root, key);
    const struct snd_node         *profile = find_profile(l, entry);

    if (hosts->kind == SND_NODE_NULL || (hosts->kind == SND_NODE_LIST && hosts->count == 0))
        return SONDE_OK;
    if (hosts->kind != SND_NODE_LIST) {
        struct field list = { o->devices_path, name, "the entry" };
        return refuse(l, &list, hosts, "a list of hosts");
    }
    if (!profile) {
        snd_buf_format(l->notes,
                       "hosts of type %s are left out: %s has no %s of %s, %s, batch size %" PRId64
                       "\n",
                       name, o->types_path, entry ? "profile" : "such type, thus no profile",
                       o->model_name, o->dtype, o->batch_size);
        return SONDE_OK;
    }
    enum sonde_status status = read_amount(l, &field, entry, &type.memory_mb);
    field.key = "bw_Mbps";
    if (status == SONDE_OK)
        status = read_amount(l, &field, entry, &type.bandwidth_mbps);
    field.key = "time_s";
    if (status == SONDE_OK)
        status = read_amounts(l, &field, profile, false, &type.time_s);
    if (status == SONDE_OK)
        status = read_hosts(l, hosts, &type);
    if (status == SONDE_OK)
        l->pipeline->types[l->pipeline->type_count++] = type;
    return status;
}

static enum sonde_status read_devices(struct loader *l)
{
    const struct snd_node *root = l->devices.root;
    enum sonde_status      status = SONDE_OK;

    l->pipeline->types = snd_arena_take(l->arena, (root->count + 1) * sizeof *l->pipeline->types);
    if (!l->pipeline->types)
        return no_memory(l);
    for (uint32_t i = 0; i < root->count && status == SONDE_OK; i += 2) {
        const char *name = snd_arena_copy(l->arena, root->items[i]->text, root->items[i]->length);
        status = name ? read_type(l, root->items[i], name, root->items[i + 1]) : no_memory(l);
    }
    if (status == SONDE_OK && l->pipeline->type_count == 0)
        return snd_fail(l->err, SONDE_E_STATE,
                        "no host of %s has a profile of %s, %s, batch size %" PRId64 " in %s",
                        l->options->devices_path, l->options->model_name, l->options->dtype,
                        l->options->batch_size, l->options->types_path);
    return status;
}

static enum sonde_status refuse_dtype(struct loader *l)
{
    struct sonde_buffer names = { 0 };

    for (size_t i = 0; snd_value_type(i); i++)
        snd_buf_format(&names, "%storch.%s", i ? ", " : "", snd_value_type(i));
    enum sonde_status status = snd_fail(l->err, SONDE_E_ARGUMENT, "unknown dtype '%s'; dtypes: %s",
                                        l->options->dtype, snd_buf_string(&names));
    sonde_buffer_release(&names);
    return status;
}

enum sonde_status snd_pipeline_load(const struct snd_plan_options *options, struct snd_arena *arena,
                                    struct snd_pipeline *pipeline, struct sonde_buffer *notes,
                                    struct sonde_error *err)
{
    struct loader l = {
        .options = options,
        .arena = arena,
        .pipeline = pipeline,
        .notes = notes,
        .err = err,
        .models = SND_DOCUMENT_INIT,
        .types = SND_DOCUMENT_INIT,
        .devices = SND_DOCUMENT_INIT,
    };
    enum sonde_status status;

    *pipeline = (struct snd_pipeline){ .value_bytes = snd_value_bytes(options->dtype),
                                       .batch_size = options->batch_size,
                                       .buffers_in = options->buffers_in,
                                       .buffers_out = options->buffers_out };
    if (pipeline->value_bytes == 0)
        return refuse_dtype(&l);
    status = snd_yaml_load_map(&l.models, options->models_path, false, err);
    if (status == SONDE_OK)
        status = snd_yaml_load_map(&l.types, options->types_path, false, err);
    if (status == SONDE_OK)
        status = snd_yaml_load_map(&l.devices, options->devices_path, false, err);
    if (status == SONDE_OK)
        status = read_model(&l);
    if (status == SONDE_OK)
        status = read_devices(&l);
    snd_document_release(&l.models);
    snd_document_release(&l.types);
    snd_document_release(&l.devices);
    snd_texts_release(&l.hosts);
    return status;
}

/* ------------------------------------------------------------------ writing */

static const char *host_of(const struct snd_pipeline *p, const struct snd_stage *stage)
{
    return p->types[stage->type].hosts[stage->host];
}

static void write_number(struct sonde_buffer *text, double value)
{
    char number[SND_NUMBER_MAX];
    int  decimals = value >= 100 || value == 0 ? 0 : 3 - (int)floor(log10(value));

    snd_buf_text(text, snd_number_fixed(number, decimals < 0 ? 0 : decimals, value));
}

/* Hosts are one line: a control character would end the comment. */
static void write_name(struct sonde_buffer *text, const char *name)
{
    for (; *name; name++)
        snd_buf_put(text, (unsigned char)*name < ' ' ? "?" : name, 1);
}

static void write_stage(const struct snd_pipeline *p, const struct snd_plan *plan, uint32_t i,
                        struct sonde_buffer *text)
{
    const struct snd_stage       *stage = &plan->stages[i];
    const struct snd_device_type *type = &p->types[stage->type];

    snd_buf_format(text, "# stage %u, ", i + 1);
    write_name(text, host_of(p, stage));
    snd_buf_text(text, " (");
    write_name(text, type->name);
    snd_buf_text(text, "): computes ");
    write_number(text, stage->compute_s);
    snd_buf_text(text, " s, holds ");
    write_number(text, stage->memory_mb);
    snd_buf_text(text, " of ");
    write_number(text, type->memory_mb);
    snd_buf_text(text, " MB");
    if (i + 1 < plan->count) {
        snd_buf_text(text, ", sends ");
        write_number(text, stage->send_bytes / 1048576);
        snd_buf_text(text, " MB in ");
        write_number(text, stage->send_s);
        snd_buf_text(text, " s");
    }
    snd_buf_text(text, "\n");
}

static void write_slowest(const struct snd_pipeline *p, const struct snd_plan *plan,
                          struct sonde_buffer *text)
{
    const struct snd_stage *stage = &plan->stages[plan->slowest];
    uint32_t                hosts = 0;

    for (uint32_t t = 0; t < p->type_count; t++)
        hosts += p->types[t].count;
    snd_buf_text(text, plan->is_send ? "# slowest: the transfer from " : "# slowest: ");
    write_name(text, host_of(p, stage));
    if (plan->is_send) {
        snd_buf_text(text, " to ");
        write_name(text, host_of(p, stage + 1));
        snd_buf_format(text, " after layer %u, ", stage->last);
    } else {
        snd_buf_format(text, ", layers %u to %u, ", stage->first, stage->last);
    }
    write_number(text, plan->period_s);
    snd_buf_format(text, " s for a batch of %" PRId64, p->batch_size);
    if (plan->period_s > 0) {
        snd_buf_text(text, ": ");
        write_number(text, (double)p->batch_size / plan->period_s);
        snd_buf_text(text, " items/s");
    }
    snd_buf_format(text, "\n# hosts: %u of %u\n", plan->count, hosts);
}

enum sonde_status snd_plan_write(const struct snd_pipeline *pipeline, const struct snd_plan *plan,
                                 bool verbose, struct sonde_buffer *text, struct sonde_error *err)
{
    struct snd_document doc = SND_DOCUMENT_INIT;

    doc.root = snd_node_list(&doc);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct snd_stage *stage = &plan->stages[i];
        struct snd_node        *entry = snd_node_map(&doc);
        int64_t                 ends[] = { stage->first, stage->last };
        snd_node_set(&doc, entry, host_of(pipeline, stage), snd_node_ints(&doc, ends, 2));
        snd_node_add(&doc, doc.root, entry);
    }
    enum sonde_status status = snd_yaml_write(&doc, text, err);
    snd_document_release(&doc);
    for (uint32_t i = 0; i < plan->count && verbose; i++)
        write_stage(pipeline, plan, i, text);
    write_slowest(pipeline, plan, text);
    return status;
}
