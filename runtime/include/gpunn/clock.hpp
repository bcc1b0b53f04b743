#pragma once

#include <gpunn/export.h>

#include <string>

namespace gpunn {

// The program's one clock. Names of run folders, log.txt, records and checkpoints use UTC. Lines on the screen show the
// seconds since the program began; log.txt has both.
GPUNN_API std::string utc_time();  // "2026-11-20T16:08:00Z"
GPUNN_API std::string utc_name();  // for file names: "2026-11-20T16-08-00Z"
GPUNN_API double seconds_since_start();
GPUNN_API std::string elapsed_stamp();  // "[   12.3 s]"

}  // namespace gpunn
