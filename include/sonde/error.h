/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/error.h - how calls report failure.
 *
 * Such a call returns enum sonde_status (0 is success) and takes, last, a
 * struct sonde_error that the caller owns and that may be NULL:
 *
 *     struct sonde_error err;
 *     if (sonde_start(&options, &err) != SONDE_OK)
 *         fprintf(stderr, "my program: %s\n", err.message);
 *
 * Threads: nothing here is shared between threads.
 */
#ifndef SONDE_ERROR_H
#define SONDE_ERROR_H

#if defined(__GNUC__)
#define SONDE_API __attribute__((visibility("default")))
#define SONDE_CHECKED __attribute__((warn_unused_result))
#define SONDE_PRINTF(place, first) __attribute__((__format__(__printf__, place, first)))
#else
#define SONDE_API
#define SONDE_CHECKED
#define SONDE_PRINTF(place, first)
#endif

/*
 * What C and C++ write differently: the headers compile without a warning of old casts or of 0 for a pointer.
 * In C a function may have the name of a struct; g++ takes it for one that hides a constructor.
 */
#ifdef __cplusplus
#define SONDE_C_BEGIN_                                                                       \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") extern "C" \
    {
#define SONDE_C_END_ \
    }                \
    _Pragma("GCC diagnostic pop")
#define SONDE_NULL_ nullptr
#define SONDE_CAST_(type, value) static_cast<type>(value)
#define SONDE_POINTER_(type, value) reinterpret_cast<type>(value)
#else
#define SONDE_C_BEGIN_
#define SONDE_C_END_
#define SONDE_NULL_ NULL
#define SONDE_CAST_(type, value) ((type)(value))
#define SONDE_POINTER_(type, value) ((type)(value))
#endif

SONDE_C_BEGIN_

/* One list gives code, name and meaning: X(name, value, text). */
#define SONDE_STATUS_MAP(X)                                       \
    X(OK, 0, "success")                                           \
    X(E_NOMEM, 1, "out of memory")                                \
    X(E_IO, 2, "input/output error")                              \
    X(E_ARGUMENT, 3, "invalid argument")                          \
    X(E_BUSY, 4, "already recording")                             \
    X(E_STATE, 5, "not possible in this state")                   \
    X(E_FORMAT, 6, "not a trace, or a damaged one")               \
    X(E_VERSION, 7, "written by a newer version")                 \
    X(E_UNSUPPORTED, 8, "not supported by this build or machine") \
    X(E_LIMIT, 9, "a limit was reached")

enum sonde_status {
#define SONDE_STATUS_ENUM_(name, value, text) SONDE_##name = value,
    SONDE_STATUS_MAP(SONDE_STATUS_ENUM_)
#undef SONDE_STATUS_ENUM_
};

#define SONDE_MESSAGE_MAX 512

struct sonde_error {
    enum sonde_status status;
    int               os_error;      /* errno at the failure, or 0 */
    char message[SONDE_MESSAGE_MAX]; /* what was tried, on what, why it failed, what to do */
};

/* The short meaning of a status, as in the list; "unknown status" for a value that is not. Static. */
SONDE_API const char *sonde_status_text(enum sonde_status status);

SONDE_C_END_
#endif
