/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/cases.h - the cases of `gen`, and what their files share.
 *
 * A new case: make_NAME() in the file of its family, a line in cases.def.
 */
#ifndef GEN_CASES_H
#define GEN_CASES_H

#include <stdbool.h>
#include <stdint.h>

struct synth;

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA0 SND_DEVICE(1, 0)

/* Writes the case to `path`; `n` is the N of the command, for the cases that it scales. */
#define CASE(name, summary) void make_##name(const char *path, uint64_t n);
#include "cases.def"
#undef CASE

/* The same by its name; USUAL_N: as large as the case is by default. False: there is no such case. */
#define USUAL_N UINT64_MAX
bool make_case(const char *name, const char *path, uint64_t n);
/* gen --list. */
void list_cases(void);

/* gen --dump: argv[1] says what. The exit status. */
int dump(int argc, char **argv);

/* A folder; one that is there already will do. */
void make_folder(const char *path);
/* A frame of Python code, at `line` of a function that begins at line `first`. */
uint32_t python_frame(struct synth *s, const char *name, uint32_t first, const char *file,
                      uint32_t line);

#endif
