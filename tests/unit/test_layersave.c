/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of layers becomes rows of a results file; what is there already stays. */
#include "pipe/results.h"
#include "pipe/yaml/yaml.h"
#include "scratch.h"
#include "sonde/layers.h"

static struct sonde_error err;
static char               path[256]; /* of the results of the test that runs */

static void name_results(const char *name)
{
    snprintf(path, sizeof path, "%s", scratch_path(name));
}

/* Layers 1 and 2 of three, run `runs` times; the third is described but never ran. */
static struct sonde_trace *make_trace(const char *name, unsigned runs, const char *memory)
{
    struct synth *s = synth_new(scratch_path(name), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    char          head[256];

    snprintf(head, sizeof head,
             "model_name=m\ndtype=torch.float32\nbatch_size=2\nlayers=3\ndevice=cpu\nmemory=%s\n"
             "environment.threads=4\nenvironment.python=3.10",
             memory);
    synth_meta(s, "layers", head);
    synth_meta(s, "layer 1",
               "name=a\nin=torch.int64 [7] 112\nout=torch.float32 [7, 3] 168\n"
               "parameter_count=25\nparameter_bytes=100\nbuffer_bytes=20\n"
               "rss_bytes=4096");
    synth_meta(s, "layer 2",
               "name=b\nin=torch.float32 [7, 3] 168\nout=torch.float32 [5] 40\n"
               "parameter_count=2\nparameter_bytes=8\nbuffer_bytes=0");
    synth_meta(s, "layer 3", "name=c\nparameter_count=0\nparameter_bytes=0\nbuffer_bytes=0");
    for (unsigned i = 0; i < runs; i++) {
        uint64_t ns = 1000 + i * 10000000ull;
        synth_span(s, t, ns, synth_string(s, "layer 1"), 1000000 * (i + 1));
        synth_span(s, t, ns + 5000000, synth_string(s, "layer 2"), 10000);
        synth_span(s, t, ns + 6000000, synth_string(s, "layer 2 backward"), 20000);
    }
    synth_close(s, true);
    return scratch_open(scratch_path(name));
}

static enum sonde_status save(const char *name, unsigned runs, const char *memory, const char *to,
                              size_t *saved)
{
    struct sonde_trace  *trace = make_trace(name, runs, memory);
    struct sonde_layers *layers;

    assert_int_equal(sonde_layers_new(trace, &layers, &err), SONDE_OK);
    enum sonde_status status = sonde_layers_save(layers, to, saved, &err);
    sonde_layers_free(layers);
    sonde_trace_close(trace);
    return status;
}

static double real_of(const struct snd_node *row, const char *key)
{
    const struct snd_node *node = snd_node_get(row, key);

    if (!snd_node_is_number(node))
        fail_msg("no number %s", key);
    return node->real;
}

static struct snd_results *load(void)
{
    struct snd_results *results;

    if (snd_results_load(path, &results, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    return results;
}

static void rows_and_extra_keys(void **state)
{
    size_t saved;

    (void)state;
    if (!snd_yaml_works())
        skip();
    name_results("rows.yml");
    assert_int_equal(save("rows", 3, "weights", path, &saved), SONDE_OK);
    assert_int_equal(saved, 2);
    struct snd_results    *results = load();
    const struct snd_node *row = snd_results_row(results, 0);
    assert_int_equal(snd_results_count(results), 2);
    assert_string_equal(snd_results_head(results).model_name, "m");
    assert_int_equal(snd_results_head(results).layers, 3);
    assert_true(real_of(row, "memory") == 120 / 1e6);
    assert_true(real_of(row, "time") == 0.002 && real_of(row, "time_median") == 0.002);
    assert_true(real_of(row, "time_min") == 0.001 && real_of(row, "time_max") == 0.003);
    assert_true(real_of(row, "time_std") == 0.001);
    assert_true(real_of(row, "count") == 3 && real_of(row, "weight_bytes") == 120);
    assert_true(real_of(row, "rss_bytes") == 4096 && real_of(row, "activation_bytes") == 168);
    assert_true(snd_node_is_text(snd_node_get(row, "dtype_in")->items[0], "torch.int64"));
    assert_int_equal(snd_node_get(row, "shape_out")->items[0]->items[1]->integer, 3);
    row = snd_results_row(results, 1);
    assert_true(real_of(row, "backward_time") == 2e-5);
    assert_null(snd_node_get(row, "rss_bytes"));
    assert_null(snd_node_get(row, "copy_time"));
    snd_results_free(results);
}

static void other_rows_stay(void **state)
{
    const struct sonde_results_head head = { sizeof head, "m", "torch.float32", 2, 3 };
    struct sonde_results_row        rows[3];
    size_t                          saved, count;

    (void)state;
    if (!snd_yaml_works())
        skip();
    name_results("stay.yml");
    FILE *file = fopen(path, "w");
    assert_int_equal(fclose(file), 0); /* an empty file is as good as none */
    assert_int_equal(sonde_results_layers(path, &head, rows, 3, &count, &err), SONDE_OK);
    assert_int_equal(count, 0);
    file = fopen(path, "w");
    fputs("batch_size: 2\ndtype: torch.float32\nlayers: 3\nmodel_name: m\nprofile_data:\n"
          "- {layer: 3, memory: 1.0, mine: kept, shape_in: [[5]], shape_out: [[1]], time: 1.0}\n",
          file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(save("stay1", 1, "weights", path, &saved), SONDE_OK);
    assert_int_equal(save("stay2", 4, "weights", path, &saved), SONDE_OK); /* more samples now */
    assert_int_equal(sonde_results_layers(path, &head, rows, 3, &count, &err), SONDE_OK);
    assert_int_equal(count, 3);
    assert_int_equal(rows[0].runs, 4);
    assert_int_equal(rows[2].layer, 3);
    assert_int_equal(rows[2].runs, 0); /* another program's row does not say */
    struct snd_results *results = load();
    assert_true(snd_node_is_text(snd_node_get(snd_results_row(results, 2), "mine"), "kept"));
    snd_results_free(results);
}

static void what_is_refused(void **state)
{
    const struct sonde_results_head other = { sizeof other, "m", "torch.float32", 9, 3 };
    size_t                          saved, count;

    (void)state;
    if (!snd_yaml_works())
        skip();
    name_results("refused.yml");
    assert_int_equal(save("r1", 1, "rss", path, &saved), SONDE_E_FORMAT); /* layer 2 has none */
    assert_non_null(strstr(err.message, "layer 2"));
    assert_int_equal(saved, 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(save("r2", 1, "weights", path, NULL), SONDE_OK);
    assert_int_equal(sonde_results_layers(path, &other, NULL, 0, &count, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "batch_size"));
    assert_int_equal(save("r3", 1, "weights", "/nowhere/x.yml", &saved), SONDE_E_IO);
}

/* Rows measured another way would stand in one column with those that are there. */
static void other_kinds_of_rows_are_refused(void **state)
{
    static const struct {
        const char *memory, *says;
    } cases[] = { { "rss", "of memory weights, not rss" },
                  { "weights\npaired=1", "of borders single, not paired" },
                  { "weights\ndevice=cuda", "of device cpu, not cuda" } };
    size_t saved;

    (void)state;
    if (!snd_yaml_works())
        skip();
    name_results("kinds.yml");
    assert_int_equal(save("k", 1, "weights", path, &saved), SONDE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(save("k", 1, cases[i].memory, path, &saved), SONDE_E_STATE);
        assert_int_equal(saved, 0);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s", err.message);
    }
    assert_int_equal(save("k", 3, "weights", path, &saved), SONDE_OK);
    struct snd_results *results = load();
    assert_true(real_of(snd_results_row(results, 0), "count") == 3);
    snd_results_free(results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_extra_keys),
        cmocka_unit_test(other_rows_stay),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(other_kinds_of_rows_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
