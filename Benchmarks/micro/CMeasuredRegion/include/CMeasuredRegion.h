#ifndef HEADROOM_MEASURED_REGION_H
#define HEADROOM_MEASURED_REGION_H

#include <stddef.h>
#include <stdint.h>

/// Calls `body` with `context` repeatedly. Callgrind collects inside this function only, by its name
/// (--toggle-collect), and writes a profile each time it returns (--dump-after).
void headroom_measured_region(void (*_Nonnull body)(void *_Nonnull context), void *_Nonnull context, int64_t times);

/// The allocations of this process so far, in all threads; a realloc is one. Always 0 if the C library is not glibc.
uint64_t headroom_allocation_count(void);

/// Makes the compiler assume that a value is used, so that its computation is not removed.
void headroom_keep(const void *_Nonnull value);

#endif
