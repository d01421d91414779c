#include "CMeasuredRegion.h"

#include <errno.h>
#include <stdatomic.h>

__attribute__((noinline)) void headroom_measured_region(void (*body)(void *), void *context, int64_t times) {
    for (int64_t time = 0; time < times; time++) body(context);
}

__attribute__((noinline)) void headroom_keep(const void *value) {
    __asm__ volatile("" : : "r"(value) : "memory");
}

static _Atomic uint64_t allocation_count;

uint64_t headroom_allocation_count(void) {
    return atomic_load_explicit(&allocation_count, memory_order_relaxed);
}

#if defined(__GLIBC__)

// The executable's functions take precedence over the C library's, also for shared libraries ("Replacing malloc" in the
// manual of glibc). These count, and call glibc by the second names that it exports for this purpose. free needs no
// replacement, because the memory is glibc's.

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void count_allocation(void) {
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
}

void *malloc(size_t size) {
    count_allocation();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    count_allocation();
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    count_allocation();
    return __libc_realloc(block, size);
}

void *memalign(size_t alignment, size_t size) {
    count_allocation();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count_allocation();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
    count_allocation();
    void *block = __libc_memalign(alignment, size);
    if (block == NULL) return ENOMEM;
    *result = block;
    return 0;
}

#endif
