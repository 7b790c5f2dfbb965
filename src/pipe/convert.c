/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe/convert.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/buf.h"
#include "pipe/yaml/value_types.h"
#include "pipe/results.h"
#include "pipe/yaml/yaml.h"

/* One conversion at work. */
struct conversion {
    const struct snd_convert_options *options;
    struct snd_results               *results;
    struct snd_results_head           head;
    struct snd_document               output;
    struct sonde_buffer              *notes;
};

static void note_layers(const struct conversion *c)
{
    int64_t expected = snd_known_layers(c->head.model_name);

    if (c->notes && expected && expected != c->head.layers)
        snd_buf_format(c->notes,
                       "%s has %" PRId64 " layers here; PipeEdge cuts it into %" PRId64 "\n",
                       c->head.model_name, c->head.layers, expected);
}

/* `used` is the column that is converted: a fault of the other one is only noted. */
static enum sonde_status check_columns(const struct conversion *c, const char *used,
                                       const char *unused, struct sonde_error *err)
{
    struct sonde_error why;

    if (c->notes && snd_results_check_amounts(c->results, unused, &why) != SONDE_OK)
        snd_buf_format(c->notes, "unused but invalid: %s\n", why.message);
    return snd_results_check_amounts(c->results, used, err);
}

static enum sonde_status begin(struct conversion *c, const char *used, const char *unused,
                               struct sonde_error *err)
{
    enum sonde_status status = snd_results_load(c->options->results_path, &c->results, err);

    if (status != SONDE_OK)
        return status;
    c->head = snd_results_head(c->results);
    status = snd_results_check_whole(c->results, err);
    if (status == SONDE_OK)
        status = check_columns(c, used, unused, err);
    if (status != SONDE_OK)
        return status;
    note_layers(c);
    return snd_yaml_load_map(&c->output, c->options->output_path, true, err);
}

static enum sonde_status end(struct conversion *c, enum sonde_status status,
                             struct sonde_error *err)
{
    if (status == SONDE_OK)
        status = snd_yaml_save(&c->output, c->options->output_path, err);
    snd_document_release(&c->output);
    snd_results_free(c->results);
    return status;
}

/* The values of one key of every row, as they stand. */
static struct snd_node *collect(struct conversion *c, const char *key)
{
    struct snd_node *list = snd_node_list(&c->output);

    for (uint32_t i = 0; i < snd_results_count(c->results); i++)
        snd_node_add(&c->output, list,
                     snd_node_copy(&c->output, snd_node_get(snd_results_row(c->results, i), key)));
    return list;
}

/* ----------------------------------------------------------------- models */

static struct snd_node *make_model(struct conversion *c)
{
    struct snd_document   *doc = &c->output;
    struct snd_node       *model = snd_node_map(doc), *out = snd_node_list(doc);
    const struct snd_node *first = snd_results_row(c->results, 0);

    for (uint32_t i = 0; i < snd_results_count(c->results); i++) {
        const struct snd_node *row = snd_results_row(c->results, i);
        snd_node_add(doc, out,
                     snd_node_int(doc, snd_shapes_elements(snd_node_get(row, "shape_out"))));
    }
    snd_node_set(doc, model, "layers", snd_node_int(doc, c->head.layers));
    snd_node_set(doc, model, "mem_MB", collect(c, "memory"));
    snd_node_set(doc, model, "parameters_in",
                 snd_node_int(doc, snd_shapes_elements(snd_node_get(first, "shape_in"))));
    snd_node_set(doc, model, "parameters_out", out);
    return model;
}

static enum sonde_status add_model(struct conversion *c, struct sonde_error *err)
{
    const char *path = c->options->output_path, *name = c->head.model_name;

    if (snd_node_get(c->output.root, name)) {
        if (!c->options->overwrite)
            return snd_fail(err, SONDE_E_STATE, "%s already has the model %s; replace it with -f",
                            path, name);
        if (c->notes)
            snd_buf_format(c->notes, "the model %s in %s is replaced\n", name, path);
    }
    snd_node_set(&c->output, c->output.root, name, make_model(c));
    return SONDE_OK;
}

enum sonde_status snd_convert_models(const struct snd_convert_options *options,
                                     struct sonde_buffer *notes, struct sonde_error *err)
{
    struct conversion c = { .options = options, .output = SND_DOCUMENT_INIT, .notes = notes };
    enum sonde_status status = begin(&c, "memory", "time", err);

    if (status == SONDE_OK)
        status = add_model(&c, err);
    return end(&c, status, err);
}

/* ----------------------------------------------------------- device types */

/* A number of the command line against that of the file: it may be left out, not differ. */
static enum sonde_status check_same(const struct conversion *c, const struct snd_node *type,
                                    const char *key, int64_t given, struct sonde_error *err)
{
    const struct snd_node *value = snd_node_get(type, key);
    char                   said[SND_NODE_SAID_MAX];

    if (!snd_node_is_number(value))
        return snd_fail(err, SONDE_E_FORMAT, "%s: %s of the device type %s is %s, not a number",
                        c->options->output_path, key, c->options->device_type,
                        snd_node_said(value, said));
    if (given >= 0 && value->real != (double)given)
        return snd_fail(err, SONDE_E_STATE,
                        "the device type %s in %s has %s %s, not %" PRId64
                        ": its profiles were made for that",
                        c->options->device_type, c->options->output_path, key, value->text, given);
    return SONDE_OK;
}

static enum sonde_status make_type(struct conversion *c, struct snd_node **type,
                                   struct sonde_error *err)
{
    const struct snd_convert_options *o = c->options;
    struct snd_document              *doc = &c->output;

    if (o->memory_mb < 0)
        return snd_fail(err, SONDE_E_STATE,
                        "the device type %s is new in %s: give its memory in MB with -dtm",
                        o->device_type, o->output_path);
    if (o->bandwidth_mbps < 0)
        return snd_fail(err, SONDE_E_STATE,
                        "the device type %s is new in %s: give its bandwidth in Mbps with -dtb",
                        o->device_type, o->output_path);
    *type = snd_node_map(doc);
    snd_node_set(doc, *type, "bw_Mbps", snd_node_int(doc, o->bandwidth_mbps));
    snd_node_set(doc, *type, "mem_MB", snd_node_int(doc, o->memory_mb));
    snd_node_set(doc, c->output.root, o->device_type, *type);
    return SONDE_OK;
}

static enum sonde_status find_type(struct conversion *c, struct snd_node **type,
                                   struct sonde_error *err)
{
    const struct snd_convert_options *o = c->options;
    char                              said[SND_NODE_SAID_MAX];

    *type = snd_node_get(c->output.root, o->device_type);
    if (!*type)
        return make_type(c, type, err);
    if ((*type)->kind != SND_NODE_MAP)
        return snd_fail(err, SONDE_E_FORMAT, "%s: the device type %s is %s, not a map",
                        o->output_path, o->device_type, snd_node_said(*type, said));
    enum sonde_status status = check_same(c, *type, "mem_MB", o->memory_mb, err);
    return status == SONDE_OK ? check_same(c, *type, "bw_Mbps", o->bandwidth_mbps, err) : status;
}

/* What stands under `key`, or a new `made` if nothing does; NULL if it is of another kind. */
static struct snd_node *get_or_make(struct conversion *c, struct snd_node *map, const char *key,
                                    struct snd_node *made)
{
    struct snd_node *found = snd_node_get(map, key);

    if (!found || found->kind == SND_NODE_NULL) {
        snd_node_set(&c->output, map, key, made);
        return made;
    }
    return made && found->kind == made->kind ? found : NULL;
}

static struct snd_node *make_profile(struct conversion *c)
{
    struct snd_document *doc = &c->output;
    struct snd_node     *profile = snd_node_map(doc);

    snd_node_set(doc, profile, "batch_size", snd_node_int(doc, c->head.batch_size));
    snd_node_set(doc, profile, "dtype", snd_node_text(doc, c->head.dtype));
    snd_node_set(doc, profile, "time_s", collect(c, "time"));
    return profile;
}

static bool is_profile_of(const struct snd_node *profile, const struct snd_results_head *head)
{
    const struct snd_node *batch = snd_node_get(profile, "batch_size");

    return snd_node_is_number(batch) && batch->real == (double)head->batch_size &&
           snd_node_is_text(snd_node_get(profile, "dtype"), head->dtype);
}

static enum sonde_status add_profile(struct conversion *c, struct snd_node *profiles,
                                     struct sonde_error *err)
{
    const struct snd_convert_options *o = c->options;
    struct snd_node                  *profile = make_profile(c);
    bool                              replaced = false;

    for (uint32_t i = 0; i < profiles->count; i++) {
        if (!is_profile_of(profiles->items[i], &c->head))
            continue;
        if (!o->overwrite)
            return snd_fail(err, SONDE_E_STATE,
                            "%s: the device type %s has a profile of %s, %s, batch size %" PRId64
                            " already; replace it with -f",
                            o->output_path, o->device_type, c->head.model_name, c->head.dtype,
                            c->head.batch_size);
        if (profile)
            profiles->items[i] = profile;
        replaced = true;
    }
    if (!replaced)
        snd_node_add(&c->output, profiles, profile);
    else if (c->notes)
        snd_buf_format(c->notes,
                       "the profile of %s, %s, batch size %" PRId64
                       ", of the device type %s in %s is replaced\n",
                       c->head.model_name, c->head.dtype, c->head.batch_size, o->device_type,
                       o->output_path);
    return SONDE_OK;
}

static enum sonde_status add_device_type(struct conversion *c, struct sonde_error *err)
{
    const struct snd_convert_options *o = c->options;
    struct snd_document              *doc = &c->output;
    struct snd_node                  *type;
    enum sonde_status                 status = find_type(c, &type, err);

    if (status != SONDE_OK)
        return status;
    struct snd_node *models = get_or_make(c, type, "model_profiles", snd_node_map(doc));
    struct snd_node *profiles = models
                                    ? get_or_make(c, models, c->head.model_name, snd_node_list(doc))
                                    : NULL;
    if (doc->failed)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", o->output_path);
    if (!profiles)
        return snd_fail(err, SONDE_E_FORMAT,
                        "%s: model_profiles of the device type %s is not a map of lists",
                        o->output_path, o->device_type);
    if (c->notes && snd_value_bytes(c->head.dtype) == 0)
        snd_buf_format(
            c->notes,
            "%s has dtype %s, which is not a parameter type: no scheduler finds its profile\n",
            o->results_path, c->head.dtype);
    return add_profile(c, profiles, err);
}

enum sonde_status snd_convert_device_types(const struct snd_convert_options *options,
                                           struct sonde_buffer *notes, struct sonde_error *err)
{
    struct conversion c = { .options = options, .output = SND_DOCUMENT_INIT, .notes = notes };
    enum sonde_status status = begin(&c, "time", "memory", err);

    if (status == SONDE_OK)
        status = add_device_type(&c, err);
    return end(&c, status, err);
}
