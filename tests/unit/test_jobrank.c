/* SPDX-License-Identifier: Apache-2.0 */
/* Which process of a job this is: what record/options/environment.c, run_metadata.c and sonde_rank() write of it. */
#include "read/said/trace_metadata.h"
#include "recorded.h"
#include "sonde/probe.h"

static const char *const variables[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "TORCHELASTIC_RUN_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "PMI_JOBID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMIX_NAMESPACE",
};

/* With these variables and no others of a job, and these options; NULL: nothing is said. */
static void expect(const char *const *set, uint32_t rank, uint32_t world_size, const char *said)
{
    struct sonde_options options = recorded_options("rank.sonde");
    struct sonde_text    text;

    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    for (; set[0]; set += 2)
        setenv(set[0], set[1], 1);
    options.rank = rank;
    options.world_size = world_size;
    recorded_start(&options);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("rank.sonde");
    bool                found = snd_meta_find(trace, 0, SND_META_JOB_RANK, &text);
    assert_int_equal(found, said != NULL);
    if (said && (text.length != strlen(said) || memcmp(text.bytes, said, text.length) != 0))
        fail_msg("%.*s, not %s", (int)text.length, text.bytes, said);
    sonde_trace_close(trace);
    unlink(recorded_path("rank.sonde"));
}

#define SET(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NOT_SAID UINT32_MAX

static void launchers_say_it_by_variables(void **state)
{
    (void)state;
    expect(SET("RANK", "3", "WORLD_SIZE", "8", "LOCAL_RANK", "1", "TORCHELASTIC_RUN_ID", "run",
               "MASTER_ADDR", "host \"a\"\\", "MASTER_PORT", "29500"),
           NOT_SAID, NOT_SAID,
           "{\"rank\": 3, \"local_rank\": 1, \"world_size\": 8, \"source\": \"RANK\", "
           "\"job\": \"run host a 29500\"}");
    expect(SET("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "2",
               "OMPI_COMM_WORLD_LOCAL_RANK", "0", "PMIX_NAMESPACE", "n"),
           NOT_SAID, NOT_SAID,
           "{\"rank\": 0, \"local_rank\": 0, \"world_size\": 2, "
           "\"source\": \"OMPI_COMM_WORLD_RANK\", \"job\": \"n\"}");
    expect(SET("PMI_RANK", "5", "PMI_SIZE", "6", "MPI_LOCALRANKID", "2", "PMI_JOBID", "j"),
           NOT_SAID, NOT_SAID,
           "{\"rank\": 5, \"local_rank\": 2, \"world_size\": 6, \"source\": \"PMI_RANK\", "
           "\"job\": \"j\"}");
    expect(SET("SLURM_PROCID", "9", "SLURM_NTASKS", "10", "SLURM_LOCALID", "4", "SLURM_JOB_ID",
               "77", "SLURM_STEP_ID", "0"),
           NOT_SAID, NOT_SAID,
           "{\"rank\": 9, \"local_rank\": 4, \"world_size\": 10, \"source\": \"SLURM_PROCID\", "
           "\"job\": \"77 0\"}");
    /* the innermost launcher counts */
    expect(SET("RANK", "1", "SLURM_PROCID", "9", "SLURM_NTASKS", "10", "MASTER_PORT", "1"),
           NOT_SAID, NOT_SAID, "{\"rank\": 1, \"source\": \"RANK\", \"job\": \"1\"}");
}

static void what_is_no_number_says_nothing(void **state)
{
    (void)state;
    expect(SET("MASTER_ADDR", "host"), NOT_SAID, NOT_SAID, NULL);
    expect(SET("RANK", ""), NOT_SAID, NOT_SAID, NULL);
    expect(SET("RANK", "-1"), NOT_SAID, NOT_SAID, NULL);
    expect(SET("RANK", "1x"), NOT_SAID, NOT_SAID, NULL);
    expect(SET("RANK", ":"), NOT_SAID, NOT_SAID, NULL);
    expect(SET("RANK", "4294967295"), NOT_SAID, NOT_SAID, NULL);
    expect(SET("RANK", "4294967294", "WORLD_SIZE", "x"), NOT_SAID, NOT_SAID,
           "{\"rank\": 4294967294, \"source\": \"RANK\", \"job\": \"\"}");
}

static void options_go_before_variables(void **state)
{
    (void)state;
    expect(SET("RANK", "3", "WORLD_SIZE", "8", "LOCAL_RANK", "1"), 6, NOT_SAID,
           "{\"rank\": 6, \"local_rank\": 1, \"world_size\": 8, \"source\": \"options\", "
           "\"job\": \"\"}");
    expect(SET("MASTER_ADDR", "host", "MASTER_PORT", "5"), 6, 7,
           "{\"rank\": 6, \"world_size\": 7, \"source\": \"options\", \"job\": \"host 5\"}");
}

/* As torch.distributed does, in the middle of a recording. */
static void a_probe_may_say_it_later(void **state)
{
    struct sonde_options options = recorded_options("later.sonde");
    struct sonde_text    text;

    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    sonde_rank(9, 9, "nothing records", "no");
    recorded_start(&options);
    sonde_rank(2, 4, "torch.distributed", "gl\"oo");
    recorded_stop();
    struct sonde_trace *trace = recorded_open("later.sonde");
    assert_true(snd_meta_find(trace, 0, SND_META_JOB_RANK, &text));
    assert_int_equal(strncmp(text.bytes,
                             "{\"rank\": 2, \"world_size\": 4, \"source\": \"torch.distributed\", "
                             "\"job\": \"\", \"backend\": \"gloo\"}",
                             text.length),
                     0);
    assert_int_equal(sonde_trace_process(trace, 0)->rank, 2);
    assert_int_equal(sonde_trace_process(trace, 0)->world_size, 4);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_say_it_by_variables),
        cmocka_unit_test(what_is_no_number_says_nothing),
        cmocka_unit_test(options_go_before_variables),
        cmocka_unit_test(a_probe_may_say_it_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
