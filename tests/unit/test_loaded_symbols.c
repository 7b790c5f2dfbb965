/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of loaded files, read where they are mapped, are those that the loader finds. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/unwind/cfi.h"
#include "pystack/unwind/loaded_symbols.h"

static struct snd_loaded libc;

static int set_up(void **state)
{
    struct snd_cfi_object object;

    (void)state;
    if (!snd_cfi_init() || !snd_cfi_object((uint64_t)(uintptr_t)dlsym(RTLD_NEXT, "qsort"), &object))
        return 1;
    return snd_loaded_open(&libc, object.map) ? 0 : 1;
}

static void test_names_have_their_addresses(void **state)
{
    static const char *const names[] = { "qsort",  "strtoul", "fprintf",
                                         "getenv", "environ", "pthread_create" };
    Dl_info                  info;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint64_t size = 0, at = snd_loaded_find(&libc, names[i], &size);
        void    *wanted = dlsym(RTLD_NEXT, names[i]);
        if (dladdr(wanted, &info) == 0 || (uint64_t)(uintptr_t)info.dli_fbase != libc.base)
            continue; /* another file's: a sanitizer has its own, the executable a copy */
        assert_int_equal(at, (uintptr_t)wanted);
        assert_true(size > 0);
    }
    assert_int_equal(snd_loaded_find(&libc, "qsort_that_nobody_has", NULL), 0);
    assert_int_equal(snd_loaded_find(&libc, "", NULL), 0);
}

struct visited {
    uint32_t count, wrong;
    uint64_t strtoul_at;
};

static void visit(void *user, const char *name, uint64_t address, uint64_t size)
{
    struct visited *v = user;

    v->count++;
    v->wrong += address <= libc.base || size > 1 << 20;
    if (strcmp(name, "strtoul") == 0)
        v->strtoul_at = address;
}

static void test_all_functions_are_visited(void **state)
{
    struct visited v = { 0 };

    (void)state;
    snd_loaded_functions(&libc, visit, &v);
    assert_true(v.count > 1000 && v.wrong == 0);
    assert_int_equal(v.strtoul_at, snd_loaded_find(&libc, "strtoul", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_have_their_addresses),
        cmocka_unit_test(test_all_functions_are_visited),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
