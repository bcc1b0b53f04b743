#pragma once

#include <gpunn/export.h>

#include <string>

namespace gpunn {

// The one clock of all that a person reads. Names of run folders, log.txt, records and checkpoints are in UTC; lines on
// the screen count the seconds since the program began, and log.txt has these beside the time.
GPUNN_API std::string utc_time();  // "2026-11-20T16:08:00Z"
GPUNN_API std::string utc_name();  // the same as a file's name, "2026-11-20T16-08-00Z"
GPUNN_API double seconds_since_start();
GPUNN_API std::string elapsed_stamp();  // "[   12.3 s]"

}  // namespace gpunn
