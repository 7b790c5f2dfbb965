/* SPDX-License-Identifier: Apache-2.0 */
/* The environment by which `sonde run` has a program load a probe's library. */
#include <sys/stat.h>

#include "cli/run/run_library.h"
#include "scratch.h"

#define PRELOAD "LD_PRELOAD"
#define OTHER "TOY_INJECTION_PATH"

static const struct snd_run_library preloaded = { "toy", PRELOAD, "toys" };
static const struct snd_run_library injected = { "toy", OTHER, "toys" };

/* A package in the folder, with the toy's library; its path. */
static const char *make_package(const char *folder)
{
    static char path[256];

    snprintf(path, sizeof path, "%s", scratch_path(folder));
    mkdir(path, 0777);
    assert_int_equal(setenv("SONDE_PYTHON", path, 1), 0);
    strcat(path, "/_native");
    mkdir(path, 0777);
    strcat(path, "/probe_toy.so");
    scratch_save(path, "", 0);
    return path;
}

static void set(const struct snd_run_library *library)
{
    struct sonde_error err = { SONDE_OK, 0, "" };

    if (snd_run_library_set(library, &err) != SONDE_OK)
        fail_msg("%s", err.message);
}

static void refuse(const struct snd_run_library *library, const char *message)
{
    struct sonde_error err = { SONDE_OK, 0, "" };

    assert_int_equal(snd_run_library_set(library, &err), SONDE_E_STATE);
    assert_string_equal(err.message, message);
}

static int clear(void **state)
{
    (void)state;
    unsetenv(PRELOAD);
    unsetenv(OTHER);
    return 0;
}

static void test_a_library_is_put_before_others(void **state)
{
    const char *path = make_package("package");
    char        expected[512];

    (void)state;
    setenv(PRELOAD, "/a.so /b.so", 1);
    set(&preloaded);
    snprintf(expected, sizeof expected, "%s:/a.so /b.so", path);
    assert_string_equal(getenv(PRELOAD), expected);
    snd_run_library_clear(&preloaded);
    assert_string_equal(getenv(PRELOAD), "/a.so:/b.so");
    set(&injected);
    assert_string_equal(getenv(OTHER), path);
    snd_run_library_clear(&injected);
    assert_null(getenv(OTHER));
}

/* `sonde run` in a program that `sonde run` runs. */
static void test_a_run_in_a_run_replaces_its_library(void **state)
{
    const char *path;

    (void)state;
    make_package("outer");
    set(&preloaded);
    set(&injected);
    path = make_package("inner");
    set(&preloaded);
    set(&injected);
    assert_string_equal(getenv(PRELOAD), path);
    assert_string_equal(getenv(OTHER), path);
}

static void test_what_others_set_stays(void **state)
{
    (void)state;
    make_package("package");
    setenv(OTHER, "/opt/other.so", 1);
    refuse(&injected, "cannot record toys: " OTHER " is set already, to /opt/other.so; unset it");
    snd_run_library_clear(&injected);
    assert_string_equal(getenv(OTHER), "/opt/other.so");
}

static void test_a_path_that_the_loader_would_split_is_refused(void **state)
{
    const char *path = make_package("a folder");
    char        message[512];

    (void)state;
    snprintf(message, sizeof message,
             "cannot record toys: %s: LD_PRELOAD takes no path with a space or a colon; install "
             "sonde elsewhere",
             path);
    refuse(&preloaded, message);
    assert_null(getenv(PRELOAD));
    set(&injected); /* one path, whatever is in it */
    assert_string_equal(getenv(OTHER), path);
}

static void test_a_library_that_is_not_installed(void **state)
{
    (void)state;
    setenv("SONDE_PYTHON", scratch_path("nowhere"), 1);
    refuse(&injected,
           "cannot record toys: sonde/_native/probe_toy.so is not installed; install sonde "
           "(pip install sonde), or set SONDE_PYTHON to the folder of its Python package");
}

/* Each process of the program finds it, whatever folder it works in. */
static void test_a_relative_package_becomes_absolute(void **state)
{
    const char *path = make_package("package");

    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    setenv("SONDE_PYTHON", "package", 1);
    set(&injected);
    assert_string_equal(getenv(OTHER), path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_library_is_put_before_others, clear),
        cmocka_unit_test_setup(test_a_run_in_a_run_replaces_its_library, clear),
        cmocka_unit_test_setup(test_what_others_set_stays, clear),
        cmocka_unit_test_setup(test_a_path_that_the_loader_would_split_is_refused, clear),
        cmocka_unit_test_setup(test_a_library_that_is_not_installed, clear),
        cmocka_unit_test_setup(test_a_relative_package_becomes_absolute, clear),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
