/* SPDX-License-Identifier: MIT */
/**
 * DOC: config - version, visibility, attributes, line size
 *
 * Floor 0: every other header includes this one, this one includes none of
 * ours. Nothing here depends on anything but the compiler.
 */
#ifndef DSTREF_CONFIG_H
#define DSTREF_CONFIG_H

/* The version of these headers; dstref_version() tells the library's. */
#define DSTREF_VERSION_MAJOR 0
#define DSTREF_VERSION_MINOR 1
#define DSTREF_VERSION_PATCH 0
#define DSTREF_VERSION                                                 \
	(DSTREF_VERSION_MAJOR * 10000u + DSTREF_VERSION_MINOR * 100u + \
	 DSTREF_VERSION_PATCH)

/*
 * The cache line that every layout is made for, in bytes: 64, 128 or 256. It
 * is a constant of the build: the package passes the one that the library was
 * built with, and dstref_net_create() refuses a caller built with another.
 */
#ifndef DSTREF_LINE_SIZE
#define DSTREF_LINE_SIZE 64
#endif
#if DSTREF_LINE_SIZE != 64 && DSTREF_LINE_SIZE != 128 && DSTREF_LINE_SIZE != 256
#error "DSTREF_LINE_SIZE must be 64, 128 or 256: take the one in dstref.pc"
#endif

/*
 * Debug checks in the inline paths: arguments that must not be NULL, calls
 * that belong inside a reader. Off unless asked for with -DDSTREF_DEBUG=1 or
 * the unit is built without optimisation and without NDEBUG. Layouts and the
 * reports of misuse (report.h) are the same with and without.
 */
#ifndef DSTREF_DEBUG
#if defined(NDEBUG) || defined(__OPTIMIZE__)
#define DSTREF_DEBUG 0
#else
#define DSTREF_DEBUG 1
#endif
#endif

#define DSTREF_EXPORT __attribute__((visibility("default")))
#define DSTREF_NODISCARD __attribute__((warn_unused_result))
#define DSTREF_COLD __attribute__((cold, noinline))
#define dstref_likely(x) __builtin_expect(!!(x), 1)
#define dstref_unlikely(x) __builtin_expect(!!(x), 0)

/* A program may have one of its own, to say it in its own way. */
#ifndef DSTREF_STATIC_ASSERT
#ifdef __cplusplus
#define DSTREF_STATIC_ASSERT(cond, message) static_assert(cond, message)
#else
#define DSTREF_STATIC_ASSERT(cond, message) _Static_assert(cond, message)
#endif
#endif

#ifdef __cplusplus
#define DSTREF_ALIGNED(n) alignas(n)
#define DSTREF_ALIGNOF(type) alignof(type)
#define DSTREF_BEGIN_DECLS extern "C" {
#define DSTREF_END_DECLS }
#else
#define DSTREF_ALIGNED(n) _Alignas(n)
#define DSTREF_ALIGNOF(type) _Alignof(type)
#define DSTREF_BEGIN_DECLS
#define DSTREF_END_DECLS
#endif

/*
 * No layout is kept where members are packed. It is said here, in the header
 * that all include, so that this message is the first.
 */
struct dstref_config_unpacked {
	char byte;
	void *word;
};
DSTREF_STATIC_ASSERT(__builtin_offsetof(struct dstref_config_unpacked, word) ==
			     sizeof(void *),
		     "struct members are packed here: build without "
		     "-fpack-struct, include outside #pragma pack");

DSTREF_BEGIN_DECLS

/**
 * dstref_version - the version of the library that is linked
 *
 * Context: any thread.
 * Ordering: none.
 * Return: major * 10000 + minor * 100 + patch, as DSTREF_VERSION.
 */
DSTREF_EXPORT unsigned int dstref_version(void);

/**
 * dstref_line_size - the line size that the library was built for
 *
 * Context: any thread.
 * Ordering: none.
 * Return: bytes; DSTREF_LINE_SIZE of the unit must be the same.
 */
DSTREF_EXPORT unsigned int dstref_line_size(void);

DSTREF_END_DECLS

#endif
