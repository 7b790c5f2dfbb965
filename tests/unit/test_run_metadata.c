/* SPDX-License-Identifier: Apache-2.0 */
/* record/options/environment.c and tables/run_metadata.c: which process of a job this is, from what launchers say of it. */
#include "base/count_of.h"
#include "unit/recorded.h"

struct variable {
    const char *name, *value;
};

static const char *const cleared[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "TORCHELASTIC_RUN_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMIX_NAMESPACE",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "PMI_JOBID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
};

static bool find_rank(const struct sonde_trace *trace, struct sonde_text *value)
{
    struct sonde_text key;

    for (uint32_t i = 0; sonde_trace_metadata(trace, 0, i, &key, value); i++)
        if (strcmp(key.bytes, "job.rank") == 0)
            return true;
    return false;
}

/* Records in this environment; `given`: a rank of the options. *said gets what the trace has of it, "" if nothing. */
static struct sonde_process record_in(const struct variable *variables, size_t count,
                                      uint32_t given, char said[600])
{
    struct sonde_options options = recorded_options("rank.sonde");
    struct sonde_text    value;

    for (size_t i = 0; i < SND_COUNT_OF(cleared); i++)
        unsetenv(cleared[i]);
    for (size_t i = 0; i < count && variables[i].name; i++)
        assert_int_equal(setenv(variables[i].name, variables[i].value, 1), 0);
    options.rank = given;
    options.world_size = given == UINT32_MAX ? UINT32_MAX : 99;
    recorded_start(&options);
    sonde_mark("here");
    recorded_stop();
    struct sonde_trace  *trace = recorded_open("rank.sonde");
    struct sonde_process process = *sonde_trace_process(trace, 0);
    said[0] = '\0';
    if (find_rank(trace, &value))
        snprintf(said, 600, "%.*s", (int)value.length, value.bytes);
    sonde_trace_close(trace);
    return process;
}

static void test_launchers(void **state)
{
    static const struct {
        struct variable variables[7];
        uint32_t        given;
        const char     *said;
    } cases[] = {
        { { { NULL, NULL } }, UINT32_MAX, "" },
        { { { "RANK", "3" },
            { "WORLD_SIZE", "8" },
            { "LOCAL_RANK", "1" },
            { "MASTER_ADDR", "node" } },
          UINT32_MAX,
          "{\"rank\": 3, \"local_rank\": 1, \"world_size\": 8, \"source\": \"RANK\", \"job\": "
          "\"node\"}" },
        { { { "RANK", "0" },
            { "TORCHELASTIC_RUN_ID", "run" },
            { "MASTER_ADDR", "node" },
            { "MASTER_PORT", "29500" } },
          UINT32_MAX,
          "{\"rank\": 0, \"source\": \"RANK\", \"job\": \"run node 29500\"}" },
        /* what is no number says nothing */
        { { { "RANK", "x" }, { "WORLD_SIZE", "8" } }, UINT32_MAX, "" },
        { { { "RANK", "" } }, UINT32_MAX, "" },
        { { { "RANK", "-1" } }, UINT32_MAX, "" },
        { { { "RANK", "1x" } }, UINT32_MAX, "" },
        { { { "RANK", "4294967295" } }, UINT32_MAX, "" },
        { { { "RANK", "4294967294" }, { "WORLD_SIZE", "9 " } },
          UINT32_MAX,
          "{\"rank\": 4294967294, \"source\": \"RANK\", \"job\": \"\"}" },
        /* the innermost launcher holds */
        { { { "SLURM_PROCID", "5" },
            { "SLURM_NTASKS", "6" },
            { "SLURM_LOCALID", "0" },
            { "SLURM_JOB_ID", "77" },
            { "SLURM_STEP_ID", "2" } },
          UINT32_MAX,
          "{\"rank\": 5, \"local_rank\": 0, \"world_size\": 6, \"source\": \"SLURM_PROCID\", "
          "\"job\": "
          "\"77 2\"}" },
        { { { "SLURM_PROCID", "5" },
            { "SLURM_NTASKS", "6" },
            { "RANK", "9" },
            { "WORLD_SIZE", "10" } },
          UINT32_MAX,
          "{\"rank\": 9, \"world_size\": 10, \"source\": \"RANK\", \"job\": \"\"}" },
        { { { "OMPI_COMM_WORLD_RANK", "1" },
            { "OMPI_COMM_WORLD_SIZE", "2" },
            { "OMPI_COMM_WORLD_LOCAL_RANK", "0" },
            { "PMIX_NAMESPACE", "ns" },
            { "PMI_RANK", "4" } },
          UINT32_MAX,
          "{\"rank\": 1, \"local_rank\": 0, \"world_size\": 2, \"source\": "
          "\"OMPI_COMM_WORLD_RANK\", "
          "\"job\": \"ns\"}" },
        { { { "PMI_RANK", "4" },
            { "PMI_SIZE", "5" },
            { "MPI_LOCALRANKID", "3" },
            { "PMI_JOBID", "id" } },
          UINT32_MAX,
          "{\"rank\": 4, \"local_rank\": 3, \"world_size\": 5, \"source\": \"PMI_RANK\", \"job\": "
          "\"id\"}" },
        /* the options' own come first; a job's name is plain text */
        { { { NULL, NULL } },
          7,
          "{\"rank\": 7, \"world_size\": 99, \"source\": \"options\", \"job\": \"\"}" },
        { { { "RANK", "3" }, { "WORLD_SIZE", "8" }, { "LOCAL_RANK", "1" } },
          7,
          "{\"rank\": 7, \"local_rank\": 1, \"world_size\": 99, \"source\": \"options\", \"job\": "
          "\"\"}" },
        { { { "MASTER_ADDR", "a\"b\\c\nd\x7f~ e" } },
          7,
          "{\"rank\": 7, \"world_size\": 99, \"source\": \"options\", \"job\": \"abcd~ e\"}" },
    };
    char said[600];

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        struct sonde_process p = record_in(cases[i].variables, SND_COUNT_OF(cases[i].variables),
                                           cases[i].given, said);
        assert_string_equal(said, cases[i].said);
        assert_int_equal(p.rank == SONDE_NONE, said[0] == '\0');
    }
    struct sonde_process p = record_in(cases[1].variables, 4, UINT32_MAX, said);
    assert_int_equal(p.rank, 3);
    assert_int_equal(p.world_size, 8);
    assert_int_equal(p.local_rank, 1);
}

/* A name that is longer than there is room for is cut, and still ends. */
static void test_long_names(void **state)
{
    char            name[1000], said[600];
    struct variable variables[2] = { { "RANK", "1" }, { "MASTER_ADDR", name } };

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    record_in(variables, 2, UINT32_MAX, said);
    assert_memory_equal(said, "{\"rank\": 1, \"source\": \"RANK\", \"job\": \"nnnn", 41);
    assert_string_equal(said + strlen(said) - 3, "n\"}");
}

/* What becomes known in the middle of a recording replaces what was. */
static void test_told_later(void **state)
{
    struct sonde_options options = recorded_options("later.sonde");
    struct sonde_text    value;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cleared); i++)
        unsetenv(cleared[i]);
    sonde_rank(1, 2, "early", "none"); /* nothing records */
    recorded_start(&options);
    sonde_rank(5, 6, "torch.distributed", "gl\"oo");
    sonde_mark("here");
    recorded_stop();
    struct sonde_trace *trace = recorded_open("later.sonde");
    assert_true(find_rank(trace, &value));
    assert_string_equal(value.bytes,
                        "{\"rank\": 5, \"world_size\": 6, \"source\": \"torch.distributed\", "
                        "\"job\": \"\", \"backend\": \"gloo\"}");
    assert_int_equal(sonde_trace_process(trace, 0)->rank, 5);
    assert_int_equal(sonde_trace_process(trace, 0)->world_size, 6);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_told_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
