/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/results.c: profiler_results.yml read, checked and written. */
#include "base/text/buf.h"
#include "pipe/results.h"
#include "pipe/yaml/yaml.h"
#include "scratch.h"

static struct sonde_error            err;
static const struct snd_results_head toy = { "toy", "torch.float32", 2, 3 };

static void needs_yaml(void **state)
{
    (void)state;
    if (!snd_yaml_works())
        skip();
}

static struct snd_results *open_results(const char *path, const struct snd_results_head *head)
{
    struct snd_results *results;

    if (snd_results_open(path, head, &results, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    return results;
}

/* One tensor in, one out. */
static struct snd_node *make_row(struct snd_results *results, int64_t layer, int64_t in,
                                 int64_t out, double time_s)
{
    struct snd_document *doc = snd_results_doc(results);
    struct snd_node     *row = snd_node_map(doc), *shape_in = snd_node_list(doc),
                    *shape_out = snd_node_list(doc);

    snd_node_add(doc, shape_in, snd_node_ints(doc, &in, 1));
    snd_node_add(doc, shape_out, snd_node_ints(doc, &out, 1));
    snd_node_set(doc, row, "layer", snd_node_int(doc, layer));
    snd_node_set(doc, row, "memory", snd_node_real(doc, 1.5));
    snd_node_set(doc, row, "shape_in", shape_in);
    snd_node_set(doc, row, "shape_out", shape_out);
    snd_node_set(doc, row, "time", snd_node_real(doc, time_s));
    return row;
}

static void add_row(struct snd_results *results, int64_t layer, int64_t in, int64_t out)
{
    if (snd_results_put(results, make_row(results, layer, in, out, 1e-5), &err) != SONDE_OK)
        fail_msg("%s", err.message);
}

static void expect_file(const char *path, const char *text)
{
    size_t   size;
    uint8_t *bytes = scratch_load(path, &size);

    bytes[size] = '\0';
    assert_string_equal((char *)bytes, text);
    free(bytes);
}

static void write_text(const char *path, const char *text)
{
    scratch_save(path, text, strlen(text));
}

#define HEAD "batch_size: 2\ndtype: torch.float32\nlayers: 3\nmodel_name: toy\nprofile_data:\n"
#define ROW(layer, in, out)                                                                 \
    "- layer: " layer "\n  memory: 1.5\n  shape_in:\n  - [" in "]\n  shape_out:\n  - [" out \
    "]\n  time: 1.0e-05\n"

/* Layer by layer, each saved, and gone on with in another process. */
static void grows_layer_by_layer(void **state)
{
    const char *path = scratch_path("grows.yml");

    needs_yaml(state);
    struct snd_results *results = open_results(path, &toy);
    assert_int_equal(snd_results_count(results), 0);
    add_row(results, 3, 7, 8);
    assert_int_equal(snd_results_save(results, &err), SONDE_OK);
    snd_results_free(results);
    results = open_results(path, &toy);
    assert_int_equal(snd_results_count(results), 1);
    assert_int_equal(snd_row_layer(snd_results_row(results, 0)), 3);
    add_row(results, 1, 5, 6);
    assert_int_equal(snd_results_save(results, &err), SONDE_OK);
    snd_results_free(results);
    expect_file(path, HEAD ROW("1", "5", "6") ROW("3", "7", "8"));
}

static void goes_on_from_a_file_without_rows(void **state)
{
    static const char *const texts[] = {
        "", "{}\n",
        "batch_size: 2\ndtype: torch.float32\nlayers: 3\nmodel_name: toy\nprofile_data: []\n"
    };
    const char *path = scratch_path("norows.yml");

    needs_yaml(state);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_text(path, texts[i]);
        struct snd_results *results = open_results(path, &toy);
        add_row(results, 2, 6, 7);
        assert_int_equal(snd_results_save(results, &err), SONDE_OK);
        snd_results_free(results);
        expect_file(path, HEAD ROW("2", "6", "7"));
    }
}

static void keeps_keys_it_does_not_know(void **state)
{
    const char *path = scratch_path("extra.yml");

    needs_yaml(state);
    write_text(path, "environment: {cpu: x}\n" HEAD "- {layer: 2, memory: 1, shape_in: [[6]], "
                     "shape_out: [[7]], time: 0.5, note: [a, b]}\n");
    struct snd_results *results = open_results(path, &toy);
    add_row(results, 1, 5, 6);
    struct snd_document *doc = snd_results_doc(results);
    assert_int_equal(snd_results_set(results, "host", snd_node_text(doc, "here"), &err), SONDE_OK);
    assert_int_equal(snd_results_set(results, "layers", snd_node_int(doc, 9), &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_save(results, &err), SONDE_OK);
    snd_results_free(results);
    expect_file(path,
                "batch_size: 2\ndtype: torch.float32\nenvironment: {cpu: x}\nhost: here\n"
                "layers: 3\nmodel_name: toy\nprofile_data:\n" ROW(
                    "1", "5", "6") "- layer: 2\n  memory: 1\n  note: [a, b]\n  shape_in:\n  - [6]\n"
                                   "  shape_out:\n  - [7]\n  time: 0.5\n");
}

static void refuses_results_of_another_thing(void **state)
{
    static const struct {
        struct snd_results_head head;
        const char             *says;
    } cases[] = {
        { { "other", "torch.float32", 2, 3 }, "model_name toy, not other" },
        { { "toy", "torch.float16", 2, 3 }, "dtype torch.float32, not torch.float16" },
        { { "toy", "torch.float32", 4, 3 }, "batch_size 2, not 4" },
        { { "toy", "torch.float32", 2, 4 }, "a model of 3 layers, not 4" },
    };
    const char *path = scratch_path("toy.yml");

    needs_yaml(state);
    write_text(path, HEAD ROW("1", "5", "6"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_results *results;
        assert_int_equal(snd_results_open(path, &cases[i].head, &results, &err), SONDE_E_STATE);
        assert_null(results);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s", err.message);
    }
    expect_file(path, HEAD ROW("1", "5", "6"));
}

static void refuses_rows_that_cannot_be(void **state)
{
    needs_yaml(state);
    struct snd_results  *results = open_results(scratch_path("rows.yml"), &toy);
    struct snd_document *doc = snd_results_doc(results);

    add_row(results, 1, 5, 6);
    assert_int_equal(snd_results_put(results, make_row(results, 1, 5, 6, 2), &err), SONDE_OK);
    assert_int_equal(snd_results_count(results), 1);
    assert_int_equal(snd_results_put(results, make_row(results, 4, 5, 6, 1), &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_put(results, make_row(results, 0, 5, 6, 1), &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_put(results, make_row(results, 2, -5, 6, 1), &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_put(results, make_row(results, 2, 5, 6, -1), &err),
                     SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_put(results, make_row(results, 2, 5, 6, 0.0 / 0.0), &err),
                     SONDE_E_ARGUMENT);
    struct snd_node *row = make_row(results, 2, 5, 6, 1);
    snd_node_set(doc, row, "shape_in", snd_node_text(doc, "[5]"));
    assert_int_equal(snd_results_put(results, row, &err), SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_put(results, snd_node_map(doc), &err), SONDE_E_ARGUMENT);
    assert_non_null(strstr(err.message, "has no layer"));
    assert_int_equal(snd_results_put(results, snd_node_text(doc, "x"), &err), SONDE_E_ARGUMENT);
    assert_int_equal(snd_results_count(results), 1);
    snd_results_free(results);
}

static void refuses_damaged_files(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "toy: 1\n", "has no batch_size: not a results file" },
        { "batch_size: 0\n", "batch_size is the number '0', not an integer >= 1" },
        { "batch_size: 2\ndtype: 3\n", "dtype is the number '3', not a string" },
        { HEAD, "profile_data is nothing, not a list of rows" },
        { HEAD "- 5\n", "expected a map as row, got the number '5'" },
        { HEAD ROW("1", "5", "6") ROW("1", "5", "6"), "duplicate layer 1" },
        { HEAD "- {layer: 1, memory: 1, shape_in: [[a]], shape_out: [[1]], time: 1}\n",
          "shape_in is a list, not a list of shapes" },
        { HEAD "- {layer: 1, memory: 1, shape_in: [[1]], shape_out: [[9999999999, 9999999999]], "
               "time: 1}\n",
          "a number of elements below 2^63" },
        { HEAD "- {layer: 1, memory: 1, shape_in: [[1]], shape_out: [[1]], time: 1e-05}\n",
          "time is the text '1e-05', not a number >= 0; YAML 1.1 takes it for text" },
        { HEAD "- {layer: 1, memory: .inf, shape_in: [[1]], shape_out: [[1]], time: 1}\n",
          "memory is the number '.inf', not a number >= 0" },
    };
    const char *path = scratch_path("damaged.yml");

    needs_yaml(state);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_results *results;
        write_text(path, cases[i].text);
        assert_int_equal(snd_results_open(path, &toy, &results, &err), SONDE_E_FORMAT);
        assert_null(results);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s", err.message);
        expect_file(path, cases[i].text);
    }
}

static void refuses_a_head_that_cannot_be(void **state)
{
    static const struct snd_results_head heads[] = {
        { "", "torch.float32", 1, 1 },
        { "x", "", 1, 1 },
        { "x", "torch.float32", 0, 1 },
        { "x", "torch.float32", 1, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct snd_results *results;
        assert_int_equal(snd_results_open(scratch_path("head.yml"), &heads[i], &results, &err),
                         SONDE_E_ARGUMENT);
    }
}

static enum sonde_status check_text(const char *text)
{
    struct snd_results *results;
    const char         *path = scratch_path("whole.yml");

    write_text(path, text);
    if (snd_results_load(path, &results, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    enum sonde_status status = snd_results_check_whole(results, &err);
    snd_results_free(results);
    return status;
}

static void knows_whole_results(void **state)
{
    needs_yaml(state);
    assert_int_equal(check_text(HEAD ROW("1", "5", "6") ROW("2", "6", "7") ROW("3", "7", "8")),
                     SONDE_OK);
    assert_int_equal(check_text(HEAD ROW("1", "5", "6") ROW("2", "6", "7")), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "declares 3 layers and has 2 rows"));
    assert_int_equal(check_text(HEAD ROW("1", "5", "6") ROW("2", "6", "7") ROW("2", "7", "8")),
                     SONDE_E_FORMAT);
    assert_non_null(strstr(err.message, "duplicate layer 2"));
    assert_int_equal(check_text(HEAD ROW("2", "5", "6") ROW("1", "6", "7") ROW("3", "7", "8")),
                     SONDE_E_FORMAT);
    assert_non_null(strstr(err.message, "row 1 is layer 2; layers must be in order, from 1"));
    assert_int_equal(check_text(HEAD ROW("1", "5", "6") ROW("2", "6", "7") ROW("3", "9", "8")),
                     SONDE_E_FORMAT);
    assert_non_null(strstr(err.message, "shape_in of layer 3 is not shape_out of layer 2"));
}

static void knows_pipeedges_models(void **state)
{
    (void)state;
    assert_int_equal(snd_known_layers("google/vit-huge-patch14-224-in21k"), 128);
    assert_int_equal(snd_known_layers("toy"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_layer_by_layer),
        cmocka_unit_test(goes_on_from_a_file_without_rows),
        cmocka_unit_test(keeps_keys_it_does_not_know),
        cmocka_unit_test(refuses_results_of_another_thing),
        cmocka_unit_test(refuses_rows_that_cannot_be),
        cmocka_unit_test(refuses_damaged_files),
        cmocka_unit_test(refuses_a_head_that_cannot_be),
        cmocka_unit_test(knows_whole_results),
        cmocka_unit_test(knows_pipeedges_models),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
