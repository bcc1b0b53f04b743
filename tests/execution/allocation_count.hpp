#pragma once

#include <cstdint>

// How often anything in this process, plugins included, has called operator new.
int64_t allocation_count();
