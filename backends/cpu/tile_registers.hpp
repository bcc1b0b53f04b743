// AMX's tile registers: eight tiles of 16 rows of 64 bytes.
#pragma once

namespace gpunn::cpu {

// Linux gives a process the tiles' registers only where it asks. The first call asks.
bool may_use_tiles();

// Around the use of tiles in a thread. Only for processors with AMX, after may_use_tiles().
void begin_tiles();
void end_tiles();

}  // namespace gpunn::cpu
