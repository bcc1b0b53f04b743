// AMX's tile registers: eight tiles of 16 rows of 64 bytes.
#pragma once

namespace gpunn::cpu {

// Linux gives a process the tiles' registers only where it asks. The first call asks.
bool may_use_tiles();

// Around the use of tiles in a thread. Only for processors with AMX, after may_use_tiles().
void begin_tiles();
// Of left factors in registers 4 and 5, whose rows have so many bytes, and right ones in 6 and 7, of a row for each 4.
void begin_tiles_of(int a_bytes);
void end_tiles();

}  // namespace gpunn::cpu
