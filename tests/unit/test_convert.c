/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PipeEdge's own files convert to is compared end to end; here are the cases, and every
 * allocation that fails once. Linked with --wrap for malloc, calloc and realloc.
 */
#include <dirent.h>

#include "failing_memory.h"
#include "base/text/buf.h"
#include "pipe/convert.h"
#include "pipe/yaml/value_types.h"
#include "pipe/yaml/yaml.h"
#include "scratch.h"

static struct sonde_error err;
static const char         results[] =
    "batch_size: 4\ndtype: torch.float32\nlayers: 2\nmodel_name: toy\nprofile_data:\n"
    "- {layer: 1, memory: 1.5, shape_in: [[3, 4]], shape_out: [[2, 5], [6]], time: 0.25}\n"
    "- {layer: 2, memory: 2, shape_in: [[2, 5], [6]], shape_out: [[]], time: 1.0e-05}\n";

static void needs_yaml(void)
{
    if (!snd_yaml_works())
        skip();
}

static void write_text(const char *name, const char *text)
{
    scratch_save(scratch_path(name), text, strlen(text));
}

static void expect_file(const char *name, const char *text)
{
    size_t   size;
    uint8_t *bytes = scratch_load(scratch_path(name), &size);

    bytes[size] = '\0';
    assert_string_equal((char *)bytes, text);
    free(bytes);
}

/* The options of a conversion of the results above to the file `name`. */
static struct snd_convert_options options_for(const char *name)
{
    static char input[256], output[256];

    write_text("results.yml", results);
    snprintf(input, sizeof input, "%s", scratch_path("results.yml"));
    snprintf(output, sizeof output, "%s", scratch_path(name));
    return (struct snd_convert_options){ input, output, false, "box", 100, 10 };
}

#define TOY_MODEL \
    "toy:\n  layers: 2\n  mem_MB: [1.5, 2]\n  parameters_in: 12\n  parameters_out: [16, 1]\n"

static void adds_a_model(void **state)
{
    static const char *const   empty[] = { "", "{}\n", "# nothing yet\n", "---\n" };
    struct snd_convert_options options = options_for("models.yml");

    (void)state;
    needs_yaml();
    assert_int_equal(snd_convert_models(&options, NULL, &err), SONDE_OK);
    expect_file("models.yml", TOY_MODEL);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        write_text("models.yml", empty[i]);
        assert_int_equal(snd_convert_models(&options, NULL, &err), SONDE_OK);
        expect_file("models.yml", TOY_MODEL);
    }
    write_text("models.yml", "a: {x: [0x10]}\nz: 1\n");
    assert_int_equal(snd_convert_models(&options, NULL, &err), SONDE_OK);
    expect_file("models.yml", "a:\n  x: [0x10]\n" TOY_MODEL "z: 1\n");
}

static void replaces_only_when_told(void **state)
{
    struct snd_convert_options options = options_for("models.yml");
    struct sonde_buffer        notes = { 0 };

    (void)state;
    needs_yaml();
    write_text("models.yml", "toy: {layers: 9}\n");
    assert_int_equal(snd_convert_models(&options, &notes, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "already has the model toy; replace it with -f"));
    expect_file("models.yml", "toy: {layers: 9}\n");
    options.overwrite = true;
    assert_int_equal(snd_convert_models(&options, &notes, &err), SONDE_OK);
    assert_non_null(strstr(notes.bytes, "is replaced"));
    expect_file("models.yml", TOY_MODEL);
    sonde_buffer_release(&notes);
}

static void keeps_other_profiles(void **state)
{
    struct snd_convert_options options = options_for("types.yml");

    (void)state;
    needs_yaml();
    write_text("types.yml",
               "box:\n  bw_Mbps: 10.0\n  mem_MB: 100\n  extra: 1\n  model_profiles:\n"
               "    toy:\n    - {batch_size: 8, dtype: torch.float32, time_s: [1, 2], seen: yes}\n"
               "    - {batch_size: 4, dtype: torch.float16, time_s: [3, 4]}\n");
    assert_int_equal(snd_convert_device_types(&options, NULL, &err), SONDE_OK);
    expect_file("types.yml",
                "box:\n  bw_Mbps: 10.0\n  extra: 1\n  mem_MB: 100\n  model_profiles:\n    toy:\n"
                "    - batch_size: 8\n      dtype: torch.float32\n      seen: yes\n"
                "      time_s: [1, 2]\n"
                "    - batch_size: 4\n      dtype: torch.float16\n      time_s: [3, 4]\n"
                "    - batch_size: 4\n      dtype: torch.float32\n"
                "      time_s: [0.25, 1.0e-05]\n");
    assert_int_equal(snd_convert_device_types(&options, NULL, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "batch size 4 already; replace it with -f"));
}

static void fills_a_type_without_profiles(void **state)
{
    static const char *const   before[] = { "box: {bw_Mbps: 10, mem_MB: 100}\n",
                                            "box: {bw_Mbps: 10, mem_MB: 100, model_profiles: }\n",
                                            "box: {bw_Mbps: 10, mem_MB: 100, model_profiles: {}}\n" };
    struct snd_convert_options options = options_for("types.yml");

    (void)state;
    needs_yaml();
    options.memory_mb = options.bandwidth_mbps = -1;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        write_text("types.yml", before[i]);
        if (snd_convert_device_types(&options, NULL, &err) != SONDE_OK)
            fail_msg("%s", err.message);
        expect_file("types.yml", "box:\n  bw_Mbps: 10\n  mem_MB: 100\n  model_profiles:\n    toy:\n"
                                 "    - batch_size: 4\n      dtype: torch.float32\n"
                                 "      time_s: [0.25, 1.0e-05]\n");
    }
}

static void refuses_types_that_do_not_fit(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "box: {bw_Mbps: 11, mem_MB: 100}\n", "has bw_Mbps 11, not 10" },
        { "box: {bw_Mbps: 10, mem_MB: 99}\n", "has mem_MB 99, not 100" },
        { "box: {bw_Mbps: 10}\n", "mem_MB of the device type box is missing" },
        { "box: 3\n", "the device type box is the number '3', not a map" },
        { "box: {bw_Mbps: 10, mem_MB: 100, model_profiles: [1]}\n", "not a map of lists" },
        { "box: {bw_Mbps: 10, mem_MB: 100, model_profiles: {toy: 1}}\n", "not a map of lists" },
        { "- 1\n", "expected a map, got a list" },
        { "box: {\n", "not YAML" },
    };
    struct snd_convert_options options = options_for("types.yml");

    (void)state;
    needs_yaml();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("types.yml", cases[i].text);
        assert_int_not_equal(snd_convert_device_types(&options, NULL, &err), SONDE_OK);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s", err.message);
        expect_file("types.yml", cases[i].text);
    }
}

static void says_what_is_odd(void **state)
{
    struct snd_convert_options options = options_for("odd.yml");
    struct sonde_buffer        notes = { 0 };

    (void)state;
    needs_yaml();
    write_text("results.yml",
               "batch_size: 4\ndtype: torch.int64\nlayers: 1\nmodel_name: bert-base-uncased\n"
               "profile_data:\n- {layer: 1, memory: -1, shape_in: [], shape_out: [], time: 0}\n");
    assert_int_equal(snd_convert_device_types(&options, &notes, &err), SONDE_OK);
    assert_non_null(strstr(notes.bytes, "bert-base-uncased has 1 layers here; PipeEdge cuts it "
                                        "into 48"));
    assert_non_null(strstr(notes.bytes, "dtype torch.int64, which is not a parameter type"));
    assert_non_null(strstr(notes.bytes, "unused but invalid"));
    assert_int_equal(snd_convert_models(&options, &notes, &err), SONDE_E_FORMAT);
    sonde_buffer_release(&notes);
    assert_int_equal(snd_value_bytes("torch.bfloat16"), 2);
    assert_int_equal(snd_value_bytes("torch.int64"), 0);
}

static int count_files(void)
{
    DIR *dir = opendir(scratch_folder);
    int  count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void survives_each_failing_allocation(void **state)
{
    static const char old[] = "box: {bw_Mbps: 10, mem_MB: 100, model_profiles: {a: [1]}}\n";
    struct snd_convert_options options = options_for("types.yml");
    long                       n = 0;
    enum sonde_status          status;

    (void)state;
    needs_yaml();
    write_text("types.yml", old);
    int files = count_files();
    do {
        allocations_left = n++;
        status = snd_convert_device_types(&options, NULL, &err);
        bool ran_out = allocations_left < 0;
        allocations_left = -1;
        if (status == SONDE_OK && ran_out)
            continue; /* it failed where the work goes on without */
        if (status != SONDE_OK) {
            assert_int_equal(status, SONDE_E_NOMEM);
            expect_file("types.yml", old);
        }
        assert_int_equal(count_files(), files);
        if (status == SONDE_OK)
            break;
    } while (n < 1000);
    assert_int_equal(status, SONDE_OK);
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_a_model),
        cmocka_unit_test(replaces_only_when_told),
        cmocka_unit_test(keeps_other_profiles),
        cmocka_unit_test(fills_a_type_without_profiles),
        cmocka_unit_test(refuses_types_that_do_not_fit),
        cmocka_unit_test(says_what_is_odd),
        cmocka_unit_test(survives_each_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
