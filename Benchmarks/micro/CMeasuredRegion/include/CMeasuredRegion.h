#ifndef HEADROOM_MEASURED_REGION_H
#define HEADROOM_MEASURED_REGION_H

#include <stddef.h>
#include <stdint.h>

/// Calls `body` with `context`, so many times. Callgrind collects inside of this function only, by its name
/// (--toggle-collect), and writes a profile each time it returns (--dump-after).
void headroom_measured_region(void (*_Nonnull body)(void *_Nonnull context), void *_Nonnull context, int64_t times);

/// Allocations of this process until now, of all threads; a realloc is one. Always 0 where the C library is not glibc.
uint64_t headroom_allocation_count(void);

/// Looks at a value as far as the compiler can tell, so that what made it is not left out.
void headroom_keep(const void *_Nonnull value);

#endif
