/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/dtypes.h - the types of tensors' elements. record.h includes it.
 *
 * One list has all that is known of each: X(number, NAME, name, cxx, bytes, kind). `number` is torch's ScalarType
 * and what a trace has, for ever; `name` is torch's in Python (torch.NAME), `cxx` what torch.profiler prints;
 * `bytes` is what an element takes in a tensor. `kind` is how a type takes part in type promotion: BOOL, INTEGER,
 * FLOAT, COMPLEX, or OTHER, which does not.
 */
#ifndef SONDE_DTYPES_H
#define SONDE_DTYPES_H

/* clang-format off */
#define SONDE_DTYPES(X) \
    X(0, UINT8, "uint8", "unsigned char", 1, INTEGER)                               \
    X(1, INT8, "int8", "signed char", 1, INTEGER)                                   \
    X(2, INT16, "int16", "short int", 2, INTEGER)                                   \
    X(3, INT32, "int32", "int", 4, INTEGER)                                         \
    X(4, INT64, "int64", "long int", 8, INTEGER)                                    \
    X(5, FLOAT16, "float16", "c10::Half", 2, FLOAT)                                 \
    X(6, FLOAT32, "float32", "float", 4, FLOAT)                                     \
    X(7, FLOAT64, "float64", "double", 8, FLOAT)                                    \
    X(8, COMPLEX32, "complex32", "c10::complex<c10::Half>", 4, COMPLEX)             \
    X(9, COMPLEX64, "complex64", "c10::complex<float>", 8, COMPLEX)                 \
    X(10, COMPLEX128, "complex128", "c10::complex<double>", 16, COMPLEX)            \
    X(11, BOOL, "bool", "bool", 1, BOOL)                                            \
    X(12, QINT8, "qint8", "c10::qint8", 1, OTHER)                                   \
    X(13, QUINT8, "quint8", "c10::quint8", 1, OTHER)                                \
    X(14, QINT32, "qint32", "c10::qint32", 4, OTHER)                                \
    X(15, BFLOAT16, "bfloat16", "c10::BFloat16", 2, FLOAT)                          \
    X(16, QUINT4X2, "quint4x2", "c10::quint4x2", 1, OTHER)                          \
    X(17, QUINT2X4, "quint2x4", "c10::quint2x4", 1, OTHER)                          \
    X(18, BITS1X8, "bits1x8", "c10::bits1x8", 1, OTHER)                             \
    X(19, BITS2X4, "bits2x4", "c10::bits2x4", 1, OTHER)                             \
    X(20, BITS4X2, "bits4x2", "c10::bits4x2", 1, OTHER)                             \
    X(21, BITS8, "bits8", "c10::bits8", 1, OTHER)                                   \
    X(22, BITS16, "bits16", "c10::bits16", 2, OTHER)                                \
    X(23, FLOAT8_E5M2, "float8_e5m2", "c10::Float8_e5m2", 1, FLOAT)                 \
    X(24, FLOAT8_E4M3FN, "float8_e4m3fn", "c10::Float8_e4m3fn", 1, FLOAT)           \
    X(25, FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", "c10::Float8_e5m2fnuz", 1, FLOAT)     \
    X(26, FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", "c10::Float8_e4m3fnuz", 1, FLOAT)     \
    X(27, UINT16, "uint16", "short unsigned int", 2, INTEGER)                       \
    X(28, UINT32, "uint32", "unsigned int", 4, INTEGER)                             \
    X(29, UINT64, "uint64", "long unsigned int", 8, INTEGER)                        \
    X(30, UINT1, "uint1", "c10::dummy_uint1_7_t<1>", 1, OTHER)                      \
    X(31, UINT2, "uint2", "c10::dummy_uint1_7_t<2>", 1, OTHER)                      \
    X(32, UINT3, "uint3", "c10::dummy_uint1_7_t<3>", 1, OTHER)                      \
    X(33, UINT4, "uint4", "c10::dummy_uint1_7_t<4>", 1, OTHER)                      \
    X(34, UINT5, "uint5", "c10::dummy_uint1_7_t<5>", 1, OTHER)                      \
    X(35, UINT6, "uint6", "c10::dummy_uint1_7_t<6>", 1, OTHER)                      \
    X(36, UINT7, "uint7", "c10::dummy_uint1_7_t<7>", 1, OTHER)                      \
    X(37, INT1, "int1", "c10::dummy_int1_7_t<1>", 1, OTHER)                         \
    X(38, INT2, "int2", "c10::dummy_int1_7_t<2>", 1, OTHER)                         \
    X(39, INT3, "int3", "c10::dummy_int1_7_t<3>", 1, OTHER)                         \
    X(40, INT4, "int4", "c10::dummy_int1_7_t<4>", 1, OTHER)                         \
    X(41, INT5, "int5", "c10::dummy_int1_7_t<5>", 1, OTHER)                         \
    X(42, INT6, "int6", "c10::dummy_int1_7_t<6>", 1, OTHER)                         \
    X(43, INT7, "int7", "c10::dummy_int1_7_t<7>", 1, OTHER)                         \
    X(44, FLOAT8_E8M0FNU, "float8_e8m0fnu", "c10::Float8_e8m0fnu", 1, FLOAT)        \
    X(45, FLOAT4_E2M1FN_X2, "float4_e2m1fn_x2", "c10::Float4_e2m1fn_x2", 1, OTHER)  \
    X(46, BCOMPLEX32, "bcomplex32", "c10::complex<c10::BFloat16>", 4, COMPLEX)
/* clang-format on */

/* torch's ScalarType numbers: SONDE_UINT8, SONDE_FLOAT32, .. */
enum sonde_dtype {
#define SONDE_DTYPE_NUMBER_(number, NAME, name, cxx, bytes, kind) SONDE_##NAME = number,
    SONDE_DTYPES(SONDE_DTYPE_NUMBER_)
#undef SONDE_DTYPE_NUMBER_
        SONDE_DTYPE_UNKNOWN = 255,
};

#endif
