/* SPDX-License-Identifier: Apache-2.0 */
/* Compares a buffer with the bytes that it should have, and empties it for the next ones. */
#ifndef SND_TEST_BUFBYTES_H
#define SND_TEST_BUFBYTES_H

#include "base/text/buf.h"
#include "scratch.h"

static inline void expect_bytes(struct sonde_buffer *buf, const void *bytes, size_t length)
{
    assert_false(buf->failed);
    assert_int_equal(buf->length, length);
    assert_memory_equal(buf->bytes, bytes, length);
    sonde_buffer_release(buf);
    *buf = (struct sonde_buffer){ 0 };
}
#define EXPECT(buf, text) expect_bytes(buf, text, sizeof(text) - 1)

#endif
